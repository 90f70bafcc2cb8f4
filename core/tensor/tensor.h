// Tensor: a cheap handle to {dtype, shape, strides, offset, storage}. Copying it shares the data; views (reshape,
// slice, transpose, expand) are tensors over the same storage. Ops are free functions in core/ops (tenon::relu,
// tenon::matmul).
//
// Asynchrony: on an asynchronous device (GPUs) an op returns when it is submitted. Reading a tensor waits for the op
// that writes it; if that op fails, the read reports the error. Memory lent by borrow() or DLPack must not change until
// every result computed from it has been read or waited for (wait(), Device::synchronize()).
//
// Threads: each thread's calls take effect in its program order; concurrent reads are safe. If two unordered calls use
// one tensor and one of them writes, the values are unspecified, but there is no crash and no leak.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/device/export.h"
#include "core/tensor/device.h"
#include "core/tensor/int_list.h"
#include "core/tensor/nested_list.h"
#include "core/tensor/scalar.h"
#include "core/vm/shared_storage.h"
#include "primitives/dtype/dtype.h"
#include "primitives/dtype/half.h"
#include "primitives/shape/shape.h"
#include "primitives/status/error.h"

namespace tenon {

class Generator;  // core/tensor/generator.h
struct GradientState;
struct StandIn;

// The metadata of a tensor, without the address of its data.
struct TensorMeta {
  DType dtype = DType::none;
  Dims dims;
  Dims strides;  // in elements
};

struct TensorImpl {
  std::atomic<int32_t> count{1};
  DType dtype = DType::none;
  bool contiguous = true;  // cached layout class
  bool open = false;       // true if it is recorded and some sizes are expressions; dims and strides are then hints
  int64_t offset = 0;      // of the first element in the storage, in elements
  int64_t elements = 0;
  SharedStorage storage;              // null: a tensor without data (being recorded or probed)
  StandIn* stand_in = nullptr;        // owned: what it stands for (recording.h); null for most tensors
  GradientState* gradient = nullptr;  // owned: state for gradients; null for most tensors
  DeviceState* device = nullptr;
  Dims dims;
  Dims strides;
};

// The kind of size that is read from a tensor whose sizes are expressions (TensorImpl::open). The recorder notes a
// guard.
enum class SizeRead : uint8_t { dims, dim, strides, elements, contiguous };

// How the function of Tensor::access uses the elements.
enum class Access : uint8_t { read = 1, write = 2, read_write = 3 };
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}

class Tensor;
class Index;  // core/ops/index.h
using TensorList = std::vector<Tensor>;

