// The scalar functions of ep_api/scalar_ops.def over Highway vectors of float and double, and the loop that applies one
// of them to an array. A file includes it once per dispatch target.
#if defined(TENON_CPU_SIMD_SCALAR_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_SIMD_SCALAR_OPS_INL_H_
#undef TENON_CPU_SIMD_SCALAR_OPS_INL_H_
#else
#define TENON_CPU_SIMD_SCALAR_OPS_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "ep_api/ep_api.h"
#include "providers/cpu/elementwise/kernel.h"
#include "providers/cpu/simd/prelude-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {

template <int32_t id>
using Op = std::integral_constant<int32_t, id>;

#define TENON_VECTOR_LIT [[maybe_unused]] auto ep_lit = [](double value) HWY_ATTR { return lit<V>(value); };
#define EP_UNARY(name, id, domain, result, expression)                                 \
  template <class V>                                                                   \
  HWY_INLINE auto unary_row(Op<id>, V x, [[maybe_unused]] V a, [[maybe_unused]] V b) { \
    TENON_VECTOR_LIT                                                                   \
    return TENON_ROW_IN(domain, expression);                                           \
  }
#define EP_BINARY(name, id, domain, result, check, expression)    \
  template <class V>                                              \
  HWY_INLINE auto binary_row(Op<id>, V x, [[maybe_unused]] V y) { \
    TENON_VECTOR_LIT                                              \
    return TENON_ROW_IN(domain, expression);                      \
  }
#define EP_TERNARY(name, id, domain, result, expression) \
  template <class V>                                     \
  HWY_INLINE auto ternary_row(Op<id>, V x, V y, V z) {   \
    TENON_VECTOR_LIT                                     \
    return TENON_ROW_IN(domain, expression);             \
  }
// A scalar function that floats lack becomes x here; no table lists it.
#define TENON_ROW_IN(domain, expression) TENON_ROW_IN_##domain(expression)
#define TENON_ROW_IN_FLOAT(expression) expression
#define TENON_ROW_IN_SIGNED(expression) expression
#define TENON_ROW_IN_NUMERIC(expression) expression
#define TENON_ROW_IN_ANY(expression) expression
#define TENON_ROW_IN_COND(expression) expression
#define TENON_ROW_IN_INTEGER(expression) x
#define TENON_ROW_IN_BITS(expression) x
#define TENON_ROW_IN_BOOL(expression) x
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
#undef EP_BINARY
#undef EP_TERNARY
#undef TENON_ROW_IN
#undef TENON_ROW_IN_FLOAT
#undef TENON_ROW_IN_SIGNED
#undef TENON_ROW_IN_NUMERIC
#undef TENON_ROW_IN_ANY
#undef TENON_ROW_IN_COND
#undef TENON_ROW_IN_INTEGER
#undef TENON_ROW_IN_BITS
#undef TENON_ROW_IN_BOOL
#undef TENON_VECTOR_LIT

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using VecOf = hn::Vec<Tag<T>>;
inline constexpr bool masked_access_is_safe = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;
inline constexpr bool has_wide_rows = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;  // f64_prelude-inl.h

// The first `count` < Lanes elements at `from`; the other lanes are 0, or 1 with `ones`. `ones` is for functions that
// call the C library for unusual arguments, so that unused lanes do not trigger the call.
template <bool ones, class T>
HWY_INLINE VecOf<T> load_some(const T* from, size_t count) {
  const Tag<T> d;
  if constexpr (masked_access_is_safe) {
    const auto mask = hn::FirstN(d, count);
    const VecOf<T> some = hn::MaskedLoad(mask, d, from);
    return ones ? hn::IfThenElse(mask, some, hn::Set(d, T{1})) : some;
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(Tag<T>())];
    hn::Store(hn::Set(d, ones ? T{1} : T{0}), d, lanes);
    std::memcpy(lanes, from, count * sizeof(T));
    return hn::Load(d, lanes);
  }
}
template <class T>
HWY_INLINE void store_some(VecOf<T> value, T* to, size_t count) {
  const Tag<T> d;
  if constexpr (masked_access_is_safe) {
    hn::BlendedStore(value, hn::FirstN(d, count), d, to);
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(Tag<T>())];
    hn::Store(value, d, lanes);
    std::memcpy(to, lanes, count * sizeof(T));
  }
}

