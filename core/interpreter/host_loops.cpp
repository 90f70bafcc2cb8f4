#include "core/interpreter/host_loops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/device/device_state.h"
#include "core/interpreter/host_loop_parts.h"
#include "core/ops/attributes.h"
#include "core/ops/floating_point.h"
#include "core/ops/op_rows.h"
#include "core/tensor/factory.h"
#include "core/tensor/opened_devices.h"
#include "core/vm/storage.h"

namespace tenon {

using namespace host_loops;

namespace {

// Dtypes whose zero has no bits set and that `where` with a number 0 keeps.
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

// ---- matrices ----

constexpr int64_t kMostInOneLoop = int64_t{8} << 20;  // bytes; beyond them several threads write faster

// Copies the matrices of input 0 but for one triangle, which becomes 0. Of row i columns from i + `diagonal` + 1 on are
// above, columns below i + `diagonal` are below.
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
bool run_tril(const OpCall& call) { return triangle(call, call.attributes_as<TrilAttributes>().diagonal, true); }
bool run_triu(const OpCall& call) { return triangle(call, call.attributes_as<TriuAttributes>().diagonal, false); }

// Writes the column of each element of a triangle to `to`, a row after the other, and its row `count` places behind.
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
bool run_tril_indices(const OpCall& call) { return triangle_indices<TrilIndicesAttributes>(call, true); }
bool run_triu_indices(const OpCall& call) { return triangle_indices<TriuIndicesAttributes>(call, false); }

// Writes `count` elements of `size` bytes, `step` elements apart.
void write_apart(char* to, const char* from, int64_t count, int64_t step, size_t size) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * step * static_cast<int64_t>(size), from + i * size, size);
}

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
  switch (size) {  // so that a compiler knows the number
    case 4: write_apart(to + first * 4, from, length, side + 1, 4); break;
    case 8: write_apart(to + first * 8, from, length, side + 1, 8); break;
    default: write_apart(to + first * size, from, length, side + 1, bytes);
  }
  call.outputs[0] = std::move(result);
  return true;
}

// Matrices one after the other along the diagonal; a list is a matrix of one row.
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
  int64_t before = 0;  // bytes of a line
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

