// Python's buffer protocol in both directions: memory of NumPy arrays, bytes and memoryviews as tensors, and memory of
// tensors as buffers.
#include <array>
#include <memory>

#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

// The letter of the struct module for elements of `dtype`; empty if there is none.
const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return "?";
    case DType::i8: return "b";
    case DType::i16: return "h";
    case DType::i32: return "i";
    case DType::i64: return "q";
    case DType::u8: return "B";
    case DType::u16: return "H";
    case DType::u32: return "I";
    case DType::u64: return "Q";
    case DType::f16: return "e";
    case DType::f32: return "f";
    case DType::f64: return "d";
    default: return "";
  }
}

DType sized(DTypeClass type_class, Py_ssize_t size) {
  for (int32_t id = 1; dtype_info(static_cast<DType>(id)).bits != 0; ++id) {
    const DTypeInfo& info = dtype_info(static_cast<DType>(id));
    if (info.type_class == type_class && info.bits == size * 8 && *format_of(static_cast<DType>(id)) != '\0') {
      return static_cast<DType>(id);
    }
  }
  return DType::none;
}

// The dtype for elements of `format` and `size` bytes; an empty DType if Tenon has none.
DType dtype_of_format(const char* format, Py_ssize_t size) {
  std::string_view letters = format == nullptr ? "B" : format;
  if (!letters.empty() && (letters[0] == '@' || letters[0] == '=' || letters[0] == '<')) letters.remove_prefix(1);
  if (letters.size() != 1) return DType::none;
  constexpr std::string_view signed_letters = "bhilqn", unsigned_letters = "BHILQN", floats = "efd";
  const char letter = letters[0];
  if (letter == '?') return DType::boolean;
  if (letter == 'c') return DType::u8;
  if (signed_letters.find(letter) != std::string_view::npos) return sized(DTypeClass::INT, size);
  if (unsigned_letters.find(letter) != std::string_view::npos) return sized(DTypeClass::UINT, size);
  return floats.find(letter) != std::string_view::npos ? sized(DTypeClass::FLOAT, size) : DType::none;
}

Dims dims_of(const Py_ssize_t* values, int rank, Py_ssize_t divisor) {
  std::array<int64_t, EP_MAX_RANK> dims{};
  for (int axis = 0; axis < rank; ++axis) dims[static_cast<size_t>(axis)] = values[axis] / divisor;
  return Dims(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank)));
}

// The memory of a Python object, and the dtype of its elements.
struct Source {
  nb::object view;  // a memoryview, which keeps the memory alive; invalid if the object has no buffer
  DType dtype = DType::none;

  const Py_buffer& buffer() const { return *PyMemoryView_GET_BUFFER(view.ptr()); }
};

// A bfloat16 array viewed as integers of the same size, since Python has no format for bfloat16.
Source viewed_as_integers(PyObject* object) {
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  const std::optional<DType> named = dtype.is_none() ? std::nullopt : dtype_in(dtype.ptr());
  if (!named || dtype_size(*named) == 0) return {};
  const nb::object integers = nb::handle(object).attr("view")(dtype_size(*named) == 1 ? "uint8" : "uint16");
  return {nb::steal(PyMemoryView_FromObject(integers.ptr())), *named};
}

Source source_of(PyObject* object) {
  if (PyObject_CheckBuffer(object) == 0) return {};
  Source source{nb::steal(PyMemoryView_FromObject(object)), DType::none};
  if (!source.view.is_valid()) {
    nb::python_error unreadable;
    source = viewed_as_integers(object);
    if (!source.view.is_valid()) throw unreadable;
  }
  const Py_buffer& view = source.buffer();
  if (source.dtype == DType::none) source.dtype = dtype_of_format(view.format, view.itemsize);
  if (source.dtype == DType::none) {
    refuse(PyExc_TypeError, fmt::format("No dtype is stored as elements of format '{}' with {} bytes.",
                                        view.format == nullptr ? "B" : view.format, view.itemsize));
  }
  if (view.ndim > EP_MAX_RANK) {
    refuse(PyExc_ValueError, fmt::format("An array of {} axes cannot become a tensor; a tensor has at most {} axes.",
                                         view.ndim, EP_MAX_RANK));
  }
  return source;
}

