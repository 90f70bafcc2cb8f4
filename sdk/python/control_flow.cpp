// tenon.cond, while_loop and scan: core/graph/regions/control_flow.h over functions from lists of tensors to lists of
// tensors. tenon/_control.py adds nested arguments and results.
#include "core/graph/regions/control_flow.h"

#include <nanobind/stl/optional.h>

#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

// `function` as a C++ function of a list of tensors. Call it with the interpreter lock released.
StateBody body_of(nb::handle function, const char* what) {
  return [kept_function = kept(function.ptr()), what](const TensorList& inputs) -> TensorList {
    const nb::gil_scoped_acquire locked;
    const CalledBack called(grad_enabled());
    return tensors_of(nb::borrow(kept_function.get())(list_of(inputs)), what);
  };
}

nb::list run_cond(const Tensor& pred, nb::handle then_fn, nb::handle else_fn, nb::handle operands) {
  const TensorList given = tensors_of(operands, "cond()");
  const StateBody first = body_of(then_fn, "cond()"), second = body_of(else_fn, "cond()");
  TensorList results;
  {
    const Unlocked unlocked;
    results = cond(pred, first, second, given);
  }
  return list_of(results);
}

nb::list run_while(nb::handle cond_fn, nb::handle body_fn, nb::handle state, std::optional<int64_t> most) {
  const TensorList given = tensors_of(state, "while_loop()");
  const StateBody condition = body_of(cond_fn, "while_loop()"), body = body_of(body_fn, "while_loop()");
  TensorList results;
  {
    const Unlocked unlocked;
    results = while_loop([&](const TensorList& now) { return condition(now).at(0); }, body, given, {.most = most});
  }
  return list_of(results);
}

nb::tuple run_scan(nb::handle fn, nb::handle init, nb::handle xs, std::optional<int64_t> length) {
  const TensorList carry = tensors_of(init, "scan()"), slices = tensors_of(xs, "scan()");
  const size_t carried = carry.size();
  const ScanBody step = [carried, kept_function = kept(fn.ptr())](const TensorList& now, const TensorList& slice) {
    const nb::gil_scoped_acquire locked;
    const CalledBack called(grad_enabled());
    TensorList all = tensors_of(nb::borrow(kept_function.get())(list_of(now), list_of(slice)), "scan()");
    if (all.size() < carried) refuse(PyExc_ValueError, "scan(): a step returned fewer tensors than it carries.");
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(carried);
    return Scanned{TensorList(all.begin(), end), TensorList(end, all.end())};
  };
  Scanned made;
  {
    const Unlocked unlocked;
    made = scan(step, carry, slices, {.length = length});
  }
  return nb::make_tuple(list_of(made.carry), list_of(made.ys));
}

}  // namespace

void add_control_flow(nb::module_& m) {
  m.def("_cond", &run_cond, nb::arg("pred"), nb::arg("then_fn"), nb::arg("else_fn"), nb::arg("operands"));
  m.def("_while_loop", &run_while, nb::arg("cond_fn"), nb::arg("body_fn"), nb::arg("state"), nb::arg("most").none());
  m.def("_scan", &run_scan, nb::arg("fn"), nb::arg("init"), nb::arg("xs"), nb::arg("length").none());
}

}  // namespace tenon::python
