// Reading and writing x[...]. This file turns Python objects into the indices of core/ops/index.h, which does the work.
// A refused index is an IndexError, as in NumPy and PyTorch.
#include "core/ops/index.h"

#include <utility>
#include <vector>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

// The most indices in one pair of brackets: one per axis, and new axes between them.
constexpr size_t kMostIndices = 24;

// The tensor that is indexed, and its indices.
struct Key {
  Tensor tensor;
  std::vector<Index> indices;
};

bool is_bool(PyObject* object) { return PyBool_Check(object) || value_of(object).get<bool>() != nullptr; }

// True for integers that can be a position. A tensor is not one, nor is an array, which has __index__ too.
bool is_integer(PyObject* object) {
  return PyLong_Check(object) || (PyIndex_Check(object) && !PySequence_Check(object));
}

int64_t integer(PyObject* object) {
  const Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_IndexError);
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

int64_t position(PyObject* object, int64_t axis, int64_t size) {
  const int64_t at = integer(object);
  if (at < -size || at >= size) {
    refuse_index(fmt::format("index {} is out of bounds for dimension {} with size {}", at, axis, size));
  }
  return at;
}

Slice slice_of(PyObject* object) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(object, &start, &stop, &step) < 0) throw nb::python_error();
  if (step <= 0) refuse(PyExc_ValueError, "step must be greater than zero");
  return Slice(start, stop, step);
}

// A list or an array converted to an index tensor: a mask or positions.
Tensor index_tensor(PyObject* object, const Tensor& indexed) {
  Tensor made = tensor_of_data(object, indexed.device());
  if (made.elements() == 0 && made.dtype() == DType::f32) return made.to(DType::i64);
  if (is_floating(made.dtype())) {
    refuse_index(
        "only integers, slices (`:`), ellipsis (`...`), None and long or bool Variables are valid indices (got float)");
  }
  return made;
}

// How many axes `item` consumes.
int32_t axes_taken(PyObject* item) {
  if (item == Py_None || item == Py_Ellipsis) return 0;
  if (const Tensor* tensor = tensor_in(item)) return tensor->dtype() == DType::boolean ? tensor->rank() : 1;
  return is_bool(item) ? 0 : 1;
}

// Reads a key item by item.
class Reader {
 public:
  Reader(Tensor tensor, PyObject** items, size_t count) : key_{std::move(tensor), {}} {
    int32_t taken = 0, ellipses = 0;
    std::vector<nb::object> given;
    for (size_t i = 0; i < count; ++i) {
      // A list or an array shows only as a tensor whether it is a mask.
      const bool plain = tensor_in(items[i]) != nullptr || items[i] == Py_None || items[i] == Py_Ellipsis ||
                         PySlice_Check(items[i]) || is_bool(items[i]) || is_integer(items[i]);
      given.push_back(plain ? nb::borrow(items[i]) : object_of(index_tensor(items[i], key_.tensor)));
      taken += axes_taken(given.back().ptr());
      ellipses += items[i] == Py_Ellipsis ? 1 : 0;
    }
    if (ellipses > 1) refuse_index("an index can only have a single ellipsis ('...')");
    if (taken > key_.tensor.rank()) {
      refuse_index(key_.tensor.rank() == 0 && taken == 1
                       ? "invalid index of a 0-dim tensor. Use `tensor.item()` to convert it to a number"
                       : fmt::format("too many indices for tensor of dimension {}", key_.tensor.rank()));
    }
    if (count > kMostIndices) refuse_index(fmt::format("{} indices are more than {}.", count, kMostIndices));
    rest_ = key_.tensor.rank() - taken;
    for (const nb::object& item : given) add(item.ptr());
  }

  Key key() && { return std::move(key_); }

 private:
  void add(PyObject* item) {
    if (item == Py_None) {
      key_.indices.emplace_back(None);
    } else if (item == Py_Ellipsis) {
      key_.indices.emplace_back(Ellipsis);
      axis_ += rest_;
    } else if (PySlice_Check(item)) {
      key_.indices.emplace_back(slice_of(item));
      ++axis_;
    } else if (const Tensor* tensor = tensor_in(item)) {
      add_tensor(item, *tensor);
    } else if (is_bool(item)) {
      add_bool(PyObject_IsTrue(item) == 1);
    } else {
      key_.indices.emplace_back(position(item, axis_, key_.tensor.dim(axis_)));
      ++axis_;
    }
  }

  // An index of rank 0 acts as the number or bool that it holds.
  void add_tensor(PyObject* item, const Tensor& tensor) {
    if (tensor.rank() == 0 && tensor.dtype() == DType::boolean) {
      const int truth = PyObject_IsTrue(item);
      if (truth < 0) throw nb::python_error();
      add_bool(truth == 1);
    } else if (tensor.rank() == 0 && !is_floating(tensor.dtype())) {
      key_.indices.emplace_back(position(item, axis_, key_.tensor.dim(axis_)));
      ++axis_;
    } else if (is_floating(tensor.dtype())) {
      refuse_index(fmt::format("tensors used as indices must be integers or bool, not {}", dtype_name(tensor.dtype())));
    } else {
      axis_ += axes_taken(item);
      key_.indices.emplace_back(tensor);
    }
  }

  // Adds a new axis, of length 1 for true and 0 for false. It is a slice of a longer view, since core's None always has
  // length 1.
  void add_bool(bool truth) {
    key_.tensor = tenon::unsqueeze(key_.tensor, axis_++);
    key_.indices.emplace_back(Slice(0, truth ? 1 : 0));
  }

