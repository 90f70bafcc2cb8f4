// Host loops that make and rearrange matrices: triangles, diagonals, identities, flips.
#include <algorithm>
#include <cstring>

#include "core/interpreter/host_loops/parts.h"
#include "core/ops/attributes.h"
#include "core/ops/floating_point.h"

namespace tenon::host_loops {
namespace {

// True for dtypes whose zero has no bits set and that `where` with a number 0 keeps.
bool plain(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
    case DType::u8: return true;
    default: return false;
  }
}

constexpr int64_t kMostInOneLoop = int64_t{8} << 20;  // bytes; above this size several threads write faster

// Copies the matrices of input 0 with zeros in one triangle. In row i, columns from i + `diagonal` + 1 on are above it,
// columns less than i + `diagonal` are below it.
bool triangle(const OpCall& call, int64_t diagonal, bool lower) {
  if (!at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  const int64_t size = dtype_size(input.dtype);
  if (input.dims.rank() < 2 || !plain(input.dtype) || input.elements * size > kMostInOneLoop) return false;
  const int64_t rows = input.dims[input.dims.rank() - 2], columns = input.dims[input.dims.rank() - 1];
  const int64_t shift = std::clamp(diagonal, -rows, columns) + (lower ? 1 : 0);
  const char* from = elements_of<char>(*call.inputs[0]);
  Tensor result = made(input.dims, input.dtype, input.device);
  char* to = static_cast<char*>(result.data());
  for (int64_t row = 0, all = input.elements / columns; row < all; ++row) {
    const auto cut = static_cast<size_t>(std::clamp<int64_t>(row % rows + shift, 0, columns) * size);
    const auto bytes = static_cast<size_t>(columns * size);
    if (lower) {
      std::memcpy(to, from, cut);
      std::memset(to + cut, 0, bytes - cut);
    } else {
      std::memset(to, 0, cut);
      std::memcpy(to + cut, from + cut, bytes - cut);
    }
    from += bytes;
    to += bytes;
  }
  call.outputs[0] = std::move(result);
  return true;
}

// Writes the column of each element of a triangle to `to`, row by row, and its row number `count` positions later.
template <class T>
void write_triangle(T* to, int64_t count, int64_t rows, int64_t columns, int64_t shift, bool lower) {
  T* row_list = to;
  T* column_list = to + count;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t cut = std::clamp<int64_t>(row + shift, 0, columns);
    const int64_t first = lower ? 0 : cut, end = lower ? cut : columns;
    for (int64_t column = first; column < end; ++column) {
      *row_list++ = static_cast<T>(row);
      *column_list++ = static_cast<T>(column);
    }
  }
}

template <class Attributes>
bool triangle_indices(const OpCall& call, bool lower) {
  constexpr int64_t most = int64_t{1} << 31;
  const auto& a = call.attributes_as<Attributes>();
  if (a.row < 1 || a.col < 1 || a.row >= most || a.col >= most) return false;
  if (a.dtype != DType::i64 && a.dtype != DType::i32) return false;
  DeviceState* host = host_of(call);
  if (host == nullptr) return false;
  const int64_t shift = std::clamp(a.offset, -a.row, a.col) + (lower ? 1 : 0);
  int64_t count = 0;
  for (int64_t row = 0; row < a.row; ++row) {
    const int64_t cut = std::clamp<int64_t>(row + shift, 0, a.col);
    count += lower ? cut : a.col - cut;
  }
  if (count == 0) return false;
  Tensor result = made(Dims{2, count}, a.dtype, host);
  if (a.dtype == DType::i64) {
    write_triangle(static_cast<int64_t*>(result.data()), count, a.row, a.col, shift, lower);
  } else {
    write_triangle(static_cast<int32_t*>(result.data()), count, a.row, a.col, shift, lower);
  }
  call.outputs[0] = std::move(result);
  return true;
}

// Writes `count` elements of `size` bytes, `step` elements apart.
void write_apart(char* to, const char* from, int64_t count, int64_t step, size_t size) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * step * static_cast<int64_t>(size), from + i * size, size);
}

