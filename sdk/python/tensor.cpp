// tenon.Tensor: its metadata, access to its elements, and the operators, which call ops by name.

#include "core/autograd/autograd.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {

PyTypeObject* tensor_type = nullptr;
ptrdiff_t tensor_offset = 0;

namespace {

// Freed Tensor objects that are kept for reuse, so that a new one needs no allocation.
constexpr uint32_t kObjectsKept = 128;

nb::tuple tuple_of(const Dims& dims) {
  nb::list list;
  for (const int64_t each : dims) list.append(each);
  return nb::tuple(list);
}

nb::object item(const Tensor& tensor) {
  Scalar value;
  {
    const Unlocked unlocked;
    value = tensor.item();
  }
  switch (value.dtype()) {
    case DType::boolean: return nb::bool_(value.to_int() != 0);
    case DType::f64: return nb::float_(value.to_double());
    case DType::u64: return nb::int_(value.to<uint64_t>());
    default: return nb::int_(value.to_int());
  }
}

// ---- operators ----

// A string as a template argument.
template <size_t N>
struct Name {
  constexpr Name(const char (&text)[N]) { std::copy_n(text, N, value); }
  char value[N];
};

template <Name name>
const DynamicOp& op_called() {
  static const DynamicOp& op = find_op(name.value);
  return op;
}

// True for operands that every operator accepts without conversion.
bool is_plain(PyObject* object) {
  int64_t integer = 0;
  return tensor_in(object) != nullptr || PyFloat_CheckExact(object) || is_int64(object, &integer);
}

// `object` converted for an operator whose other operand is `other`. A NumPy array becomes a tensor on the device of
// `other`. An int from 2^63 on becomes a u64 tensor if `other` is u64, and a float if `other` has floats. Null if no
// operator accepts the object.
nb::object operand(PyObject* object, PyObject* other) {
  if (is_plain(object)) return nb::borrow(object);
  const Tensor* beside = tensor_in(other);
  if (PyLong_CheckExact(object)) {
    const bool wide = beside != nullptr && (beside->dtype() == DType::u64 || is_floating(beside->dtype()));
    const std::optional<uint64_t> number = wide ? beyond_signed(object) : std::nullopt;
    if (!number) return nb::borrow(object);
    if (beside->dtype() != DType::u64) return nb::float_(static_cast<double>(*number));
    return object_of(full(IntList(), *number, DType::u64, beside->device()));
  }
  constexpr uint16_t kOperands = kAcceptsBool | kAcceptsInt | kAcceptsFloat | kAcceptsFloats;
  if ((value_of(object).kind() & kOperands) != 0) return nb::borrow(object);
  if (!nb::hasattr(object, "__array_interface__")) return {};
  return object_of(tensor_of_data(object, beside != nullptr ? beside->device() : Device()));
}

// Returns NotImplemented if an operand has a type that no operator accepts; Python then asks the other operand.
template <Name name>
PyObject* binary(PyObject* a, PyObject* b) noexcept {
  try {
    if (is_plain(a) && is_plain(b)) {
      PyObject* const args[] = {a, b};
      return call_op(op_called<name>(), args, 2);
    }
    const nb::object left = operand(a, b), right = operand(b, a);
    if (!left.is_valid() || !right.is_valid()) return Py_NewRef(Py_NotImplemented);
    PyObject* const args[] = {left.ptr(), right.ptr()};
    return call_op(op_called<name>(), args, 2);
  } catch (...) {
    set_error();
    return nullptr;
  }
}

template <Name name>
PyObject* unary(PyObject* a) noexcept {
  return call_op(op_called<name>(), &a, 1);
}

template <Name name>
PyObject* power(PyObject* a, PyObject* b, PyObject* modulo) noexcept {
  return modulo == Py_None ? binary<name>(a, b) : Py_NewRef(Py_NotImplemented);
}

PyObject* compare(PyObject* a, PyObject* b, int how) noexcept {
  switch (how) {
    case Py_LT: return binary<"lt">(a, b);
    case Py_LE: return binary<"le">(a, b);
    case Py_EQ: return binary<"eq">(a, b);
    case Py_NE: return binary<"ne">(a, b);
    case Py_GT: return binary<"gt">(a, b);
    default: return binary<"ge">(a, b);
  }
}

// A type with its own comparison must define its hash: tensors hash by identity.
Py_hash_t hash(PyObject* self) noexcept { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self) >> 4); }

// The truth of a tensor as a condition. Only a tensor of one element has one.
int truth(PyObject* self) noexcept {
  try {
    return PyObject_IsTrue(item(*tensor_in(self)).ptr());
  } catch (...) {
    set_error();
    return -1;
  }
}