struct Export {
  Tensor tensor;
  std::unique_ptr<char[]> copy;  // elements of a tensor whose memory the host cannot address
  std::array<Py_ssize_t, EP_MAX_RANK> shape{}, strides{};
};

void fill(Export* made, PyObject* self, Py_buffer* view, int flags) {
  const Tensor& tensor = made->tensor;
  const DType dtype = tensor.dtype();
  if (*format_of(dtype) == '\0') {
    refuse(PyExc_BufferError, fmt::format("Python has no format for elements of {}.", dtype_name(dtype)));
  }
  void* data = nullptr;
  {
    const Unlocked unlocked;
    data = tensor.data();
    if (data == nullptr) {
      made->copy = std::make_unique<char[]>(static_cast<size_t>(tensor.bytes()) + 1);
      data = made->copy.get();
      tensor.copy_to_host(data);
    }
  }
  const Dims strides = made->copy == nullptr ? tensor.strides() : contiguous_strides(tensor.dims());
  const auto size = static_cast<Py_ssize_t>(dtype_size(dtype));
  for (int32_t axis = 0; axis < tensor.rank(); ++axis) {
    made->shape[static_cast<size_t>(axis)] = tensor.dims()[axis];
    made->strides[static_cast<size_t>(axis)] = strides[axis] * size;
  }
  const bool contiguous = is_contiguous(tensor.dims(), strides);
  if (!contiguous && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
    refuse(PyExc_BufferError, "The tensor is not contiguous.");
  }
  if ((flags & PyBUF_WRITABLE) != 0 && made->copy != nullptr) {
    refuse(PyExc_BufferError, fmt::format("The host cannot write the memory of {}.", tensor.device().spelling()));
  }
  view->buf = data;
  view->obj = Py_NewRef(self);
  view->len = tensor.bytes();
  view->readonly = made->copy != nullptr;
  view->itemsize = size;
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format_of(dtype)) : nullptr;
  view->ndim = tensor.rank();
  view->shape = (flags & PyBUF_ND) != 0 ? made->shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? made->strides.data() : nullptr;
  view->suboffsets = nullptr;
}

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    auto made = std::make_unique<Export>();
    made->tensor = *tensor_in(self);
    fill(made.get(), self, view, flags);
    view->internal = made.release();
    return 0;
  } catch (...) {
    set_error();
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) noexcept { delete static_cast<Export*>(view->internal); }

std::optional<Tensor> borrow_buffer(PyObject* object) {
  const Source source = source_of(object);
  if (!source.view.is_valid()) return std::nullopt;
  const Py_buffer& view = source.buffer();
  if (view.readonly != 0) {
    refuse(PyExc_ValueError, "The array is read-only, and a tensor over it could be written; tenon.tensor copies it.");
  }
  for (int axis = 0; axis < view.ndim; ++axis) {
    if (view.strides[axis] % view.itemsize == 0) continue;
    refuse(PyExc_ValueError,
           fmt::format("Axis {} has a stride of {} bytes, which is not a multiple of its element of {} bytes.", axis,
                       view.strides[axis], view.itemsize));
  }
  PyObject* kept = source.view.ptr();
  Tensor tensor =
      Tensor::borrow(view.buf, dims_of(view.shape, view.ndim, 1), dims_of(view.strides, view.ndim, view.itemsize),
                     source.dtype, [kept] { release(kept); });
  Py_INCREF(kept);  // The deleter gives this reference back. If the call fails, the deleter does not run.
  return tensor;
}

std::optional<Tensor> copy_buffer(PyObject* object, Device device) {
  const Source source = source_of(object);
  if (!source.view.is_valid()) return std::nullopt;
  const Py_buffer& view = source.buffer();
  const Dims dims = dims_of(view.shape, view.ndim, 1);
  if (PyBuffer_IsContiguous(&view, 'C') != 0) return Tensor::copy_from_host(view.buf, dims, source.dtype, device);
  const auto rows = std::make_unique<char[]>(static_cast<size_t>(view.len));
  if (PyBuffer_ToContiguous(rows.get(), &view, view.len, 'C') != 0) throw nb::python_error();
  return Tensor::copy_from_host(rows.get(), dims, source.dtype, device);
}

}  // namespace tenon::python