// Stores one result vector; a mask is stored as bytes 0 and 1.
template <class T>
HWY_INLINE void store_result(Tag<T> d, VecOf<T> value, void* dst, int64_t i, size_t count) {
  T* to = static_cast<T*>(dst) + i;
  if (hn::MaxLanes(d) == 1 || count == hn::Lanes(d))
    hn::StoreU(value, d, to);
  else
    store_some<T>(value, to, count);
}
template <class T>
HWY_INLINE void store_result(Tag<T> d, hn::Mask<Tag<T>> mask, void* dst, int64_t i, size_t count) {
  uint8_t* to = static_cast<uint8_t*>(dst) + i;
  if constexpr (sizeof(T) == 8) {
    // Spreads eight bits to eight bytes, then makes each byte 0 or 1.
    uint8_t bits[8] = {};
    hn::StoreMaskBits(d, mask, bits);
    const uint64_t spread = (bits[0] * 0x0101010101010101ULL) & 0x8040201008040201ULL;
    const uint64_t bytes = ((spread + 0x7f7f7f7f7f7f7f7fULL) >> 7U) & 0x0101010101010101ULL;
    std::memcpy(to, &bytes, count);
  } else {
    const hn::RebindToSigned<Tag<T>> di;
    const hn::Rebind<uint8_t, Tag<T>> d8;
    const auto ones = hn::IfThenElseZero(hn::RebindMask(di, mask), hn::Set(di, 1));
    if (hn::MaxLanes(d) == 1 || count == hn::Lanes(d)) {
      hn::StoreU(hn::DemoteTo(d8, ones), d8, to);
    } else {
      HWY_ALIGN uint8_t lanes[hn::MaxLanes(Tag<T>())];
      hn::StoreU(hn::DemoteTo(d8, ones), d8, lanes);
      std::memcpy(to, lanes, count);
    }
  }
}

template <class T>
HWY_INLINE VecOf<T> broadcast_parameter(const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return hn::Set(Tag<T>(), value);
}

// Computes f(src[0][i..], ...) for one whole vector, or for the first `count` elements.
template <int arity, class T, class Row>
HWY_INLINE auto row_at(const T* const* from, int64_t i, const Row& row) {
  constexpr Tag<T> d;
  if constexpr (arity == 1)
    return row(hn::LoadU(d, from[0] + i));
  else if constexpr (arity == 2)
    return row(hn::LoadU(d, from[0] + i), hn::LoadU(d, from[1] + i));
  else
    return row(hn::LoadU(d, from[0] + i), hn::LoadU(d, from[1] + i), hn::LoadU(d, from[2] + i));
}
template <int arity, bool ones, class T, class Row>
HWY_INLINE auto row_of_some(const T* const* from, int64_t i, size_t count, const Row& row) {
  if constexpr (arity == 1)
    return row(load_some<ones>(from[0] + i, count));
  else if constexpr (arity == 2)
    return row(load_some<ones>(from[0] + i, count), load_some<ones>(from[1] + i, count));
  else
    return row(load_some<ones>(from[0] + i, count), load_some<ones>(from[1] + i, count),
               load_some<ones>(from[2] + i, count));
}

// dst[i] = f(src[0][i], ...) with `arity` sources. `row` is f on vectors. `stream` writes past the cache.
template <class T, int arity, bool ones = false, class Row>
HWY_INLINE void for_each_vector(void* dst, const void* const* src, int64_t n, bool stream, const Row& row) {
  constexpr Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* from[arity];
  for (int k = 0; k < arity; ++k) from[k] = static_cast<const T*>(src[k]);
  int64_t i = 0;
  using Result = decltype(row_at<arity>(from, i, row));
  if constexpr (std::is_same_v<Result, VecOf<T>> && hn::MaxLanes(d) > 1) {
    if (stream) {
      T* to = static_cast<T*>(dst);
      const auto beyond = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) / sizeof(T)) % lanes;
      const int64_t head = beyond == 0 ? 0 : lanes - beyond < n ? lanes - beyond : n;
      if (head != 0)
        store_some<T>(row_of_some<arity, ones>(from, 0, static_cast<size_t>(head), row), to, static_cast<size_t>(head));
      for (i = head; i + lanes <= n; i += lanes) hn::Stream(row_at<arity>(from, i, row), d, to + i);
    }
  }
  for (; i + lanes <= n; i += lanes) store_result<T>(d, row_at<arity>(from, i, row), dst, i, hn::Lanes(d));
  if constexpr (hn::MaxLanes(d) > 1) {
    if (i == n) return;
    const auto rest = static_cast<size_t>(n - i);
    store_result<T>(d, row_of_some<arity, ones>(from, i, rest, row), dst, i, rest);
  }
}

template <int32_t op, class T>
void unary_loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  const VecOf<T> a = broadcast_parameter<T>(context.a);
  const VecOf<T> b = broadcast_parameter<T>(context.b);
  for_each_vector<T, 1>(dst, src, n, context.stream,
                        [a, b](VecOf<T> x) HWY_ATTR { return unary_row(Op<op>(), x, a, b); });
}
inline constexpr bool leaves_unusual(int32_t op) {
  return op == EP_BINARY_pow || op == EP_BINARY_fmod || op == EP_BINARY_mod || op == EP_BINARY_floor_div;
}

// Processes the rows of a launch one after the other.
template <int sources>
class RowsByOne {
 public:
  RowsByOne(void* dst, const void* const* src, const MapContext& context)
      : context_(context), left_(context.rows), dst_(static_cast<char*>(dst)) {
    for (int k = 0; k < sources; ++k) from_[k] = src[k];
  }
  bool any() const { return left_ > 0; }
  void next() {
    --left_;
    dst_ += context_.row_steps[0];
    for (int k = 0; k < sources; ++k) from_[k] = static_cast<const char*>(from_[k]) + context_.row_steps[k + 1];
  }
  void* dst() const { return dst_; }
  const void* const* src() const { return from_; }
  template <class T>
  VecOf<T> one(int k) const {
    return hn::Set(Tag<T>(), *static_cast<const T*>(from_[k]));
  }

