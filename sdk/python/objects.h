// Tenon's objects in Python: how each C++ object is wrapped, and how Python objects convert to Tenon's. Callers of
// everything in this file hold the interpreter lock.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/ops/call.h"
#include "core/tensor/device.h"
#include "core/tensor/files.h"
#include "core/tensor/tensor.h"
#include "sdk/python/text.h"

namespace tenon::python {

namespace nb = nanobind;

// The T in `object`. Null if the object is not a T, or if T.__new__ made it and __init__ has not filled it.
template <class T>
T* held_in(PyObject* object) {
  return nb::isinstance<T>(object) && nb::inst_ready(object) ? nb::inst_ptr<T>(object) : nullptr;
}

// A dtype in Python. There is one object per row of dtypes.def.
struct DTypeObject {
  DType value;
};
nb::object dtype_object(DType dtype);

// ---- Tensors (tensor.cpp) ----

// The Python type Tensor, and the offset of the C++ tensor in its objects and those of subclasses. add_tensor sets
// both.
extern PyTypeObject* tensor_type;
extern ptrdiff_t tensor_offset;
// The tensor in `object`, or null if the object is not a Tensor. The tensor is undefined if Tensor.__new__ made the
// object and __init__ has not filled it.
inline Tensor* tensor_in(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type != tensor_type) {
    // built-in types, such as int, float and tuple
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) == 0) return nullptr;
    if (PyType_IsSubtype(type, tensor_type) == 0) return nullptr;
  }
  return reinterpret_cast<Tensor*>(reinterpret_cast<std::byte*>(object) + tensor_offset);
}
// A new Python object for `tensor`; None for an undefined one. Null, with Python's error set, if memory ran out.
PyObject* new_tensor(Tensor tensor);
// Like new_tensor, as an nb::object; throws if memory ran out.
nb::object object_of(Tensor tensor);
// The tensors in a sequence, with an undefined one for each None. Raises a Python error, whose text begins with `what`,
// for anything else.
TensorList tensors_of(const nb::handle& sequence, std::string_view what);
// A Python list of the tensors.
nb::list list_of(const TensorList& tensors);
// A tensor with a copy of `data`, as tenon.tensor makes it: from a number, nested lists, an array or a tensor
// (factories.cpp).
Tensor tensor_of_data(PyObject* data, Device device);

// x[key] and x[key] = value (index.cpp).
PyObject* get_item(PyObject* self, PyObject* key) noexcept;
int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept;

// ---- Calls back into Python (gradients.cpp) ----

// A reference to `object` that any thread may drop.
std::shared_ptr<PyObject> kept(PyObject* object);
// True if ops of this thread are recorded for gradients, as its `with` blocks say.
bool grad_enabled();
// Guards a call from Tenon into Python: it sets the value of grad_enabled() there, and ends the `with` blocks that the
// call leaves open.
class CalledBack {
 public:
  explicit CalledBack(bool remembered);
  ~CalledBack();
  CalledBack(const CalledBack&) = delete;
  CalledBack& operator=(const CalledBack&) = delete;

 private:
  size_t depth_;
};

// ---- Arguments of ops (argument.cpp) ----

// `object` as an argument of the dynamic call; a Value::Foreign if Tenon does not know its type.
Value value_of(PyObject* object);
// True if `object` is a Python int that fits i64. `value` then receives it.
inline bool is_int64(PyObject* object, int64_t* value) {
  int overflow = 0;
  if (!PyLong_CheckExact(object)) return false;
  *value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}
// The value of a Python int that fits u64 but not i64; empty for anything else.
std::optional<uint64_t> beyond_signed(PyObject* object);
// The dtype that `object` names: a tenon.DType, a NumPy dtype or scalar type, the types float, int or bool, or a
// string.
std::optional<DType> dtype_in(PyObject* object);
// Like dtype_in, but raises a Python error that names the given object. The error begins with `what`, such as
// "tensor()".
DType require_dtype(PyObject* object, std::string_view what);
// The device that `object`, a tenon.Device or a string, names; an invalid Device for None.
Device require_device(PyObject* object, std::string_view what);
// The tensors of a dict, by name. Errors begin with `what`. (files.cpp)
NamedTensors named_tensors(const nb::dict& tensors, std::string_view what);

// ---- Memory (memory.cpp, dlpack.cpp, release.cpp) ----

// A tensor over the memory of `object`, which has Python's buffer protocol; empty if it does not have it. Raises a
// Python error if no dtype fits its elements, or if the memory is read-only.
std::optional<Tensor> borrow_buffer(PyObject* object);
// Like borrow_buffer, as a copy on `device`.
std::optional<Tensor> copy_buffer(PyObject* object, Device device);
// A tensor over the memory of an object with __dlpack__; empty if it has none.
std::optional<Tensor> borrow_dlpack(PyObject* object);
// The buffer protocol of Tensor. Gives the host's memory itself, or a read-only copy if the host cannot address the
// memory.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void release_buffer(PyObject* self, Py_buffer* view) noexcept;

// Drops one reference to `object`: now if the calling thread holds the interpreter lock, otherwise when Python next
// runs pending calls. After the interpreter has ended the object is left alone.
void release(PyObject* object) noexcept;

// ---- Errors (errors.cpp) ----

// Sets Python's error from the C++ exception that is being handled.
void set_error() noexcept;
// Like set_error, but an argument that Tenon refuses is an index: tenon.InvalidIndex, which is also an IndexError.
void set_index_error() noexcept;
// Like set_error, for a call of op `name`. If no signature accepts the arguments, the error is tenon.InvalidCall, which
// is also a TypeError, and the function returns true.
bool set_call_error(std::string_view name) noexcept;
[[noreturn]] void refuse(PyObject* type, const std::string& sentence);
[[noreturn]] void refuse_index(const std::string& sentence);

// Releases the interpreter lock for its lifetime if `wanted`. If the interpreter has ended, a daemon thread that wants
// the lock back stops here for ever, as Python 3.14 does; older versions would end the thread by unwinding its stack.
class Unlocked {
 public:
  explicit Unlocked(bool wanted = true) : state_(wanted ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() {
    if (state_ != nullptr) take_back();
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  void take_back();  // release.cpp

  PyThreadState* state_;
};

// ---- Ops (op.cpp) ----

// Calls `op` with `args`. Null, with the error set, if it fails.
PyObject* call_op(const DynamicOp& op, PyObject* const* args, size_t count) noexcept;

// ---- Each of these adds one file's types and functions to the module ----

void add_errors(nb::module_& m);
void add_dtypes(nb::module_& m);
void add_devices(nb::module_& m);
void add_generators(nb::module_& m);
void add_autocast(nb::module_& m);
nb::object add_tensor(nb::module_& m);
void add_factories(nb::module_& m);
void add_dlpack(nb::class_<Tensor>& tensor);
void add_ops(nb::module_& m, nb::handle tensor_type);
void add_gradients(nb::module_& m);
void add_compile(nb::module_& m);
void add_control_flow(nb::module_& m);
void add_files(nb::module_& m);
void add_global(nb::module_& parent);
void add_report(nb::module_& m);
// Lets Ctrl-C stop ops in their middle (interrupt.cpp).
void add_interrupt();

}  // namespace tenon::python
