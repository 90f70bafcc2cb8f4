// Tensors from Python: tenon.tensor copies; tenon.from_numpy and tenon.from_dlpack share memory.
#include "core/ops/ops.h"
#include "core/tensor/generator.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

// The numbers of a nested list, row-major, with their kinds.
struct Numbers {
  std::vector<int64_t> dims;
  std::vector<double> floats;  // every number
  std::vector<int64_t> ints;   // every number that is not a float
  bool any_float = false, any_int = false;
  // any_negative: an int below 0. any_unsigned: an int from 2^63 on, which `ints` holds minus 2^64.
  bool any_negative = false, any_unsigned = false;

  DType dtype() const { return any_float || floats.empty() ? DType::f32 : any_int ? DType::i64 : DType::boolean; }
};

void add_number(PyObject* object, Numbers* numbers) {
  const Value value = value_of(object);
  if (const std::optional<uint64_t> number = beyond_signed(object)) {
    numbers->any_unsigned = true;
    numbers->floats.push_back(static_cast<double>(*number));
    numbers->ints.push_back(static_cast<int64_t>(*number));
  } else if (const bool* flag = value.get<bool>()) {
    numbers->floats.push_back(*flag);
    numbers->ints.push_back(*flag);
  } else if (const int64_t* integer = value.get<int64_t>()) {
    numbers->any_int = true;
    numbers->any_negative |= *integer < 0;
    numbers->floats.push_back(static_cast<double>(*integer));
    numbers->ints.push_back(*integer);
  } else if (const double* number = value.get<double>()) {
    numbers->any_float = true;
    numbers->floats.push_back(*number);
  } else {
    refuse(PyExc_TypeError, fmt::format("tensor(): {} is not a number, list of numbers or array.", value.type_name()));
  }
}

// A range, or an array inside a list, converted to a list; any other object unchanged.
nb::object as_list(PyObject* object) {
  if (PyRange_Check(object)) return nb::steal(PySequence_List(object));
  const bool array =
      tensor_in(object) != nullptr || (!PyType_Check(object) && nb::hasattr(object, "__array_interface__"));
  return array ? nb::handle(object).attr("tolist")() : nb::borrow(object);
}

void add_list(PyObject* given, size_t depth, Numbers* numbers) {
  const nb::object held = as_list(given);
  PyObject* object = held.ptr();
  const bool is_list = PyList_Check(object) || PyTuple_Check(object);
  const bool first_here = numbers->floats.empty() && depth >= numbers->dims.size();
  if (!is_list) {
    if (!first_here && depth != numbers->dims.size())
      refuse(PyExc_ValueError, "tensor(): one row has a number where other rows have lists.");
    return add_number(object, numbers);
  }
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  if (depth == numbers->dims.size() && numbers->floats.empty()) {
    if (depth == EP_MAX_RANK)
      refuse(PyExc_ValueError, fmt::format("tensor(): lists are nested deeper than {}.", EP_MAX_RANK));
    numbers->dims.push_back(size);
  }
  if (depth >= numbers->dims.size())
    refuse(PyExc_ValueError, "tensor(): one row has a list where other rows have numbers.");
  if (numbers->dims[depth] != size) {
    refuse(PyExc_ValueError, fmt::format("tensor(): a list on axis {} has {} elements and another one {}.", depth,
                                         numbers->dims[depth], size));
  }
  for (Py_ssize_t i = 0; i < size; ++i) {
    // Converting an item to a number may run Python code, which may change the list.
    if (PySequence_Fast_GET_SIZE(object) != size)
      refuse(PyExc_ValueError, "tensor(): a list changed while it was read.");
    add_list(nb::borrow(PySequence_Fast_GET_ITEM(object, i)).ptr(), depth + 1, numbers);
  }
}

// Without `dtype` the numbers decide: bool, i64 or f32.
Tensor from_list(PyObject* object, DType dtype, Device device) {
  Numbers numbers;
  add_list(object, 0, &numbers);
  const Dims dims{std::span<const int64_t>(numbers.dims)};
  if (dtype == DType::none) dtype = numbers.dtype();
  const bool as_floats = numbers.any_float || numbers.floats.empty() || (numbers.any_unsigned && is_floating(dtype));
  if (numbers.any_unsigned && !as_floats && (dtype != DType::u64 || numbers.any_negative)) {
    refuse(PyExc_ValueError,
           fmt::format("tensor(): an int of 2^63 or more does not fit {}; u64 without negative numbers and "
                       "floats can hold it, if one of them is given as dtype.",
                       dtype_name(dtype)));
  }
  // Floats stay f64 until the cast, so that no digits are lost before it.
  return cast(as_floats ? Tensor::from<double>(numbers.floats, dims, device)
                        : Tensor::from<int64_t>(numbers.ints, dims, device),
              dtype);
}

Tensor copy_of(PyObject* data, DType wanted, Device where) {
  std::optional<Tensor> made;
  if (const Tensor* tensor = tensor_in(data)) {
    made = clone(where ? tensor->detach().to(where) : tensor->detach());
  } else if (!(made = copy_buffer(data, where))) {
    if (const std::optional<Tensor> shared = borrow_dlpack(data)) made = clone(where ? shared->to(where) : *shared);
  }
  if (!made) made = from_list(data, wanted, where);
  return wanted != DType::none ? cast(*made, wanted) : *made;
}

nb::object make(nb::handle data, nb::handle dtype, nb::handle device, bool requires_grad) {
  const Device where = require_device(device.ptr(), "tensor()");
  const DType wanted = dtype.is_none() ? DType::none : require_dtype(dtype.ptr(), "tensor()");
  Tensor made = copy_of(data.ptr(), wanted, where);
  if (requires_grad) made.requires_grad_();
  return object_of(std::move(made));
}

nb::object from_numpy(nb::handle array) {
  std::optional<Tensor> tensor = borrow_buffer(array.ptr());
  if (!tensor)
    refuse(PyExc_TypeError, fmt::format("from_numpy(): expected an array, not {}.", Py_TYPE(array.ptr())->tp_name));
  return object_of(std::move(*tensor));
}

nb::object from_any(nb::handle object) {
  std::optional<Tensor> tensor = borrow_dlpack(object.ptr());
  if (!tensor)
    refuse(PyExc_TypeError, fmt::format("from_dlpack(): {} has no __dlpack__.", Py_TYPE(object.ptr())->tp_name));
  return object_of(std::move(*tensor));
}

}  // namespace

Tensor tensor_of_data(PyObject* data, Device device) { return copy_of(data, DType::none, device); }

void add_factories(nb::module_& m) {
  m.def("tensor", &make, nb::arg("data"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
        nb::arg("requires_grad") = false,
        "A tensor with a copy of `data`: a number, nested lists, a NumPy array, anything with DLPack, a tensor.");
  m.def("from_numpy", &from_numpy, nb::arg("array"), "A tensor over the memory of a NumPy array, without a copy.");
  m.def("from_dlpack", &from_any, nb::arg("object"),
        "A tensor over the memory of anything with DLPack, without a copy.");
  m.def(
      "manual_seed", [](uint64_t seed) { manual_seed(seed); }, nb::arg("seed"), "Seeds the random numbers of all ops.");
}

}  // namespace tenon::python