template <class T>
void write_identity(T* to, int64_t rows, int64_t columns) {
  std::memset(to, 0, static_cast<size_t>(rows * columns) * sizeof(T));
  for (int64_t i = 0; i < std::min(rows, columns); ++i) to[i * (columns + 1)] = T{1};
}

template <class T>
T sum_of(const T* from, int64_t count, int64_t step) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(from[i * step]);
  return static_cast<T>(sum);
}

template <class T>
void reverse(T* to, const T* from, int64_t count) {
  by_blocks(
      count, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
        const T* const last = from + (count - 1 - first);
        T* const out = to + first;
        for (int32_t i = 0; i < n; ++i) out[i] = last[-i];
      });
}

void reverse(char* to, const char* from, int64_t count, int64_t size) {
  switch (size) {
    case 1: return reverse(to, from, count);
    case 2: return reverse(reinterpret_cast<uint16_t*>(to), reinterpret_cast<const uint16_t*>(from), count);
    case 4: return reverse(reinterpret_cast<uint32_t*>(to), reinterpret_cast<const uint32_t*>(from), count);
    default: return reverse(reinterpret_cast<uint64_t*>(to), reinterpret_cast<const uint64_t*>(from), count);
  }
}

}  // namespace

bool run_tril(const OpCall& call) { return triangle(call, call.attributes_as<TrilAttributes>().diagonal, true); }
bool run_triu(const OpCall& call) { return triangle(call, call.attributes_as<TriuAttributes>().diagonal, false); }

bool run_tril_indices(const OpCall& call) { return triangle_indices<TrilIndicesAttributes>(call, true); }
bool run_triu_indices(const OpCall& call) { return triangle_indices<TriuIndicesAttributes>(call, false); }

bool run_diag_embed(const OpCall& call) {
  constexpr int64_t most = int64_t{256} << 10;  // bytes
  const auto& a = call.attributes_as<DiagEmbedAttributes>();
  if (!at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (input.dims.rank() != 1 || !plain(input.dtype)) return false;
  if ((a.dim1 != -2 && a.dim1 != 0) || (a.dim2 != -1 && a.dim2 != 1)) return false;
  const int64_t length = input.dims[0], size = dtype_size(input.dtype);
  if (length > 256 || std::abs(a.offset) > 256) return false;
  const int64_t side = length + std::abs(a.offset);
  if (side * side * size > most) return false;
  const char* from = elements_of<char>(*call.inputs[0]);
  Tensor result = made(Dims{side, side}, input.dtype, input.device);
  char* to = static_cast<char*>(result.data());
  std::memset(to, 0, static_cast<size_t>(side * side * size));
  const int64_t first = a.offset >= 0 ? a.offset : -a.offset * side;
  const auto bytes = static_cast<size_t>(size);
  switch (size) {  // so that the compiler knows the size
    case 4: write_apart(to + first * 4, from, length, side + 1, 4); break;
    case 8: write_apart(to + first * 8, from, length, side + 1, 8); break;
    default: write_apart(to + first * size, from, length, side + 1, bytes);
  }
  call.outputs[0] = std::move(result);
  return true;
}

// Matrices one after another along the diagonal; a list is a matrix of one row.
bool run_block_diag(const OpCall& call) {
  int64_t rows = 0, columns = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!at_hand(call, i)) return false;
    const TensorImpl &first = *call.inputs[0]->impl(), &block = *call.inputs[i]->impl();
    if (block.dims.rank() > 2 || block.dtype != first.dtype || block.device != first.device) return false;
    const int64_t width = block.dims.rank() == 2 ? block.dims[1] : block.elements;
    rows += block.elements / width;
    columns += width;
  }
  if (rows == 0) return false;
  const TensorImpl& first = *call.inputs[0]->impl();
  const int64_t size = dtype_size(first.dtype);
  if (!plain(first.dtype) || columns > kMostInOneLoop / (rows * size)) return false;
  Tensor result = made(Dims{rows, columns}, first.dtype, first.device);
  char* to = static_cast<char*>(result.data());
  const int64_t line = columns * size;
  int64_t before = 0;  // bytes before a line
  for (const Tensor* input : call.inputs) {
    const TensorImpl& block = *input->impl();
    const int64_t width = (block.dims.rank() == 2 ? block.dims[1] : block.elements) * size;
    const char* from = elements_of<char>(*input);
    const char* const end = from + block.elements * size;
    for (; from != end; from += width, to += line) {
      std::memset(to, 0, static_cast<size_t>(before));
      std::memcpy(to + before, from, static_cast<size_t>(width));
      std::memset(to + before + width, 0, static_cast<size_t>(line - before - width));
    }
    before += width;
  }
  call.outputs[0] = std::move(result);
  return true;
}

