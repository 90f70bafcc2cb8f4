// Compiled functions from Python: core/lazy/compile.h over a function that takes and gives a list of tensors. What is
// above lists, as nested results and keywords, is in tenon/compiling.py.
#include "core/lazy/compile.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

CompiledList compiled(nb::handle function, const std::string& name, bool exact, bool whole, bool check,
                      std::optional<bool> fuse, bool recompute, uint64_t memory_limit, nb::handle frozen) {
  CompileOptions options;
  options.name = name;
  options.exact = exact;
  options.whole = whole;
  options.check = check;
  options.fuse = fuse;
  options.recompute = recompute;
  options.memory_limit = memory_limit;
  options.frozen = tensors_of(frozen, "compile()");
  auto call = [kept_function = kept(function.ptr())](const TensorList& inputs) -> TensorList {
    const nb::gil_scoped_acquire locked;
    const CalledBack called(grad_enabled());
    nb::list list;
    for (const Tensor& each : inputs) list.append(object_of(each));
    return tensors_of(nb::borrow(kept_function.get())(list), "compile()");
  };
  return CompiledList(std::move(call), std::move(options));
}

nb::list run(const CompiledList& list, nb::handle inputs) {
  const TensorList given = tensors_of(inputs, "a compiled function");
  TensorList results;
  {
    const Unlocked unlocked;
    results = list(given);
  }
  nb::list made;
  for (const Tensor& each : results) made.append(object_of(each));
  return made;
}

nb::list memory_of(const CompiledList& list) {
  nb::list rows;
  for (const CompileMemory& each : list.memory()) {
    nb::dict made;
    made["saved"] = each.saved;
    made["saved_before"] = each.saved_before;
    made["live"] = each.live;
    made["live_before"] = each.live_before;
    made["planned"] = each.planned;
    made["again"] = each.again;
    rows.append(made);
  }
  return rows;
}

}  // namespace

void add_compile(nb::module_& m) {
  nb::class_<CompiledList>(m, "_CompiledList")
      .def("__call__", &run)
      .def("stats",
           [](const CompiledList& list) {
             const CompileStats stats = list.stats();
             nb::dict made;
             made["recordings"] = stats.recordings;
             made["executables"] = stats.executables;
             made["runs"] = stats.runs;
             made["eager"] = stats.eager;
             return made;
           })
      .def("memory", &memory_of);
  m.def("_compile", &compiled, nb::arg("function"), nb::arg("name"), nb::arg("exact"), nb::arg("whole"),
        nb::arg("check"), nb::arg("fuse").none(), nb::arg("recompute"), nb::arg("memory_limit"), nb::arg("frozen"));
}

}  // namespace tenon::python