Py_ssize_t length(PyObject* self) noexcept {
  const Tensor& tensor = *tensor_in(self);
  if (tensor.rank() > 0) return tensor.dim(0);
  PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
  return -1;
}

// An iterator over the slices along the first axis.
PyObject* iterate(PyObject* self) noexcept {
  if (tensor_in(self)->rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
    return nullptr;
  }
  const nb::object slices = nb::steal(call_op(op_called<"unbind">(), &self, 1));
  return slices.is_valid() ? PyObject_GetIter(slices.ptr()) : nullptr;
}

// `element in tensor`: 1 if some element equals `element`.
int contains(PyObject* self, PyObject* element) noexcept {
  PyObject* const args[] = {self, element};
  const nb::object equal = nb::steal(call_op(op_called<"eq">(), args, 2));
  if (!equal.is_valid()) return -1;
  PyObject* const object = equal.ptr();
  const nb::object any = nb::steal(call_op(op_called<"any">(), &object, 1));
  return any.is_valid() ? truth(any.ptr()) : -1;
}

// Tensor.__new__, also for subclasses. The tensor is undefined until __init__ fills it.
PyObject* allocate(PyTypeObject* type, PyObject*, PyObject*) noexcept {
  try {
    nb::object made = nb::inst_alloc(reinterpret_cast<PyObject*>(type));
    new (nb::inst_ptr<Tensor>(made)) Tensor();
    return made.release().ptr();
  } catch (...) {
    set_error();
    return nullptr;
  }
}

template <class F>
void* slot(F function) {
  return reinterpret_cast<void*>(function);
}

PyType_Slot slots[] = {{Py_tp_new, slot(&allocate)},
                       {Py_bf_getbuffer, slot(&get_buffer)},
                       {Py_bf_releasebuffer, slot(&release_buffer)},
                       {Py_nb_add, slot(&binary<"add">)},
                       {Py_nb_subtract, slot(&binary<"sub">)},
                       {Py_nb_multiply, slot(&binary<"mul">)},
                       {Py_nb_true_divide, slot(&binary<"div">)},
                       {Py_nb_remainder, slot(&binary<"remainder">)},
                       {Py_nb_matrix_multiply, slot(&binary<"matmul">)},
                       {Py_nb_and, slot(&binary<"bitwise_and">)},
                       {Py_nb_or, slot(&binary<"bitwise_or">)},
                       {Py_nb_xor, slot(&binary<"bitwise_xor">)},
                       {Py_nb_inplace_add, slot(&binary<"add_">)},
                       {Py_nb_inplace_subtract, slot(&binary<"sub_">)},
                       {Py_nb_inplace_multiply, slot(&binary<"mul_">)},
                       {Py_nb_inplace_true_divide, slot(&binary<"div_">)},
                       {Py_nb_floor_divide, slot(&binary<"floor_divide">)},
                       {Py_nb_lshift, slot(&binary<"bitwise_left_shift">)},
                       {Py_nb_rshift, slot(&binary<"bitwise_right_shift">)},
                       {Py_nb_inplace_remainder, slot(&binary<"remainder_">)},
                       {Py_nb_inplace_floor_divide, slot(&binary<"floor_divide_">)},
                       {Py_nb_inplace_and, slot(&binary<"bitwise_and_">)},
                       {Py_nb_inplace_or, slot(&binary<"bitwise_or_">)},
                       {Py_nb_inplace_xor, slot(&binary<"bitwise_xor_">)},
                       {Py_nb_inplace_lshift, slot(&binary<"bitwise_left_shift_">)},
                       {Py_nb_inplace_rshift, slot(&binary<"bitwise_right_shift_">)},
                       {Py_nb_power, slot(&power<"pow">)},
                       {Py_nb_inplace_power, slot(&power<"pow_">)},
                       {Py_mp_subscript, slot(&get_item)},
                       {Py_mp_ass_subscript, slot(&set_item)},
                       {Py_mp_length, slot(&length)},
                       {Py_sq_contains, slot(&contains)},
                       {Py_tp_iter, slot(&iterate)},
                       {Py_nb_negative, slot(&unary<"neg">)},
                       {Py_nb_positive, slot(&unary<"positive">)},
                       {Py_nb_absolute, slot(&unary<"abs">)},
                       {Py_nb_invert, slot(&unary<"bitwise_not">)},
                       {Py_nb_bool, slot(&truth)},
                       {Py_tp_richcompare, slot(&compare)},
                       {Py_tp_hash, slot(&hash)},
                       {0, nullptr}};

}  // namespace

