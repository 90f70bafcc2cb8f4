// tenon.autocast: inside the `with` block, ops that tenon/amp.py lists get their floating arguments in another dtype.
#include "sdk/python/autocast.h"

#include <algorithm>

#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::python {
namespace {

enum class Policy : uint8_t { unlisted, narrow, full };

std::vector<Policy> policies;  // by position in list_ops(); empty before tenon.amp is loaded

Policy policy_of(const DynamicOp& op) {
  const std::span<const DynamicOp> all = list_ops();
  const bool listed = std::less_equal<>()(all.data(), &op) && std::less<>()(&op, all.data() + policies.size());
  return listed ? policies[static_cast<size_t>(&op - all.data())] : Policy::unlisted;
}

void set_policies(const nb::list& narrow, const nb::list& full) {
  const std::span<const DynamicOp> all = list_ops();
  std::vector<Policy> made(all.size(), Policy::unlisted);
  const auto set = [&](const nb::list& names, Policy policy) {
    for (nb::handle each : names) {
      const std::string name = nb::cast<std::string>(each);
      const auto found = std::lower_bound(all.begin(), all.end(), name,
                                          [](const DynamicOp& op, const std::string& text) { return op.name < text; });
      if (found == all.end() || found->name != name)
        refuse(PyExc_ValueError, fmt::format("autocast: there is no op '{}'.", name));
      made[static_cast<size_t>(found - all.begin())] = policy;
    }
  };
  set(narrow, Policy::narrow);
  set(full, Policy::full);
  policies = std::move(made);
}

bool is_cast(DType from, DType to) {
  return from != to && (from == DType::f32 || from == DType::f16 || from == DType::bf16);
}

// `object` with each tensor of f32, f16 or bf16, also in a list or tuple, in the dtype `to`.
nb::object in_dtype(PyObject* object, DType to) {
  if (const Tensor* tensor = tensor_in(object)) {
    if (!tensor->defined() || !is_cast(tensor->dtype(), to)) return nb::borrow(object);
    return object_of(cast(*tensor, to));
  }
  if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return nb::borrow(object);
  nb::list made;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    made.append(in_dtype(nb::borrow(PySequence_Fast_GET_ITEM(object, i)).ptr(), to));
  }
  return made;
}

bool writes_into(PyObject* names) {
  for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_GET_SIZE(names); ++i) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "out") == 0) return true;
  }
  return false;
}

}  // namespace

bool CastArguments::cast(const DynamicOp& op, PyObject* const* args, size_t count, PyObject* names) {
  const Policy policy = policy_of(op);
  if (policy == Policy::unlisted || writes_into(names)) return false;
  const DType to = policy == Policy::full ? DType::f32 : autocast_dtype;
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    held_.push_back(in_dtype(args[i], to));
    args_.push_back(held_.back().ptr());
    any = any || args_.back() != args[i];
  }
  return any;
}

void add_autocast(nb::module_& m) {
  m.def("_set_autocast_policies", &set_policies, nb::arg("narrow"), nb::arg("full"));
  m.def("_autocast_dtype",
        [] { return autocast_dtype == DType::none ? nb::object(nb::none()) : dtype_object(autocast_dtype); });
  m.def(
      "_set_autocast_dtype",
      [](nb::handle dtype) {
        autocast_dtype = dtype.is_none() ? DType::none : require_dtype(dtype.ptr(), "autocast()");
      },
      nb::arg("dtype").none());
}

}  // namespace tenon::python