class TENON_API Tensor {
 public:
  // An undefined tensor. Every function except defined(), impl() and copying throws invalid_argument for it.
  constexpr Tensor() : impl_(nullptr) {}
  explicit Tensor(TensorImpl* impl) : impl_(impl) {}  // takes over one count
  Tensor(const Tensor& other) : impl_(other.impl_) {
    if (impl_) impl_->count.fetch_add(1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  Tensor& operator=(Tensor other) & noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  // Assigns to a temporary view, such as x[0]: writes the elements, like copy_ and fill_.
  Tensor operator=(const Tensor& other) &&;
  Tensor operator=(Scalar value) &&;
  ~Tensor() {
    if (impl_) drop(impl_);
  }

  // An uninitialised tensor. Shapes are in elements; without `device`, Device::current(). Errors: invalid_argument
  // (negative dim, rank above 8, overflow, no dtype), out_of_device_memory.
  static Tensor empty(const Dims& dims, DType dtype, Device device = {});
  // A tensor holding a copy of the row-major elements at `data`.
  static Tensor copy_from_host(const void* data, const Dims& dims, DType dtype, Device device = {});
  template <class T>
  static Tensor from(std::span<const T> values, const Dims& dims, Device device = {});
  template <class T>
  static Tensor from(const std::vector<T>& values, const Dims& dims, Device device = {}) {
    return from<T>(std::span<const T>(values), dims, device);
  }
  // A list as a tensor of rank 1.
  template <class T>
  static Tensor from(const std::vector<T>& values) {
    return from<T>(std::span<const T>(values), Dims{values.size()});
  }
  // A number, a braced list of numbers, or nested lists of equal lengths: Tensor::from({{1, 2}, {3, 4}}). Without dtype
  // it is f32, i64 or bool, depending on the numbers. Errors: invalid_argument (lists of different lengths).
  static Tensor from(const NestedList& list, DType dtype = DType::none, Device device = {});
  // A tensor on the host device over memory that the caller owns, without a copy. `deleter` runs when the memory is no
  // longer used, on any thread. Empty `strides` (in elements) mean row-major. On an error `deleter` does not run.
  // Errors: invalid_argument (elements but no data, strides that are negative, of another rank or not row-major for a
  // packed dtype, a size beyond int64), unsupported (data that is not aligned to its element).
  static Tensor borrow(void* data, const Dims& dims, const Dims& strides, DType dtype, std::function<void()> deleter);
  // A tensor over the row-major `values`, without a copy: Tensor::borrow(std::span(vector), {2, 3}). The values must
  // live until the last work on the tensor and its views is done. Errors: invalid_argument (the values do not fill the
  // shape).
  template <class T>
  static Tensor borrow(std::span<T> values, const Dims& dims);

  bool defined() const { return impl_ != nullptr; }
  DType dtype() const { return at("dtype").dtype; }
  // While a program is recorded with open sizes, reading a size as a number binds the program to that number: a guard
  // is noted, and other sizes need another recording. sizes() (core/ops/sizes.h) reads them without binding.
  const Dims& dims() const { return read("dims", SizeRead::dims).dims; }
  const Dims& strides() const { return read("strides", SizeRead::strides).strides; }
  int32_t rank() const { return at("rank").dims.rank(); }
  // The dim of `axis`; negative axes count from the end. Errors: invalid_argument.
  int64_t dim(int64_t axis) const;
  int64_t elements() const { return read("elements", SizeRead::elements).elements; }
  // PyTorch's names of dim(axis), elements() and rank(), and the dims as a list.
  int64_t size(int64_t axis) const { return dim(axis); }
  const Dims& size() const { return dims(); }
  const Dims& sizes() const { return dims(); }
  const Dims& shape() const { return dims(); }
  int64_t numel() const { return elements(); }
  int64_t dim() const { return rank(); }
  int64_t bytes() const;
  bool contiguous() const { return read("contiguous", SizeRead::contiguous).contiguous; }
  bool is_contiguous() const { return contiguous(); }
  Device device() const { return Device(at("device").device); }

  // Copies the elements, row-major, to `data`, which must have room for bytes(). Waits for pending writes of this
  // tensor only. Errors: the error of the op that failed to compute this tensor; device_lost.
  void copy_to_host(void* data) const;
  // Overwrites the elements with those at `data`, row-major. The caller may change `data` when this returns.
  void copy_from(const void* data);
  // The elements as a vector of T, which must be the tensor's own type (float for f32, int64_t for i64, uint8_t for
  // bool).
  template <class T>
  std::vector<T> to_host() const;
  // Waits until the elements are computed, without reading them. Errors: as copy_to_host.
  void wait() const;
  // The element of a tensor with one element, as a number. Errors: invalid_argument if it has more or none.
  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }
  // item() as a condition: if (allclose(x, y)). An error for a tensor of several elements.
  explicit operator bool() const { return item<bool>(); }
  // The host address of the first element, after waiting for pending writes; null if the device's memory is not mapped.
  // Valid while the tensor lives.
  void* data() const;
  // Like data(), for a tensor whose dtype is dtype_of<T>(). Errors: invalid_argument (another dtype).
  template <class T>
  T* data_ptr() const;

  // Element or slice `i` along axis 0, like select(x, 0, i).
  Tensor operator[](int64_t i) const;
  // Indexes as described in core/ops/index.h: x.index({0, Slice(1, 5), Ellipsis, mask}), and writes to such an index.
  Tensor index(std::initializer_list<Index> indices) const;
  Tensor index(std::span<const Index> indices) const;
  const Tensor& index_put_(std::initializer_list<Index> indices, const Tensor& values) const;
  const Tensor& index_put_(std::initializer_list<Index> indices, Scalar value) const;

  // The elements of this tensor where `condition` is true, those of `other` elsewhere; like where(condition, *this,
  // other).
  Tensor where(const Tensor& condition, const Tensor& other) const;
  Tensor where(const Tensor& condition, Scalar other) const;

  // The slices along axis 0: for (const Tensor& row : x). Errors: invalid_argument (the rank is 0).
  class Slices;
  Slices begin() const;
  Slices end() const;

  // Runs `function` on the host with the address of the first element, in the order of this tensor's ops: earlier ops
  // are done, and later ops wait for the function. strides() gives the positions of the other elements. With
  // Access::write the elements are unspecified at first. If the host cannot reach the memory, the function gets a copy,
  // which is written back. Elements of other tensors may lie between strided ones and must not be written.
  //
  // On an asynchronous device access returns at once. The functions of a device run one after another on one thread of
  // Tenon; if one throws, the reader of the tensor gets the error, as with an op. On a synchronous device the function
  // runs on the caller's thread, which gets the exception. The function may read the metadata of a tensor and drop
  // tensors; every other call of Tenon throws. Errors: invalid_argument (writing through an expanded view).
  void access(Access mode, std::function<void(void* data)> function) const;

  // This tensor on `device`; the tensor itself if it is already there.
  Tensor to(Device device) const;
  // This tensor with elements of `dtype`; the tensor itself if it already has that dtype.
  Tensor to(DType dtype) const;

  // Gradients (see core/autograd/autograd.h). A tensor requires a gradient if requires_grad_ was called on it or if an
  // op made it from one that does. A leaf is a tensor that no such op made.
  bool requires_grad() const;
  bool is_leaf() const;
  // Makes a leaf require a gradient, or stops it. Returns the tensor itself. Errors: invalid_argument (the dtype is not
  // floating, the tensor is not a leaf).
  const Tensor& requires_grad_(bool wanted = true) const;
  // The gradient that backward() has accumulated for this leaf, or for this tensor after retain_grad(); undefined if
  // there is none yet.
  Tensor grad() const;
  // Replaces the gradient that grad() returns; an undefined tensor clears it. Errors: invalid_argument (another shape,
  // dtype or device; the tensor keeps no gradient).
  void set_grad(const Tensor& gradient) const;
  // Keeps the gradient of a tensor that is not a leaf at the next backward(). Errors: invalid_argument (it requires
  // none).
  void retain_grad() const;
  // A tensor over the same elements that requires no gradient. Gradients do not follow writes through it, but backward
  // fails if such a write changed an element that it needs.
  Tensor detach() const;
  // Computes the gradients of this tensor, whose elements `gradient` weighs. Without `gradient` the tensor must have
  // one element, and its weight is 1.
  void backward() const;
  void backward(const Tensor& gradient) const;

  TensorImpl* impl() const { return impl_; }

#include "core/tensor/methods.inc"

 private:
  static void drop(TensorImpl* impl) {
    if (impl->count.load(std::memory_order_acquire) == 1 || impl->count.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy(impl);
    }
  }
  static void destroy(TensorImpl* impl);
  template <class T>
  static void require_full(const char* function, std::span<T> values, const Dims& dims);

  // The TensorImpl; throws an error that names the member `function` if the tensor is undefined. Code that knows the
  // tensor to be defined uses impl().
  TensorImpl& at(const char* function) const {
    if (impl_ == nullptr) [[unlikely]]
      refuse_undefined(function);
    return *impl_;
  }
  [[noreturn, gnu::cold]] static void refuse_undefined(const char* function);
  // Like at(), for a read of sizes as numbers.
  TensorImpl& read(const char* function, SizeRead what) const {
    TensorImpl& impl = at(function);
    if (impl.open) [[unlikely]]
      read_open(impl, what, 0);
    return impl;
  }
  [[gnu::cold]] static void read_open(TensorImpl& impl, SizeRead what, int64_t axis);

  TensorImpl* impl_;
};

// The position of an iteration over a tensor.
class Tensor::Slices {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Tensor;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Tensor;

