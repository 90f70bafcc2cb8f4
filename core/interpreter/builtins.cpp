// The builtin ops: the core itself allocates or moves their outputs, without a primitive.
#include <array>
#include <vector>

#include "core/interpreter/host_loops/parts.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/ladder.h"
#include "core/interpreter/transfer.h"
#include "core/ops/attributes.h"
#include "core/ops/floating_point.h"
#include "core/ops/ops.h"
#include "core/ops/rules.h"
#include "core/tensor/opened_devices.h"

namespace tenon::ops {
namespace {

// 0, 1, 2, ...: loading numbers is faster than converting them.
template <class Wide>
constexpr std::array<Wide, host_loops::kBlock> counted = [] {
  std::array<Wide, host_loops::kBlock> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<Wide>(i);
  return numbers;
}();

// Writes start + first step, start + (first + 1) step, ... The compiler vectorises this: n is usually a constant, and
// at most kBlock.
template <class T, class Wide>
[[gnu::always_inline]] inline void write_steps(T* to, int64_t first, int32_t n, Wide start, Wide step) {
  const Wide base = static_cast<Wide>(first);
  for (int32_t i = 0; i < n; ++i) to[i] = static_cast<T>(start + (base + counted<Wide>[static_cast<size_t>(i)]) * step);
}

// Writes start, start + step, ... Whole numbers are computed in i64, others in f64, and rounded once to T.
template <class T>
void write_range(T* to, int64_t count, const OpCall& call) {
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  const auto number = [](const Scalar& s) {
    return std::is_integral_v<T> ? static_cast<Wide>(s.to_int()) : static_cast<Wide>(s.to_double());
  };
  const Wide start = number(call.scalars[0]);
  const Wide step = number(call.scalars[2]);
  const DefaultFloatingPoint floating_point;
  host_loops::by_blocks(
      count, [&](int64_t first, int32_t n)
                 __attribute__((always_inline)) { write_steps(to + first, first, n, start, step); });
}

template <class T>
Tensor stepped(const OpCall& call, const FullAttributes& attributes) {
  const int64_t count = element_count(attributes.dims.dims());
  if (call.device == value_or_throw(host_device_state())) {
    Tensor made = Tensor::empty(attributes.dims.dims(), attributes.dtype, Device(call.device));
    if (count > 0) write_range(static_cast<T*>(made.data()), count, call);
    return made;
  }
  std::vector<T> values(static_cast<size_t>(count));
  write_range(values.data(), count, call);
  return Tensor::copy_from_host(values.data(), attributes.dims.dims(), dtype_of<T>(), Device(call.device));
}

}  // namespace

void run_empty(const OpCall& call) {
  const auto& attributes = call.attributes_as<FullAttributes>();
  call.outputs[0] = Tensor::empty(attributes.dims.dims(), attributes.dtype, Device(call.device));
}

// The scalars of arange are start, end and step.
void run_arange(const OpCall& call) {
  const auto& attributes = call.attributes_as<FullAttributes>();
  switch (attributes.dtype) {
    case DType::i32: call.outputs[0] = stepped<int32_t>(call, attributes); break;
    case DType::f32: call.outputs[0] = stepped<float>(call, attributes); break;
    case DType::f64: call.outputs[0] = stepped<double>(call, attributes); break;
    default: call.outputs[0] = stepped<int64_t>(call, attributes);
  }
  if (call.device != value_or_throw(host_device_state())) count_moved(static_cast<uint64_t>(call.outputs[0].bytes()));
}

void run_to(const OpCall& call) {
  uint64_t moved = 0;
  call.outputs[0] = transfer(*call.inputs[0], call.device, &moved);
  count_moved(moved);
}

void run_copy_from(const OpCall& call) {
  const Tensor& src = *call.inputs[0];
  const bool apart = src.impl()->device == value_or_throw(host_device_state()) &&
                     src.impl()->storage != call.outputs[0].impl()->storage;
  store_into_view(call.outputs[0], apart ? src : dense_copy(src));
}

// A copy of input 0 in which the view that `take` returns of it holds input 1.
template <class Take>
static void run_written(const OpCall& call, const Take& take) {
  value_or_throw(device_of(call));
  const InterpreterScope scope(eager_interpreter());
  Tensor result = clone(*call.inputs[0]);
  Tensor part = take(result);
  copy_(part, *call.inputs[1]);
  call.outputs[0] = std::move(result);
}

void run_slice_scatter(const OpCall& call) {
  const auto& attributes = call.attributes_as<SliceAttributes>();
  run_written(call, [&](const Tensor& whole) {
    return slice(whole, attributes.axis, attributes.start, attributes.end, attributes.step);
  });
}

void run_select_scatter(const OpCall& call) {
  const auto& attributes = call.attributes_as<SelectAttributes>();
  run_written(call, [&](const Tensor& whole) { return select(whole, attributes.axis, attributes.index); });
}

}  // namespace tenon::ops
