// tenon.Tensor: its metadata, its elements as Python sees them, and the operators, which are ops by name.
#include <nanobind/stl/string.h>

#include "core/autograd/autograd.h"
#include "core/tensor/print.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

PyTypeObject* tensor_type = nullptr;

nb::object object_of(Tensor tensor) {
  PyObject* object = new_tensor(std::move(tensor));
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

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

// The text of a template argument.
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

// NotImplemented, by which Python asks the other operand, where an operand is nothing that an op takes.
template <Name name>
PyObject* binary(PyObject* a, PyObject* b) noexcept {
  try {
    for (PyObject* each : {a, b}) {
      if (tensor_in(each) == nullptr && value_of(each).get<Value::Foreign>() != nullptr)
        return Py_NewRef(Py_NotImplemented);
    }
    PyObject* const args[] = {a, b};
    return call_op(op_called<name>(), args, 2, nullptr);
  } catch (...) {
    set_error();
    return nullptr;
  }
}

template <Name name>
PyObject* unary(PyObject* a) noexcept {
  return call_op(op_called<name>(), &a, 1, nullptr);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulo) noexcept {
  return modulo == Py_None ? binary<"pow">(a, b) : Py_NewRef(Py_NotImplemented);
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

// With a comparison of its own a type must say how it is hashed: tensors by identity.
Py_hash_t hash(PyObject* self) noexcept { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self) >> 4); }

// As a condition: of a tensor of one element.
int truth(PyObject* self) noexcept {
  try {
    return PyObject_IsTrue(item(*tensor_in(self)).ptr());
  } catch (...) {
    set_error();
    return -1;
  }
}

template <class F>
void* slot(F function) {
  return reinterpret_cast<void*>(function);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, slot(&get_buffer)},
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
                       {Py_nb_power, slot(&power)},
                       {Py_nb_negative, slot(&unary<"neg">)},
                       {Py_nb_absolute, slot(&unary<"abs">)},
                       {Py_nb_invert, slot(&unary<"bitwise_not">)},
                       {Py_nb_bool, slot(&truth)},
                       {Py_tp_richcompare, slot(&compare)},
                       {Py_tp_hash, slot(&hash)},
                       {0, nullptr}};

// ---- gradients ----

// with tenon.no_grad(): ...
struct NoGradContext {
  std::unique_ptr<NoGrad> scope;
};

void backward_of(const Tensor& tensor, const Tensor* gradient, bool retain_graph, bool create_graph) {
  const Unlocked unlocked;
  backward({tensor}, gradient == nullptr ? TensorList() : TensorList{*gradient}, {retain_graph, create_graph});
}

}  // namespace

Tensor* tensor_in(PyObject* object) {
  if (Py_TYPE(object) != tensor_type && PyType_IsSubtype(Py_TYPE(object), tensor_type) == 0) return nullptr;
  static Tensor undefined;
  if (!nb::inst_ready(object)) [[unlikely]]
    return &undefined;
  return nb::inst_ptr<Tensor>(object);
}

PyObject* new_tensor(Tensor tensor) {
  if (!tensor.defined()) return Py_NewRef(Py_None);
  nb::object object = nb::inst_alloc(reinterpret_cast<PyObject*>(tensor_type));
  if (!object.is_valid()) return nullptr;
  new (nb::inst_ptr<Tensor>(object)) Tensor(std::move(tensor));
  nb::inst_mark_ready(object);
  return object.release().ptr();
}

void add_tensor(nb::module_& m) {
  nb::class_<Tensor> type(m, "Tensor", nb::type_slots(slots),
                          "An array of numbers on a device. tenon.tensor makes one.");
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  type.def_prop_ro("shape", [](const Tensor& t) { return tuple_of(t.dims()); })
      .def_prop_ro("ndim", &Tensor::rank)
      .def_prop_ro("dtype", [](const Tensor& t) { return dtype_object(t.dtype()); })
      .def_prop_ro("device", &Tensor::device)
      .def_prop_ro("is_contiguous", &Tensor::contiguous)
      .def(
          "stride", [](const Tensor& t) { return tuple_of(t.strides()); },
          "How far apart neighbours on each axis lie, in elements.")
      .def("numel", &Tensor::elements)
      .def("item", &item, "The one element of a tensor with one, as a number of Python.")
      .def("wait", &Tensor::wait, nb::call_guard<Unlocked>(), "Waits until the elements are there.")
      .def("__repr__",
           [](const Tensor& t) {
             const Unlocked unlocked;
             return to_string(t);
           })
      .def("__len__",
           [](const Tensor& t) {
             if (t.rank() == 0) refuse(PyExc_TypeError, "len() of a tensor of rank 0.");
             return t.dim(0);
           })
      .def("__float__", [](const Tensor& t) { return nb::float_(item(t)); })
      .def("__int__", [](const Tensor& t) { return nb::int_(item(t)); })
      .def("__index__",
           [](const Tensor& t) {
             if (is_floating(t.dtype()))
               refuse(PyExc_TypeError, fmt::format("A tensor of {} is no index.", dtype_name(t.dtype())));
             return nb::int_(item(t));
           })
      .def_prop_ro("requires_grad", &Tensor::requires_grad)
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
      .def("detach", [](const Tensor& t) { return object_of(t.detach()); })
      .def("backward", &backward_of, nb::arg("gradient").none() = nb::none(), nb::arg("retain_graph") = false,
           nb::arg("create_graph") = false);
  // NumPy's arrays and numbers leave `array + tensor` to the tensor.
  type.attr("__array_priority__") = 1000;
  add_dlpack(type);

  nb::class_<NoGradContext>(m, "no_grad", "with tenon.no_grad(): ops of this thread are not remembered for gradients.")
      .def(nb::init<>())
      .def("__enter__", [](NoGradContext& c) { c.scope = std::make_unique<NoGrad>(); })
      .def("__exit__", [](NoGradContext& c, const nb::args&) { c.scope.reset(); });
}

}  // namespace tenon::python
