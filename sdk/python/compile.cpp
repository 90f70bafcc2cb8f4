// Compiled functions from Python: core/compile/compile.h over a function from a list of tensors to a list of tensors.
// tenon/compiling.py adds nested results and keywords.
#include "core/compile/compile.h"

#include <nanobind/stl/optional.h>

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
    return tensors_of(nb::borrow(kept_function.get())(list_of(inputs)), "compile()");
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
  return list_of(results);
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

// How a guard of _guards.py reads its owner.
enum GuardKind : long { kItems, kAttributes, kList, kDict, kDigest };

// True if `owner` has each of `values` under its name, as the same object. `absent` stands for a missing value.
bool has_named(long kind, PyObject* owner, PyObject* names, PyObject* values, PyObject* absent) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    PyObject* held = kind == kItems ? Py_XNewRef(PyDict_GetItemWithError(owner, name)) : PyObject_GetAttr(owner, name);
    if (held == nullptr) PyErr_Clear();
    const bool same = (held == nullptr ? absent : held) == PyTuple_GET_ITEM(values, i);
    Py_XDECREF(held);
    if (!same) return false;
  }
  return true;
}

bool has_elements(PyObject* list, PyObject* values) {
  if (PyList_GET_SIZE(list) != PyTuple_GET_SIZE(values)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i) {
    if (PyList_GET_ITEM(list, i) != PyTuple_GET_ITEM(values, i)) return false;
  }
  return true;
}

bool has_entries(PyObject* dict, PyObject* keys, PyObject* values) {
  if (PyDict_Size(dict) != PyTuple_GET_SIZE(keys)) return false;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t i = 0, at = 0; PyDict_Next(dict, &at, &key, &value); ++i) {
    if (key != PyTuple_GET_ITEM(keys, i) || value != PyTuple_GET_ITEM(values, i)) return false;
  }
  return true;
}

// The index of the first of `guards`, from `start` on, whose owner does not hold exactly the objects it names; -1 if
// there is none. Each guard is a tuple (kind, owner, names, values). `digest` computes the value to compare for an
// owner without names.
Py_ssize_t first_changed(const nb::tuple& guards, Py_ssize_t start, nb::handle absent, nb::handle digest) {
  for (Py_ssize_t i = start; i < PyTuple_GET_SIZE(guards.ptr()); ++i) {
    PyObject* guard = PyTuple_GET_ITEM(guards.ptr(), i);
    const long kind = PyLong_AsLong(PyTuple_GET_ITEM(guard, 0));
    PyObject* owner = PyTuple_GET_ITEM(guard, 1);
    PyObject* names = PyTuple_GET_ITEM(guard, 2);
    PyObject* values = PyTuple_GET_ITEM(guard, 3);
    bool same = false;
    switch (kind) {
      case kList: same = has_elements(owner, values); break;
      case kDict: same = has_entries(owner, names, values); break;
      case kDigest: same = digest(nb::handle(owner)).equal(nb::handle(PyTuple_GET_ITEM(values, 0))); break;
      default: same = has_named(kind, owner, names, values, absent.ptr());
    }
    if (!same) return i;
  }
  return -1;
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
  m.def("_first_changed", &first_changed);
  m.def("_compile", &compiled, nb::arg("function"), nb::arg("name"), nb::arg("exact"), nb::arg("whole"),
        nb::arg("check"), nb::arg("fuse").none(), nb::arg("recompute"), nb::arg("memory_limit"), nb::arg("frozen"));
}

}  // namespace tenon::python
