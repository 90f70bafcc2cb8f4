// fill, copy, unary, binary, ternary: kernels that compute each element independently.
#include "primitives/descriptor/quantisation.h"
#include "primitives/reference/call.h"
#include "primitives/reference/quantisation.h"
#include "primitives/reference/scalar.h"
#include "primitives/table/table.h"

namespace tenon::reference {
namespace {

// A bool keeps only the low bit of the result of a bit function, so that ~1 is 0.
template <class T>
T held(DType dtype, T value) {
  if constexpr (std::is_same_v<T, uint64_t>) return dtype == DType::boolean ? value & 1 : value;
  return value;
}

}  // namespace

void run_fill(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  with_compute_type(dst.dtype(), [&](auto type) {
    const auto value = call.parameter<decltype(type)>(0);
    for_each_index(dst.dims(), [&](const int64_t* index) { dst.set(index, value); });
  });
}

void run_copy(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  with_compute_type(src.dtype(), [&](auto type) {
    for_each_index(dst.dims(), [&](const int64_t* index) { dst.set(index, src.get<decltype(type)>(index)); });
  });
}

void run_unary(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const int32_t op = call.desc.attributes.unary.op;
  with_compute_type(src.dtype(), [&](auto type) {
    using T = decltype(type);
    const T a = call.parameter<T>(0);
    const T b = call.parameter<T>(1);
    for_each_index(dst.dims(), [&](const int64_t* index) {
      dst.set(index, held(dst.dtype(), unary<T>(op, src.get<T>(index), a, b)));
    });
  });
}

void run_binary(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand x = call[EP_ROLE_SRC];
  const Operand y = call[EP_ROLE_SRC_B];
  const int32_t op = call.desc.attributes.binary.op;
  if (descriptor::is_quantised(call.desc)) {
    const Quantised to(call, EP_ROLE_DST), left(call, EP_ROLE_SRC), right(call, EP_ROLE_SRC_B);
    return for_each_index(dst.dims(), [&](const int64_t* index) {
      const auto a = static_cast<float>(left.real(index)), b = static_cast<float>(right.real(index));
      to.write(index, binary<double>(op, a, b));
    });
  }
  const bool checked = table::binary_row(op)->check == table::Check::DIVISOR;
  with_compute_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    for_each_index(dst.dims(), [&](const int64_t* index) {
      const T left = x.get<T>(index);
      const T right = y.get<T>(index);
      const int32_t fault = checked ? divisor_fault(right) : 0;
      if (fault != 0) call.report(fault, EP_ROLE_SRC_B, static_cast<int64_t>(right), 0);
      dst.set(index, fault != 0 ? T{0} : held(dst.dtype(), binary<T>(op, left, right)));
    });
  });
}

void run_ternary(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand x = call[EP_ROLE_SRC];
  const Operand y = call[EP_ROLE_SRC_B];
  const Operand z = call[EP_ROLE_SRC_C];
  const int32_t op = call.desc.attributes.ternary.op;
  with_compute_type(z.dtype(), [&](auto type) {
    using T = decltype(type);
    for_each_index(dst.dims(), [&](const int64_t* index) {
      dst.set(index, ternary<T>(op, x.get<T>(index), y.get<T>(index), z.get<T>(index)));
    });
  });
}

}  // namespace tenon::reference