template <class T>
void write_identity(T* to, int64_t rows, int64_t columns) {
  std::memset(to, 0, static_cast<size_t>(rows * columns) * sizeof(T));
  for (int64_t i = 0; i < std::min(rows, columns); ++i) to[i * (columns + 1)] = T{1};
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

template <class T>
T sum_of(const T* from, int64_t count, int64_t step) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(from[i * step]);
  return static_cast<T>(sum);
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

// Elements along one axis, or along two that follow each other, which a device would take one after the other.
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

// ---- numbers ----

bool run_linspace(const OpCall& call) {
  constexpr int64_t most = int64_t{1} << 24;  // f32 counts so far
  const auto& a = call.attributes_as<LinspaceAttributes>();
  const DType dtype = a.dtype == DType::none ? DType::f32 : a.dtype;
  if (a.steps < 2 || a.steps > most || (dtype != DType::f32 && dtype != DType::f64)) return false;
  DeviceState* host = host_of(call);
  if (host == nullptr) return false;
  const double start = call.scalars[0].to_double(), end = call.scalars[1].to_double();
  const auto steps = static_cast<int32_t>(a.steps);
  Tensor result = made(Dims{a.steps}, dtype, host);
  const DefaultFloatingPoint floating_point;
  if (dtype == DType::f32) {
    spaced(static_cast<float*>(result.data()), start, end, steps);
  } else {
    spaced(static_cast<double*>(result.data()), start, end, steps);
  }
  call.outputs[0] = std::move(result);
  return true;
}

// Writes a given tensor. Long ones are filled by several threads.
bool fill(const OpCall& call, const Scalar& value) {
  constexpr int64_t most = int64_t{16} << 10;  // bytes
  const Tensor& output = call.outputs[0];
  const TensorImpl& impl = *output.impl();
  const int64_t bytes = impl.elements * dtype_size(impl.dtype);
  if (impl.storage == nullptr || impl.recorded != nullptr || !impl.contiguous || bytes == 0 || bytes > most)
    return false;
  if ((impl.dtype != DType::f32 && impl.dtype != DType::f64) || !on_host(impl.device)) return false;
  if (impl.dtype == DType::f32) {
    std::fill_n(static_cast<float*>(output.data()), impl.elements, static_cast<float>(value.to_double()));
  } else {
    std::fill_n(static_cast<double*>(output.data()), impl.elements, value.to_double());
  }
  impl.storage.note_write(call.op->name);
  return true;
}
bool run_fill(const OpCall& call) { return fill(call, call.scalars[0]); }
bool run_zero(const OpCall& call) { return fill(call, Scalar(0)); }

// ---- order ----

// Where values would go in `list`. Of the elements from a position on, the first half is left out where its last one
// lies before the value; NaN lies behind all numbers. Several values at once, since each step waits for the one before.
template <class T, bool kRight>
inline void search_some(const T* list, int32_t length, const T* values, int64_t* to, int32_t n) {
  int32_t position[16] = {};
  while (length > 0) {
    const int32_t half = (length + 1) / 2;
    const T* const probe = list + (half - 1);
    for (int32_t i = 0; i < n; ++i) {
      const T element = probe[position[i]];
      const bool ends = kRight ? element > values[i] : element >= values[i];
      position[i] += (static_cast<int32_t>(ends) - 1) & half;
    }
    length -= half;
  }
  for (int32_t i = 0; i < n; ++i) to[i] = position[i];
}

template <class T, bool kRight>
void search_list(const T* list, int32_t length, const T* values, int64_t* to, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) search_some<T, kRight>(list, length, values + i, to + i, 16);
  search_some<T, kRight>(list, length, values + i, to + i, static_cast<int32_t>(count - i));
}

template <class T>
void search(const Tensor& lists, const Tensor& values, int64_t* to, bool right) {
  const auto length = static_cast<int32_t>(lists.dim(-1));
  const int64_t rows = lists.rank() == 1 ? 1 : values.elements() / values.dim(-1);
  const int64_t each = values.elements() / rows;
  const auto run = right ? search_list<T, true> : search_list<T, false>;
  for (int64_t row = 0; row < rows; ++row) {
    run(elements_of<T>(lists) + row * length, length, elements_of<T>(values) + row * each, to + row * each, each);
  }
}

bool find_places(const OpCall& call, size_t list, size_t value, bool out_int32, bool right) {
  if (!at_hand(call, list) || !at_hand(call, value) || out_int32) return false;
  const Tensor &lists = *call.inputs[list], &values = *call.inputs[value];
  if (lists.dtype() != values.dtype() || lists.device() != values.device() || lists.rank() == 0) return false;
  if (lists.rank() > 1 && lists.rank() != values.rank()) return false;
  for (int32_t k = 0; k + 1 < lists.rank(); ++k) {
    if (lists.dim(k) != values.dim(k)) return false;
  }
  if (lists.dim(-1) > std::numeric_limits<int32_t>::max() / 2) return false;
  const DType dtype = lists.dtype();
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i32 && dtype != DType::i64) return false;
  Tensor result = made(values.dims(), DType::i64, values.impl()->device);
  auto* to = static_cast<int64_t*>(result.data());
  const DefaultFloatingPoint floating_point;
  switch (dtype) {
    case DType::f32: search<float>(lists, values, to, right); break;
    case DType::f64: search<double>(lists, values, to, right); break;
    case DType::i32: search<int32_t>(lists, values, to, right); break;
    default: search<int64_t>(lists, values, to, right);
  }
  call.outputs[0] = std::move(result);
  return true;
}