bool run_eye(const OpCall& call) {
  constexpr int64_t most = 512;
  const auto& a = call.attributes_as<EyeAttributes>();
  const int64_t rows = a.n, columns = a.m_given != 0 ? a.m : a.n;
  if (rows < 1 || columns < 1 || rows > most || columns > most) return false;
  if (a.dtype != DType::f32 && a.dtype != DType::f64) return false;
  DeviceState* host = host_of(call);
  if (host == nullptr) return false;
  Tensor result = made(Dims{rows, columns}, a.dtype, host);
  if (a.dtype == DType::f32) {
    write_identity(static_cast<float*>(result.data()), rows, columns);
  } else {
    write_identity(static_cast<double*>(result.data()), rows, columns);
  }
  call.outputs[0] = std::move(result);
  return true;
}

bool run_trace(const OpCall& call) {
  if (!lies_at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (input.dims.rank() != 2 || (input.dtype != DType::f32 && input.dtype != DType::f64)) return false;
  const int64_t count = std::min(input.dims[0], input.dims[1]), step = input.strides[0] + input.strides[1];
  const DefaultFloatingPoint floating_point;
  Tensor result = made(Dims(), input.dtype, input.device);
  if (input.dtype == DType::f32) {
    *static_cast<float*>(result.data()) = sum_of(elements_of<float>(*call.inputs[0]), count, step);
  } else {
    *static_cast<double*>(result.data()) = sum_of(elements_of<double>(*call.inputs[0]), count, step);
  }
  call.outputs[0] = std::move(result);
  return true;
}

// Flips along one axis, or along two adjacent ones, which a device would do one after another.
bool run_flip(const OpCall& call) {
  const auto& a = call.attributes_as<FlipAttributes>();
  if (!at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  const int64_t size = dtype_size(input.dtype);
  const Dims flipped = a.dims.dims();
  const int64_t most = flipped.rank() == 2 ? kMostInOneLoop : int64_t{512} << 10;  // bytes
  if (size == 0 || input.elements * size > most || flipped.rank() < 1 || flipped.rank() > 2) return false;
  const int32_t rank = input.dims.rank();
  const auto axis_at = [&](int32_t k) { return flipped[k] < 0 ? flipped[k] + rank : flipped[k]; };
  const int64_t first = flipped.rank() == 1 ? axis_at(0) : std::min(axis_at(0), axis_at(1));
  const int64_t last = flipped.rank() == 1 ? first : std::max(axis_at(0), axis_at(1));
  if (first < 0 || last >= rank || last - first != flipped.rank() - 1) return false;
  int64_t outer = 1, turned = 1, inner = size;
  for (int32_t k = 0; k < rank; ++k) (k < first ? outer : k <= last ? turned : inner) *= input.dims[k];
  const char* from = elements_of<char>(*call.inputs[0]);
  Tensor result = made(input.dims, input.dtype, input.device);
  char* to = static_cast<char*>(result.data());
  for (int64_t i = 0; i < outer; ++i, from += turned * inner, to += turned * inner) {
    if (inner == size) {
      reverse(to, from, turned, size);
    } else {
      for (int64_t k = 0; k < turned; ++k) {
        std::memcpy(to + k * inner, from + (turned - 1 - k) * inner, static_cast<size_t>(inner));
      }
    }
  }
  call.outputs[0] = std::move(result);
  return true;
}

}  // namespace tenon::host_loops
