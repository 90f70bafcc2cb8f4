// Python objects as arguments of ops. This file only turns an object into a Value; the dynamic call (core/ops/call.h)
// decides which kinds a parameter accepts and converts.
#include <cstring>
#include <limits>

#include "core/tensor/generator.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

std::string type_of(PyObject* object) { return Py_TYPE(object)->tp_name; }

// True for NumPy's bool, which is not a Python bool.
bool is_numpy_bool(PyObject* object) {
  const char* name = Py_TYPE(object)->tp_name;
  return std::strcmp(name, "numpy.bool_") == 0 || std::strcmp(name, "numpy.bool") == 0;
}

// True for scalars of any library, such as NumPy's; false for arrays, although they may convert to numbers too.
bool has_slot(PyObject* object, unaryfunc PyNumberMethods::*slot) {
  const PyNumberMethods* number = Py_TYPE(object)->tp_as_number;
  return number != nullptr && number->*slot != nullptr && !PySequence_Check(object);
}

Value integer(PyObject* object) {
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (value == -1 && overflow == 0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (overflow != 0) return Value::Foreign{"int beyond 64 bits"};
  return Value(value);
}

Value index(PyObject* object) {
  const nb::object number = nb::steal(PyNumber_Index(object));
  if (!number.is_valid()) throw nb::python_error();
  return integer(number.ptr());
}

Value tensors(PyObject* object) {
  TensorList tensors;
  tensors.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(object)));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(object, i);
    const Tensor* tensor = tensor_in(item);
    if (tensor == nullptr) return Value::Foreign{fmt::format("list of Tensors and {}", type_of(item))};
    tensors.push_back(*tensor);
  }
  return Value(std::move(tensors));
}

// The Value of a list or a tuple. Converting an item to a number may run Python code, which may change the list.
Value list(PyObject* object) {
  if (PySequence_Fast_GET_SIZE(object) > 0 && tensor_in(PySequence_Fast_GET_ITEM(object, 0)) != nullptr) {
    return tensors(object);
  }
  Value::Ints ints;
  Value::Floats floats;  // stays empty while every item is an int
  ints.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(object)));
  for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(object); ++at) {
    const nb::object held = nb::borrow(PySequence_Fast_GET_ITEM(object, at));
    if (PyTuple_Check(held.ptr()) || PyList_Check(held.ptr())) return Value::Foreign{"list of lists"};
    const auto i = static_cast<size_t>(at);
    const Value item = value_of(held.ptr());
    const int64_t* number = item.get<int64_t>();
    const double* fraction = item.get<double>();
    if (number == nullptr && fraction == nullptr) return Value::Foreign{fmt::format("list with {}", item.type_name())};
    if (fraction != nullptr && floats.size() < i) floats.assign(ints.begin(), ints.end());
    if (fraction != nullptr || floats.size() > 0) {
      floats.push_back(fraction != nullptr ? *fraction : static_cast<double>(*number));
    } else {
      ints.push_back(*number);
    }
  }
  return floats.empty() ? Value(std::move(ints)) : Value(std::move(floats));
}

}  // namespace

std::optional<uint64_t> beyond_signed(PyObject* object) {
  if (!PyLong_Check(object)) return std::nullopt;
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow <= 0) return std::nullopt;
  const uint64_t value = PyLong_AsUnsignedLongLong(object);
  if (value != std::numeric_limits<uint64_t>::max() || PyErr_Occurred() == nullptr) return value;
  PyErr_Clear();
  return std::nullopt;
}

Value value_of(PyObject* object) {
  if (const Tensor* tensor = tensor_in(object)) return Value(*tensor);
  if (object == Py_None) return Value();
  if (PyBool_Check(object)) return Value(object == Py_True);
  if (PyLong_Check(object)) return integer(object);
  if (PyFloat_Check(object)) return Value(PyFloat_AS_DOUBLE(object));
  if (PyTuple_Check(object) || PyList_Check(object)) return list(object);
  if (PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == nullptr) throw nb::python_error();
    return Value(std::string(text, static_cast<size_t>(size)));
  }
  if (const Device* device = held_in<Device>(object)) return Value(*device);
  if (const std::optional<DType> dtype = dtype_in(object)) return Value(*dtype);
  if (Generator* generator = held_in<Generator>(object)) return Value(*generator);
  if (PyType_Check(object)) return Value::Foreign{"type"};
  if (is_numpy_bool(object)) return Value(PyObject_IsTrue(object) == 1);
  if (has_slot(object, &PyNumberMethods::nb_index)) return index(object);
  if (has_slot(object, &PyNumberMethods::nb_float)) {
    const double number = PyFloat_AsDouble(object);
    if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return Value(number);
  }
  return Value::Foreign{type_of(object)};
}

Device require_device(PyObject* object, std::string_view what) {
  if (object == Py_None) return {};
  if (const Device* device = held_in<Device>(object)) return *device;
  const Value value = value_of(object);
  const auto* text = value.get<std::string>();
  if (text == nullptr)
    refuse(PyExc_TypeError, fmt::format("{}: device must be a device or its name, not {}.", what, value.type_name()));
  return Device(*text);
}

}  // namespace tenon::python