bool run_searchsorted(const OpCall& call) {
  const auto& a = call.attributes_as<SearchsortedAttributes>();
  return find_places(call, 0, 1, a.out_int32 != 0, a.right != 0);
}
bool run_bucketize(const OpCall& call) {
  const auto& a = call.attributes_as<BucketizeAttributes>();
  if (call.inputs[1] == nullptr || !call.inputs[1]->defined() || call.inputs[1]->rank() != 1) return false;
  return find_places(call, 1, 0, a.out_int32 != 0, a.right != 0);
}

// The median of all elements. The keys of floats are in order as unsigned numbers, NaN last.
bool run_median(const OpCall& call) {
  if (call.attributes_as<MedianAttributes>().overload != 0 || !at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (input.dtype != DType::f32) return false;
  const float* from = elements_of<float>(*call.inputs[0]);
  const int64_t count = input.elements;
  const auto key = [](float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000U);
  };
  float median = std::numeric_limits<float>::quiet_NaN();
  bool broken = false;
  for (int64_t i = 0; i < count; ++i) broken |= std::isunordered(from[i], from[i]);
  if (!broken) {
    std::vector<uint32_t> keys;
    int64_t wanted = (count - 1) / 2;
    constexpr int32_t shift = 20;
    if (count > 16384) {  // only the elements that share the first bits of the median
      std::vector<int64_t> counts(size_t{1} << (32 - shift));
      for (int64_t i = 0; i < count; ++i) ++counts[key(from[i]) >> shift];
      uint32_t bucket = 0;
      while (wanted >= counts[bucket]) wanted -= counts[bucket++];
      keys.reserve(static_cast<size_t>(counts[bucket]));
      for (int64_t i = 0; i < count; ++i) {
        if (key(from[i]) >> shift == bucket) keys.push_back(key(from[i]));
      }
    } else {
      keys.resize(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) keys[static_cast<size_t>(i)] = key(from[i]);
    }
    std::nth_element(keys.begin(), keys.begin() + wanted, keys.end());
    const uint32_t found = keys[static_cast<size_t>(wanted)];
    median = std::bit_cast<float>((found & 0x80000000U) != 0 ? found ^ 0x80000000U : ~found);
  }
  Tensor result = made(Dims(), DType::f32, input.device);
  *static_cast<float*>(result.data()) = median;
  call.outputs[0] = std::move(result);
  return true;
}

// ---- losses ----

// The losses of `n` targets go to `each` if that is given. False: a target is no class.
template <class T>
bool add_losses(const T* logs, int64_t classes, const int64_t* targets, int64_t n, int64_t ignored, const T* weights,
                T* each, double* sum, double* weight) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t target = targets[i];
    if (target == ignored) {
      if (each != nullptr) each[i] = 0;
      continue;
    }
    if (target < 0 || target >= classes) return false;
    const T part = weights == nullptr ? T{1} : weights[target];
    const T loss = -logs[i * classes + target] * part;
    if (each != nullptr) each[i] = loss;
    *sum += static_cast<double>(loss);
    *weight += static_cast<double>(part);
  }
  return true;
}

template <class T>
bool likelihood(const OpCall& call, std::string_view reduction, int64_t ignored) {
  const Tensor &logs = *call.inputs[0], &target = *call.inputs[1];
  const bool weighted = call.inputs[2] != nullptr && call.inputs[2]->defined();
  const T* weights = weighted ? elements_of<T>(*call.inputs[2]) : nullptr;
  const bool listed = reduction == "none";
  Tensor result = made(listed ? target.dims() : Dims(), logs.dtype(), logs.impl()->device);
  T* to = static_cast<T*>(result.data());
  const DefaultFloatingPoint floating_point;
  double sum = 0, weight = 0;
  if (!add_losses(elements_of<T>(logs), logs.dim(-1), elements_of<int64_t>(target), target.elements(), ignored, weights,
                  listed ? to : nullptr, &sum, &weight)) {
    return false;
  }
  if (!listed) *to = static_cast<T>(reduction == "mean" ? sum / weight : sum);
  call.outputs[0] = std::move(result);
  return true;
}

