// Host loops that reduce to few numbers: variances with and without means, counts, comparisons, losses.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/interpreter/host_loops/parts.h"
#include "core/interpreter/side_threads.h"
#include "core/ops/attributes.h"
#include "core/ops/floating_point.h"
#include "primitives/infer/axis.h"
#include "primitives/infer/reduce.h"

namespace tenon::host_loops {
namespace {

// A row-major tensor as [outer, count, inner], whose middle axis is reduced, and the dims of the result.
struct Rows {
  int64_t outer = 1, count = 1, inner = 1;
  Dims dims;
};

// Nothing if `axes` are invalid or not adjacent.
std::optional<Rows> rows_of(const TensorImpl& input, std::span<const int64_t> axes, bool keep_dims) {
  const int32_t rank = input.dims.rank();
  const Result<uint32_t> mask = infer::axis_mask("", axes, rank);
  if (rank == 0 || !mask.ok()) return std::nullopt;
  const auto first = std::countr_zero(mask.value()), end = static_cast<int32_t>(std::bit_width(mask.value()));
  if (std::popcount(mask.value()) != end - first) return std::nullopt;
  Rows rows;
  for (int32_t axis = 0; axis < rank; ++axis) {
    (axis < first ? rows.outer : axis < end ? rows.count : rows.inner) *= input.dims[axis];
  }
  rows.dims = infer::reduce(input.dims, mask.value(), keep_dims);
  return rows;
}

// The variance or standard deviation of each row, and its mean if `mean` is not null.
template <class T>
void write_spreads(const T* from, const Rows& rows, double degrees, bool root, T* spread, T* mean) {
  for (int64_t i = 0; i < rows.outer * rows.inner; ++i) {
    const T* const row = from + i / rows.inner * rows.count * rows.inner + i % rows.inner;
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < rows.count; ++k) sum += static_cast<double>(row[k * rows.inner]);
    const double middle = sum / static_cast<double>(rows.count);
    for (int64_t k = 0; k < rows.count; ++k) {
      const double distance = static_cast<double>(row[k * rows.inner]) - middle;
      squares += distance * distance;
    }
    const double variance = squares / degrees;
    spread[i] = static_cast<T>(root ? std::sqrt(variance) : variance);
    if (mean != nullptr) mean[i] = static_cast<T>(middle);
  }
}

template <class T>
void spreads(const OpCall& call, const Rows& rows, double degrees, bool root) {
  Tensor spread = made(rows.dims, call.inputs[0]->dtype(), call.inputs[0]->impl()->device);
  Tensor mean;
  if (call.outputs.size() > 1) mean = made(rows.dims, spread.dtype(), spread.impl()->device);
  const DefaultFloatingPoint floating_point;
  write_spreads(elements_of<T>(*call.inputs[0]), rows, degrees, root, static_cast<T*>(spread.data()),
                mean.defined() ? static_cast<T*>(mean.data()) : nullptr);
  call.outputs[0] = std::move(spread);
  if (mean.defined()) call.outputs[1] = std::move(mean);
}

template <class Attributes>
bool run_spread(const OpCall& call, bool root) {
  constexpr int64_t most = 256;  // elements; for more, the vectors of the ops are faster
  const auto& a = call.attributes_as<Attributes>();
  if (!at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (input.elements > most || (input.dtype != DType::f32 && input.dtype != DType::f64)) return false;
  const std::optional<Rows> rows = rows_of(input, a.dim.span(), a.keepdim != 0);
  if (!rows) return false;
  const double degrees = std::max(static_cast<double>(rows->count) - static_cast<double>(a.correction), 0.0);
  input.dtype == DType::f32 ? spreads<float>(call, *rows, degrees, root) : spreads<double>(call, *rows, degrees, root);
  return true;
}

// The number of elements, of `n`, that are not 0.
template <class T>
int64_t count_of(const T* from, int64_t n) {
  int64_t count = 0;
  by_blocks(
      n, [&](int64_t first, int32_t block) __attribute__((always_inline)) {
        int32_t some = 0;
        for (int32_t i = 0; i < block; ++i) some += from[first + i] != 0 ? 1 : 0;
        count += some;
      });
  return count;
}

// The number of nonzero elements among the `n` from `first` on; nothing for dtypes that are counted otherwise.
std::optional<int64_t> nonzeros_of(const Tensor& input, int64_t first, int64_t n) {
  const auto count = [&]<class T>() { return count_of(elements_of<T>(input) + first, n); };
  switch (input.dtype()) {
    case DType::f32: return count.template operator()<float>();
    case DType::f64: return count.template operator()<double>();
    case DType::boolean:
    case DType::i8:
    case DType::u8: return count.template operator()<uint8_t>();
    case DType::i16:
    case DType::u16: return count.template operator()<uint16_t>();
    case DType::i32:
    case DType::u32: return count.template operator()<uint32_t>();
    case DType::i64:
    case DType::u64: return count.template operator()<uint64_t>();
    default: return std::nullopt;
  }
}

template <class T>
bool equal_in(const void* a, const void* b, int64_t count) {
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  for (int64_t first = 0; first < count; first += kBlock) {
    const auto n = static_cast<int32_t>(std::min<int64_t>(kBlock, count - first));
    int32_t different = 0;
    for (int32_t i = 0; i < n; ++i) different += x[first + i] != y[first + i];
    if (different != 0) return false;
  }
  return true;
}

// Writes the losses of `n` targets to `each` if it is given. False: a target is not a valid class.
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

}  // namespace

bool run_var(const OpCall& call) { return run_spread<VarAttributes>(call, false); }
bool run_std(const OpCall& call) { return run_spread<StdAttributes>(call, true); }
bool run_var_mean(const OpCall& call) { return run_spread<VarMeanAttributes>(call, false); }
bool run_std_mean(const OpCall& call) { return run_spread<StdMeanAttributes>(call, true); }

// Counts over all elements.
bool run_count_nonzero(const OpCall& call) {
  constexpr int64_t piece = int64_t{64} << 10;
  constexpr uint64_t worth_a_thread = 1 << 20;  // elements
  if (call.attributes_as<CountNonzeroAttributes>().dim.rank != 0 || !at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (!nonzeros_of(*call.inputs[0], 0, 0)) return false;
  const int64_t elements = input.elements;
  const auto pieces = static_cast<size_t>((elements + piece - 1) / piece);
  std::atomic<int64_t> count = 0;
  share_with(side_threads(static_cast<uint64_t>(elements), worth_a_thread), pieces, [&](size_t i) {
    const int64_t first = static_cast<int64_t>(i) * piece, n = std::min(piece, elements - first);
    const DefaultFloatingPoint floating_point;
    count += *nonzeros_of(*call.inputs[0], first, n);
  });
  Tensor result = made(Dims(), DType::i64, input.device);
  *static_cast<int64_t*>(result.data()) = count;
  call.outputs[0] = std::move(result);
  return true;
}

bool run_equal(const OpCall& call) {
  constexpr int64_t most = int64_t{64} << 10;  // elements; for more, several threads are faster
  if (!same_shape(call, 0) || !same_shape(call, 1)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (input.elements > most) return false;
  bool (*compare)(const void*, const void*, int64_t) = nullptr;
  switch (input.dtype) {
    case DType::f32: compare = equal_in<float>; break;
    case DType::f64: compare = equal_in<double>; break;
    case DType::i32: compare = equal_in<int32_t>; break;
    case DType::i64: compare = equal_in<int64_t>; break;
    default: return false;
  }
  Tensor result = made(Dims(), DType::boolean, input.device);
  const DefaultFloatingPoint floating_point;
  *static_cast<uint8_t*>(result.data()) =
      compare(call.inputs[0]->data(), call.inputs[1]->data(), input.elements) ? 1 : 0;
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

}  // namespace tenon::host_loops