 private:
  const MapContext& context_;
  int64_t left_;
  char* dst_;
  const void* from_[sources];
};

// x^y of one row for the exponents that need few operations: 3, -1 and -2. Returns false for others.
template <class T>
HWY_NOINLINE bool small_power(void* dst, const void* const* src, int64_t n, bool stream) {
  const T exponent = *static_cast<const T*>(src[1]);
  const auto inverse = [](VecOf<T> x) HWY_ATTR { return hn::Div(hn::Set(Tag<T>(), T{1}), x); };
  if (exponent == T{3}) {
    for_each_vector<T, 1>(dst, src, n, stream, [](VecOf<T> x) HWY_ATTR { return hn::Mul(hn::Mul(x, x), x); });
  } else if (exponent == T{-1}) {
    for_each_vector<T, 1>(dst, src, n, stream, inverse);
  } else if (exponent == T{-2}) {
    for_each_vector<T, 1>(dst, src, n, stream, [inverse](VecOf<T> x) HWY_ATTR {
      const VecOf<T> y = inverse(x);
      return hn::Mul(y, y);
    });
  } else {
    return false;
  }
  return true;
}

// For launches where one source is a single element, which stays in a register, or where there are several rows.
template <int32_t op, class T>
HWY_NOINLINE void binary_loop_by_one(void* dst, const void* const* src, int64_t n, MapContext& context) {
  RowsByOne<2> row(dst, src, context);
  if (context.single == MapContext::no_single) {
    for (; row.any(); row.next()) {
      for_each_vector<T, 2, leaves_unusual(op)>(row.dst(), row.src(), n, context.stream,
                                                [](VecOf<T> x, VecOf<T> y)
                                                    HWY_ATTR { return binary_row(Op<op>(), x, y); });
    }
    return;
  }
  if (context.single == 1) {
    for (; row.any(); row.next()) {
      const VecOf<T> one = row.one<T>(0);
      for_each_vector<T, 1, leaves_unusual(op)>(row.dst(), row.src() + 1, n, context.stream,
                                                [one](VecOf<T> y) HWY_ATTR { return binary_row(Op<op>(), one, y); });
    }
    return;
  }
  for (; row.any(); row.next()) {
    if constexpr (op == EP_BINARY_pow) {
      if (small_power<T>(row.dst(), row.src(), n, context.stream)) continue;
    }
    const VecOf<T> one = row.one<T>(1);
    for_each_vector<T, 1, leaves_unusual(op)>(row.dst(), row.src(), n, context.stream,
                                              [one](VecOf<T> x) HWY_ATTR { return binary_row(Op<op>(), x, one); });
  }
}

template <int32_t op, class T>
void binary_loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  if (context.single != 0) [[unlikely]]
    return binary_loop_by_one<op, T>(dst, src, n, context);
  for_each_vector<T, 2, leaves_unusual(op)>(dst, src, n, context.stream,
                                            [](VecOf<T> x, VecOf<T> y) HWY_ATTR { return binary_row(Op<op>(), x, y); });
}

// For launches where the second and third source are single elements.
template <int32_t op, class T>
HWY_NOINLINE void ternary_loop_by_two(void* dst, const void* const* src, int64_t n, MapContext& context) {
  const VecOf<T> y = hn::Set(Tag<T>(), *static_cast<const T*>(src[1]));
  const VecOf<T> z = hn::Set(Tag<T>(), *static_cast<const T*>(src[2]));
  for_each_vector<T, 1>(dst, src, n, context.stream,
                        [y, z](VecOf<T> x) HWY_ATTR { return ternary_row(Op<op>(), x, y, z); });
}

// For launches where the first source is a single element.
template <int32_t op, class T>
HWY_NOINLINE void ternary_loop_by_one(void* dst, const void* const* src, int64_t n, MapContext& context) {
  for (RowsByOne<3> row(dst, src, context); row.any(); row.next()) {
    const VecOf<T> x = row.one<T>(0);
    for_each_vector<T, 2>(row.dst(), row.src() + 1, n, context.stream,
                          [x](VecOf<T> y, VecOf<T> z) HWY_ATTR { return ternary_row(Op<op>(), x, y, z); });
  }
}

template <int32_t op, class T>
void ternary_loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  if (context.single == 1) return ternary_loop_by_one<op, T>(dst, src, n, context);
  if (context.single != 0) return ternary_loop_by_two<op, T>(dst, src, n, context);
  for_each_vector<T, 3>(dst, src, n, context.stream,
                        [](VecOf<T> x, VecOf<T> y, VecOf<T> z) HWY_ATTR { return ternary_row(Op<op>(), x, y, z); });
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