  Slices(const Tensor& tensor, int64_t i) : tensor_(&tensor), i_(i) {}
  Tensor operator*() const { return (*tensor_)[i_]; }
  Slices& operator++() {
    ++i_;
    return *this;
  }
  Slices operator++(int) { return {*tensor_, i_++}; }
  friend bool operator==(const Slices& a, const Slices& b) { return a.i_ == b.i_; }

 private:
  const Tensor* tensor_;
  int64_t i_;
};
inline Tensor::Slices Tensor::begin() const {
  (void)dim(0);
  return {*this, 0};
}
inline Tensor::Slices Tensor::end() const { return {*this, dim(0)}; }

// The DType of a C++ type: float is f32, bool is bool.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, float16>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::boolean;
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
    return sizeof(T) == 1 ? DType::i8 : sizeof(T) == 2 ? DType::i16 : sizeof(T) == 4 ? DType::i32 : DType::i64;
  else if constexpr (std::is_integral_v<T>)
    return sizeof(T) == 1 ? DType::u8 : sizeof(T) == 2 ? DType::u16 : sizeof(T) == 4 ? DType::u32 : DType::u64;
  else
    return DType::none;
}

template <class T>
void Tensor::require_full(const char* function, std::span<T> values, const Dims& dims) {
  static_assert(dtype_of<std::remove_const_t<T>>() != DType::none,
                "no element type of Tenon is stored as this C++ type");
  if (checked_count(dims) == static_cast<int64_t>(values.size())) return;
  throw Error(Code::invalid_argument, std::string(function) + ": " + std::to_string(values.size()) +
                                          " values do not fill shape " + to_string(dims) + ".");
}

