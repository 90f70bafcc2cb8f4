// Helpers of host loops: addresses of tensors, and evenly spaced numbers. Declares each loop. Internal.
#pragma once

#include "core/device/device_state.h"
#include "core/interpreter/inference.h"
#include "core/ops/op_call.h"
#include "core/tensor/factory.h"
#include "core/tensor/opened_devices.h"
#include "core/vm/storage.h"

namespace tenon::host_loops {

inline bool on_host(const DeviceState* device) {
  return device->synchronous && device->mapped && is_host_device(device);
}

// True if input `index` is in memory of the host device.
inline bool lies_at_hand(const OpCall& call, size_t index) {
  if (index >= call.inputs.size() || call.inputs[index] == nullptr || !call.inputs[index]->defined()) return false;
  const TensorImpl& impl = *call.inputs[index]->impl();
  return impl.storage != nullptr && impl.stand_in == nullptr && impl.elements > 0 && on_host(impl.device);
}
// True if input `index` is also row-major.
inline bool at_hand(const OpCall& call, size_t index) {
  return lies_at_hand(call, index) && call.inputs[index]->impl()->contiguous;
}

// True if input `index` also has the dtype and device of input 0.
inline bool alike(const OpCall& call, size_t index) {
  if (!at_hand(call, index)) return false;
  const TensorImpl &first = *call.inputs[0]->impl(), &other = *call.inputs[index]->impl();
  return first.dtype == other.dtype && first.device == other.device;
}
// True if input `index` also has the dims of input 0.
inline bool same_shape(const OpCall& call, size_t index) {
  return alike(call, index) && call.inputs[0]->impl()->dims == call.inputs[index]->impl()->dims;
}

inline bool real(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

template <class T>
const T* elements_of(const Tensor& tensor) {
  return static_cast<const T*>(tensor.data());
}

inline Tensor made(const Dims& dims, DType dtype, DeviceState* device) {
  return value_or_throw(make_tensor(device, dtype, dims));
}

// The device of a factory if it is the host device, else null.
inline DeviceState* host_of(const OpCall& call) {
  DeviceState* device = call.device != nullptr ? call.device : Device::current().state();
  return on_host(device) ? device : nullptr;
}

inline constexpr int32_t kBlock = 256;  // a constant, so that the compiler vectorises loops

// to[i] = from + (first + i) * step, for `count` numbers.
template <class T>
void write_steps(T* to, int32_t first, int32_t count, T from, T step) {
  const auto some = [&](int32_t i, int32_t n) {
    for (int32_t k = i; k < i + n; ++k) to[k] = static_cast<T>(first + k) * step + from;
  };
  int32_t i = 0;
  for (; i + kBlock <= count; i += kBlock) some(i, kBlock);
  some(i, count - i);
}

// Half of the numbers are computed from the start and half from the end, so that both ends are exact.
template <class T>
void spaced(T* to, double start, double end, int32_t steps) {
  const auto step = static_cast<T>((end - start) / (steps - 1));
  const int32_t half = steps / 2;
  write_steps(to, 0, half, static_cast<T>(start), step);
  write_steps(to + half, half + 1 - steps, steps - half, static_cast<T>(end), step);
}

// Calls some(first, n) for blocks of constant length, so that the compiler vectorises its loop.
template <class Some>
[[gnu::always_inline]] inline void in_blocks(int64_t count, const Some& some) {
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) some(i, kBlock);
  some(i, static_cast<int32_t>(count - i));
}

#if defined(__x86_64__)
// Like the function above, compiled for 32-byte vectors. Products and sums are not fused, so the bits are the same.
template <class Some>
[[gnu::target("avx2")]] void in_wide_blocks(int64_t count, const Some& some) {
  in_blocks(count, some);
}
#endif

template <class Some>
void by_blocks(int64_t count, const Some& some) {
#if defined(__x86_64__)
  if (count > 16 && __builtin_cpu_supports("avx2") != 0) return in_wide_blocks(count, some);
#endif
  in_blocks(count, some);
}

#define HOST_LOOP(op) bool run_##op(const OpCall& call);
#include "core/interpreter/host_loops/loops.def"
#undef HOST_LOOP

}  // namespace tenon::host_loops
