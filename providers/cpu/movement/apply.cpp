#include "providers/cpu/movement/apply.h"

#include "providers/cpu/primitive.h"
#include "providers/cpu/simd/copy_bytes.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cpu {
namespace {

template <int32_t op, class T>
T combined(T x, T update) {
  switch (op) {
    case EP_SCATTER_ADD: return scalar::ep_add(x, update);
    case EP_SCATTER_MUL: return scalar::ep_mul(x, update);
    case EP_SCATTER_MIN: return scalar::ep_min(x, update);
    case EP_SCATTER_MAX: return scalar::ep_max(x, update);
    default: return update;
  }
}

// True if all positions are equal. Usually the first and the last one decide.
bool are_equal(const int64_t* positions, int64_t n) {
  if (n == 0 || positions[0] != positions[n - 1]) return false;
  int64_t differences = 0;
  for (int64_t i = 0; i < n; ++i) differences |= positions[i] ^ positions[0];
  return differences == 0;
}

// Updates of one position are combined in a register, because a load waits for an earlier store to the same address.
template <int32_t op, class T>
void apply_each(void* places, const int64_t* positions, int64_t stride, const int64_t* lines, const void* updates,
                int64_t n) {
  T* const x = static_cast<T*>(places);
  const T* const y = static_cast<const T*>(updates);
  if (lines != nullptr) {
    for (int64_t i = 0; i < n; ++i) {
      T& place = x[positions[i] * stride + lines[i]];
      place = combined<op>(place, y[i]);
    }
  } else if (are_equal(positions, n)) {
    T& place = x[positions[0] * stride];
    T value = place;
    for (int64_t i = 0; i < n; ++i) value = combined<op>(value, y[i]);
    place = value;
  } else if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) x[positions[i]] = combined<op>(x[positions[i]], y[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      T& place = x[positions[i] * stride];
      place = combined<op>(place, y[i]);
    }
  }
}

template <int32_t op, class T>
void apply_row(void* places, const void* updates, int64_t n) {
  if constexpr (op == EP_SCATTER_ASSIGN) return copy_bytes(places, updates, static_cast<size_t>(n) * sizeof(T));
  T* const x = static_cast<T*>(places);
  const T* const y = static_cast<const T*>(updates);
  for (int64_t i = 0; i < n; ++i) x[i] = combined<op>(x[i], y[i]);
}

template <int32_t op, class T>
constexpr Apply both = {apply_each<op, T>, apply_row<op, T>};

template <class T>
Apply with_op(int32_t op) {
  switch (op) {
    case EP_SCATTER_ADD: return both<EP_SCATTER_ADD, T>;
    case EP_SCATTER_MUL: return both<EP_SCATTER_MUL, T>;
    case EP_SCATTER_MIN: return both<EP_SCATTER_MIN, T>;
    default: return both<EP_SCATTER_MAX, T>;
  }
}

}  // namespace

Apply apply_of(int32_t op, int32_t dtype) {
  if (op == EP_SCATTER_ASSIGN) {
    switch (dtype_size(dtype)) {
      case 1: return both<EP_SCATTER_ASSIGN, uint8_t>;
      case 2: return both<EP_SCATTER_ASSIGN, uint16_t>;
      case 4: return both<EP_SCATTER_ASSIGN, uint32_t>;
      default: return both<EP_SCATTER_ASSIGN, uint64_t>;
    }
  }
  switch (dtype) {
    case EP_DTYPE_f32: return with_op<float>(op);
    case EP_DTYPE_f64: return with_op<double>(op);
    case EP_DTYPE_i8: return with_op<int8_t>(op);
    case EP_DTYPE_i16: return with_op<int16_t>(op);
    case EP_DTYPE_i32: return with_op<int32_t>(op);
    case EP_DTYPE_u8: return with_op<uint8_t>(op);
    case EP_DTYPE_u16: return with_op<uint16_t>(op);
    case EP_DTYPE_u32: return with_op<uint32_t>(op);
    case EP_DTYPE_u64: return with_op<uint64_t>(op);
    default: return with_op<int64_t>(op);
  }
}

}  // namespace tenon::provider::cpu