bool run_nll_loss(const OpCall& call) {
  const auto& a = call.attributes_as<NllLossAttributes>();
  if (!at_hand(call, 0) || !at_hand(call, 1)) return false;
  const TensorImpl &logs = *call.inputs[0]->impl(), &target = *call.inputs[1]->impl();
  const int32_t rank = logs.dims.rank();
  if (rank < 1 || rank > 2 || target.dims.rank() != rank - 1 || target.dtype != DType::i64) return false;
  if (rank == 2 && target.dims[0] != logs.dims[0]) return false;
  if (logs.device != target.device || (logs.dtype != DType::f32 && logs.dtype != DType::f64)) return false;
  if (call.inputs[2] != nullptr) {
    if (!at_hand(call, 2)) return false;
    const TensorImpl& weight = *call.inputs[2]->impl();
    if (weight.dtype != logs.dtype || weight.dims.rank() != 1 || weight.dims[0] != logs.dims[rank - 1]) return false;
  }
  const std::string_view reduction = a.reduction.view();
  if (reduction != "mean" && reduction != "sum" && reduction != "none") return false;
  return logs.dtype == DType::f32 ? likelihood<float>(call, reduction, a.ignore_index)
                                  : likelihood<double>(call, reduction, a.ignore_index);
}

// ---- which op has which ----

struct Row {
  OpId op;
  HostLoop loop;
};
constexpr Row kRows[] = {
    {OpId::tril, run_tril},
    {OpId::triu, run_triu},
    {OpId::tril_indices, run_tril_indices},
    {OpId::triu_indices, run_triu_indices},
    {OpId::diag_embed, run_diag_embed},
    {OpId::block_diag, run_block_diag},
    {OpId::eye, run_eye},
    {OpId::trace, run_trace},
    {OpId::flip, run_flip},
    {OpId::linspace, run_linspace},
    {OpId::fill_, run_fill},
    {OpId::zero_, run_zero},
    {OpId::nextafter, run_nextafter},
    {OpId::erfinv, run_erfinv},
    {OpId::logspace, run_logspace},
    {OpId::addcdiv, run_addcdiv},
    {OpId::cross, run_cross},
    {OpId::kron, run_kron},
    {OpId::outer, run_outer},
    {OpId::addr, run_addr},
    {OpId::fft_ihfft, run_fft_ihfft},
    {OpId::masked_scatter, run_masked_scatter},
    {OpId::equal, run_equal},
    {OpId::searchsorted, run_searchsorted},
    {OpId::bucketize, run_bucketize},
    {OpId::bincount, run_bincount},
    {OpId::median, run_median},
    {OpId::var, run_var},
    {OpId::std, run_std},
    {OpId::var_mean, run_var_mean},
    {OpId::std_mean, run_std_mean},
    {OpId::count_nonzero, run_count_nonzero},
    {OpId::nll_loss, run_nll_loss},
    {OpId::fused_sgd_, run_fused_sgd},
    {OpId::fused_adam_, run_fused_adam},
    {OpId::fused_adamw_, run_fused_adamw},
};

constexpr size_t kIds = 1 + static_cast<size_t>(std::max_element(std::begin(kRows), std::end(kRows), [](Row a, Row b) {
                                                  return a.op < b.op;
                                                })->op);
constexpr auto kLoops = [] {
  std::array<HostLoop, kIds> loops{};
  for (const Row& row : kRows) loops[static_cast<size_t>(row.op)] = row.loop;
  return loops;
}();

}  // namespace

HostLoop host_loop(const OpInfo& op) { return op.id < kIds ? kLoops[op.id] : nullptr; }

}  // namespace tenon