PyObject* new_tensor(Tensor tensor) {
  if (!tensor.defined()) return Py_NewRef(Py_None);
  nb::object object = nb::inst_alloc(reinterpret_cast<PyObject*>(tensor_type));
  if (!object.is_valid()) return nullptr;
  new (reinterpret_cast<std::byte*>(object.ptr()) + tensor_offset) Tensor(std::move(tensor));
  nb::inst_mark_ready(object);
  return object.release().ptr();
}

nb::object object_of(Tensor tensor) {
  PyObject* object = new_tensor(std::move(tensor));
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

// Tensor(3, 4): an uninitialised f32 tensor of that shape.
void fill_unset(Tensor* self, const nb::tuple& sizes) {
  Dims dims;
  for (const nb::handle size : sizes) {
    int64_t length = 0;
    if (!nb::try_cast(size, length)) {
      throw nb::type_error("Tensor: it takes data, or the sizes of an uninitialised tensor, such as Tensor(3, 4).");
    }
    dims.push_back(length);
  }
  if (sizes.size() == 0) dims.push_back(0);
  new (self) Tensor(Tensor::empty(dims, DType::f32));
}

nb::object add_tensor(nb::module_& m) {
  nb::class_<Tensor> type(m, "Tensor", nb::type_slots(slots), nb::is_weak_referenceable(), nb::pooled(kObjectsKept),
                          "An array of numbers on a device. tenon.tensor makes one.");
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  const nb::object any = nb::inst_alloc(type);
  tensor_offset = reinterpret_cast<std::byte*>(nb::inst_ptr<Tensor>(any)) - reinterpret_cast<std::byte*>(any.ptr());
  // __init__ of Tensor and of subclasses such as tenon.nn.Parameter: shares the elements of another tensor.
  type.def(
          "__init__",
          [](Tensor* self, nb::handle data) {
            const Tensor* tensor = tensor_in(data.ptr());
            if (tensor == nullptr && PyLong_CheckExact(data.ptr())) return fill_unset(self, nb::make_tuple(data));
            new (self) Tensor(tensor != nullptr ? tensor->detach() : tensor_of_data(data.ptr(), {}));
          },
          nb::arg("data"))
      .def("__init__", [](Tensor* self, const nb::args& sizes) { fill_unset(self, sizes); })
      .def_prop_ro("shape", [](const Tensor& t) { return tuple_of(t.dims()); })
      .def("_size", [](const Tensor& t, int32_t axis) { return t.dim(axis); })  // `axis` is in range
      .def_prop_ro("ndim", &Tensor::rank)
      .def_prop_ro("dtype", [](const Tensor& t) { return dtype_object(t.dtype()); })
      .def_prop_ro("device", &Tensor::device)
      .def("is_contiguous", &Tensor::contiguous)
      .def("_strides", [](const Tensor& t) { return tuple_of(t.strides()); })
      .def("storage_offset", [](const Tensor& t) { return t.impl()->offset; })
      .def(
          "data_ptr", [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()); },
          "The host address of the first element, after waiting for its value; 0 if the host cannot reach it.")
      .def("numel", &Tensor::elements)
      .def("item", &item, "The element of a tensor of one element, as a Python number.")
      .def("wait", &Tensor::wait, nb::call_guard<Unlocked>(), "Waits until the elements are there.")
      .def("_to_device",
           [](const Tensor& t, nb::handle device) { return object_of(t.to(require_device(device.ptr(), "to()"))); })
      .def("__float__", [](const Tensor& t) { return nb::float_(item(t)); })
      .def("__int__", [](const Tensor& t) { return nb::int_(item(t)); })
      .def("__index__",
           [](const Tensor& t) {
             if (is_floating(t.dtype()) || t.elements() != 1)
               refuse(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
             return nb::int_(item(t));
           })
      .def_prop_rw("requires_grad", &Tensor::requires_grad,
                   [](const Tensor& t, bool wanted) { t.requires_grad_(wanted); })
      .def_prop_ro("is_leaf", &Tensor::is_leaf)
      .def_prop_rw(
          "grad", [](const Tensor& t) { return object_of(t.grad()); },
          [](const Tensor& t, const Tensor* gradient) { t.set_grad(gradient == nullptr ? Tensor() : *gradient); },
          nb::for_setter(nb::arg("gradient").none()))
      .def(
          "requires_grad_",
          [](nb::handle self, bool wanted) {
            nb::inst_ptr<Tensor>(self)->requires_grad_(wanted);
            return nb::borrow(self);
          },
          nb::arg("requires_grad") = true)
      .def("retain_grad", &Tensor::retain_grad)
      .def("detach", [](const Tensor& t) { return object_of(t.detach()); });
  // Makes NumPy's arrays and scalars leave `array + tensor` to the tensor.
  type.attr("__array_priority__") = 1000;
  add_dlpack(type);
  return type;
}

}  // namespace tenon::python
