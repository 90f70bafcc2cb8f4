// Tenon's objects in Python: how each is wrapped, and what a Python object means to Tenon. Everything here is called
// with the interpreter lock.
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

// The T in `object`. Null: the object is no T, or one that T.__new__ made and no __init__ filled.
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

// The type Tensor, and where in its objects, of classes below it too, the C++ tensor lies. add_tensor sets them.
extern PyTypeObject* tensor_type;
extern ptrdiff_t tensor_offset;
// The tensor in `object`, or null. An undefined one in an object of Tensor.__new__ that no __init__ filled.
inline Tensor* tensor_in(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type != tensor_type) {
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) == 0) return nullptr;  // int, float, tuple
    if (PyType_IsSubtype(type, tensor_type) == 0) return nullptr;
  }
  return reinterpret_cast<Tensor*>(reinterpret_cast<std::byte*>(object) + tensor_offset);
}
// A new Python object for `tensor`; None for an undefined one. Null, with the error set, if memory ran out.
PyObject* new_tensor(Tensor tensor);
// The same as an object, and an exception if memory ran out.
nb::object object_of(Tensor tensor);
// The tensors in a sequence, undefined ones for None; an error of Python for anything else. `what` begins it.
TensorList tensors_of(const nb::handle& sequence, std::string_view what);
// A tensor with a copy of what tenon.tensor takes: a number, nested lists, an array, a tensor (factories.cpp).
Tensor tensor_of_data(PyObject* data, Device device);

// x[key] and x[key] = value (index.cpp).
PyObject* get_item(PyObject* self, PyObject* key) noexcept;
int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept;

// ---- Calls back into Python (gradients.cpp) ----

// `object`, held by something that any thread may drop.
std::shared_ptr<PyObject> kept(PyObject* object);
// Whether ops of this thread are remembered for gradients, as its `with` blocks say.
bool grad_enabled();
// For the time of a call from Tenon into Python: what grad_enabled() says there, and the end of blocks that the call
// leaves open.
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

// `object` as an argument of the dynamic call; a Value::Foreign where it means nothing to Tenon.
Value value_of(PyObject* object);
// Whether `object` is an int of Python that i64 can hold, which goes to `value`.
inline bool is_int64(PyObject* object, int64_t* value) {
  int overflow = 0;
  if (!PyLong_CheckExact(object)) return false;
  *value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}
// An int of Python that u64 can hold and i64 cannot; none of anything else.
std::optional<uint64_t> beyond_signed(PyObject* object);
// The dtype that `object` names: a tenon.DType, a NumPy dtype or scalar type, float, int, bool, or text.
std::optional<DType> dtype_in(PyObject* object);
// The same, or an error of Python that says what was given. `what` begins it: "tensor()".
DType require_dtype(PyObject* object, std::string_view what);
// The device that `object`, a tenon.Device or text, names; no device for None.
Device require_device(PyObject* object, std::string_view what);
// The tensors of a dict, by name. `what` begins the error of Python. (files.cpp)
NamedTensors named_tensors(const nb::dict& tensors, std::string_view what);

// ---- Memory (memory.cpp, dlpack.cpp, release.cpp) ----

// A tensor over the memory of `object`, which has Python's buffer protocol. No tensor if it has not; an error of Python
// if its elements have no dtype, or if it is read-only.
std::optional<Tensor> borrow_buffer(PyObject* object);
// The same as a copy on `device`.
std::optional<Tensor> copy_buffer(PyObject* object, Device device);
// A tensor over the memory of an object with __dlpack__. No tensor if it has none.
std::optional<Tensor> borrow_dlpack(PyObject* object);
// How the type Tensor gives its memory to others: the host's memory itself, or a copy that is read-only.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void release_buffer(PyObject* self, Py_buffer* view) noexcept;

// Drops one reference to `object`: now if the calling thread holds the interpreter lock, else when Python next runs
// pending calls. After the interpreter's end the object is left alone.
void release(PyObject* object) noexcept;

// ---- Errors (errors.cpp) ----

// Sets Python's error from the C++ exception that is being handled.
void set_error() noexcept;
// The same where an argument that Tenon refuses is an index: tenon.InvalidIndex, an IndexError of Python too.
void set_index_error() noexcept;
// The same for a call of op `name`: where no signature takes the arguments, tenon.InvalidCall, a TypeError of Python
// too, and the result is true.
bool set_call_error(std::string_view name) noexcept;
[[noreturn]] void refuse(PyObject* type, const std::string& sentence);
[[noreturn]] void refuse_index(const std::string& sentence);

// Gives up the interpreter lock for its life if `wanted`. Once the interpreter ends, a daemon thread that wants the
// lock back stops here for ever, as from Python 3.14 on: older ones would end the thread by unwinding its stack.
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

// ---- What each file adds to the module ----

void add_errors(nb::module_& m);
void add_dtypes(nb::module_& m);
void add_devices(nb::module_& m);
void add_generators(nb::module_& m);
nb::object add_tensor(nb::module_& m);
void add_factories(nb::module_& m);
void add_dlpack(nb::class_<Tensor>& tensor);
void add_ops(nb::module_& m, nb::handle tensor_type);
void add_gradients(nb::module_& m);
void add_compile(nb::module_& m);
void add_files(nb::module_& m);
void add_global(nb::module_& parent);
void add_report(nb::module_& m);
// Lets Ctrl-C stop ops in their middle (interrupt.cpp).
void add_interrupt();

}  // namespace tenon::python