template <class T>
Tensor Tensor::from(std::span<const T> values, const Dims& dims, Device device) {
  require_full("Tensor::from", values, dims);
  return copy_from_host(values.data(), dims, dtype_of<T>(), device);
}

template <class T>
Tensor Tensor::borrow(std::span<T> values, const Dims& dims) {
  static_assert(!std::is_const_v<T>, "ops may write to a tensor, so it cannot borrow constant memory");
  require_full("Tensor::borrow", values, dims);
  return borrow(values.data(), dims, {}, dtype_of<T>(), {});
}

template <class T>
T* Tensor::data_ptr() const {
  if (dtype_of<std::remove_const_t<T>>() != dtype()) {
    throw Error(Subject{"data_ptr"}, Code::invalid_argument,
                "the tensor holds " + std::string(dtype_name(dtype())) + ", not " +
                    std::string(dtype_name(dtype_of<std::remove_const_t<T>>())) + ".");
  }
  return static_cast<T*>(data());
}

template <class T>
std::vector<T> Tensor::to_host() const {
  const bool as_bytes = at("to_host").dtype == DType::boolean && sizeof(T) == 1;
  if (dtype_of<T>() != dtype() && !as_bytes) {
    throw Error(Subject{"to_host"}, Code::invalid_argument,
                "the tensor holds " + std::string(dtype_name(dtype())) + ", not " +
                    std::string(dtype_name(dtype_of<T>())) + ".");
  }
  std::vector<T> values(static_cast<size_t>(elements()));
  copy_to_host(values.data());
  return values;
}

}  // namespace tenon