  Key key_;
  int32_t axis_ = 0;  // the axis of the tensor that the next index applies to
  int32_t rest_ = 0;  // how many axes an ellipsis stands for
};

// A list of slices, ellipses, None or lists is one index, as in PyTorch. Old NumPy treated such a list as a tuple.
Key read(const Tensor& tensor, PyObject* object) {
  if (PyTuple_Check(object)) {
    return Reader(tensor, PySequence_Fast_ITEMS(object), static_cast<size_t>(PyTuple_GET_SIZE(object))).key();
  }
  return Reader(tensor, &object, 1).key();
}

template <size_t... I>
void put(const Tensor& tensor, [[maybe_unused]] std::span<const Index> indices, const Tensor& values,
         std::index_sequence<I...>) {
  tensor.index_put_({indices[I]...}, values);
}

// Tensor::index_put_ takes its indices as a braced list, whose length must be known at compile time.
template <size_t... N>
void put_any(const Tensor& tensor, std::span<const Index> indices, const Tensor& values, std::index_sequence<N...>) {
  using Put = void (*)(const Tensor&, std::span<const Index>, const Tensor&);
  static constexpr Put by_count[] = {[](const Tensor& t, std::span<const Index> all, const Tensor& v) {
    put(t, all, v, std::make_index_sequence<N>());
  }...};
  by_count[indices.size()](tensor, indices, values);
}

bool indexes_by_tensors(const Key& key) {
  for (const Index& index : key.indices)
    if (index.get<Tensor>() != nullptr) return true;
  return false;
}

// `object` as a tensor of elements to write into `tensor`.
Tensor values_of(PyObject* object, const Tensor& tensor) {
  if (const Tensor* values = tensor_in(object)) return *values;
  const Value value = value_of(object);
  if (const bool* truth = value.get<bool>()) return tenon::full(IntList(), *truth, tensor.dtype(), tensor.device());
  if (const int64_t* number = value.get<int64_t>())
    return tenon::full(IntList(), *number, tensor.dtype(), tensor.device());
  if (const double* number = value.get<double>())
    return tenon::full(IntList(), *number, tensor.dtype(), tensor.device());
  if (const std::optional<uint64_t> number = beyond_signed(object); number && tensor.dtype() == DType::u64)
    return tenon::full(IntList(), *number, DType::u64, tensor.device());
  return tensor_of_data(object, tensor.device()).to(tensor.dtype());
}

// Drops leading axes of length 1 that `tensor` does not have, as PyTorch does.
Tensor without_leading_ones(Tensor values, const Tensor& tensor) {
  while (values.rank() > tensor.rank() && values.dim(0) == 1) values = tenon::select(values, 0, 0);
  return values;
}

// Writes values that require a gradient into a tensor that does not require one yet. Writing a view would not connect
// the gradients, so this computes the new elements of the whole tensor and writes all of them.
void write_whole(const Tensor& tensor, PyObject* object, const Tensor& values) {
  const Tensor numbered = tenon::reshape(tenon::arange(tensor.elements(), DType::i64, tensor.device()), tensor.dims());
  const Key key = read(numbered, object);
  const Tensor positions = key.tensor.index(key.indices);
  const Tensor given = tenon::expand(without_leading_ones(values, positions), positions.dims());
  Tensor whole = tensor;
  tenon::copy_(whole, tenon::put(tensor, positions, given.to(tensor.dtype())));
}

void write(const Tensor& tensor, PyObject* object, PyObject* value) {
  const Tensor values = values_of(value, tensor);
  if (values.requires_grad() && !tensor.requires_grad() && grad_enabled()) return write_whole(tensor, object, values);
  const Key key = read(tensor, object);
  if (indexes_by_tensors(key)) {
    const Unlocked unlocked;
    put_any(key.tensor, key.indices, values.to(tensor.dtype()).to(tensor.device()),
            std::make_index_sequence<kMostIndices + 1>());
    return;
  }
  Tensor view = key.tensor.index(key.indices);
  const Tensor given = without_leading_ones(values, view);
  const Unlocked unlocked(view.elements() >= 4096);
  tenon::copy_(view, given);
}

}  // namespace

PyObject* get_item(PyObject* self, PyObject* key) noexcept {
  try {
    const Tensor& tensor = *tensor_in(self);
    if (PyLong_CheckExact(key) && tensor.rank() > 0) {
      return new_tensor(tenon::select(tensor, 0, position(key, 0, tensor.dim(0))));
    }
    if (PySlice_Check(key) && tensor.rank() > 0) {
      const Slice slice = slice_of(key);
      return new_tensor(tenon::slice(tensor, 0, slice.start, slice.end, slice.step));
    }
    const Key read_key = read(tensor, key);
    Tensor result;
    {
      const Unlocked unlocked(indexes_by_tensors(read_key));
      result = read_key.tensor.index(read_key.indices);
    }
    // Without an index the result is a new view, never the tensor itself.
    if (result.impl() == tensor.impl()) result = tenon::view(result, result.dims());
    return new_tensor(std::move(result));
  } catch (...) {
    set_index_error();
    return nullptr;
  }
}

int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept {
  try {
    if (value == nullptr) refuse(PyExc_TypeError, "Tensor does not support deleting items");
    write(*tensor_in(self), key, value);
    return 0;
  } catch (...) {
    set_index_error();
    return -1;
  }
}

}  // namespace tenon::python
