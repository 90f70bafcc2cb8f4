// quantise and dequantise, and the code they share with products of quantised operands.
#include "primitives/reference/quantisation.h"

#include <algorithm>
#include <cmath>

#include "primitives/descriptor/quantisation.h"
#include "primitives/dtype/convert.h"

namespace tenon::reference {
namespace {

double greatest_finite(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3fn: return 448;
    case DType::f8e4m3fnuz: return 240;
    case DType::f6e2m3: return 7.5;
    case DType::f6e3m2: return 28;
    case DType::f4e2m1: return 6;
    default: return 57344;  // f8e5m2, f8e5m2fnuz
  }
}

// The least and the greatest number of an integer dtype.
struct Range {
  double least, greatest;
};

Range range_of(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.type_class == DTypeClass::UINT) return {0, std::ldexp(1.0, info.bits) - 1};
  return {-std::ldexp(1.0, info.bits - 1), std::ldexp(1.0, info.bits - 1) - 1};
}

}  // namespace

Quantised::Quantised(const Call& call, int32_t role) : operand_(call[role]) {
  const descriptor::Quantisable* row = descriptor::quantisable(call.desc.kind, role);
  if (row == nullptr) return;
  scale_ = call[row->scale_role];
  zero_point_ = call[row->zero_point_role];
  how_ = descriptor::quantisation_of(call.desc, *row);
}

void Quantised::parameter_index(const int64_t* index, int64_t* out) const {
  for (int32_t axis = 0; axis < operand_.rank(); ++axis) {
    const int64_t shared = descriptor::shared_along(how_, axis);
    out[axis] = shared == 0 ? 0 : index[axis] / shared;
  }
}

double Quantised::scale(const int64_t* index) const {
  int64_t at[EP_MAX_RANK];
  parameter_index(index, at);
  return scale_ ? scale_.get<double>(at) : 1;
}

int64_t Quantised::integer(const int64_t* index) const {
  int64_t at[EP_MAX_RANK];
  parameter_index(index, at);
  return operand_.get<int64_t>(index) - (zero_point_ ? zero_point_.get<int64_t>(at) : 0);
}

long double Quantised::real(const int64_t* index) const {
  if (!*this) return operand_.get<double>(index);
  const long double scale_here = scale(index);
  if (is_floating(operand_.dtype())) return operand_.get<double>(index) * scale_here;
  return static_cast<long double>(integer(index)) * scale_here;
}

void Quantised::write(const int64_t* index, double value) const {
  if (!*this) return operand_.set(index, value);
  const auto quotient = static_cast<double>(static_cast<float>(value) / static_cast<float>(scale(index)));
  if (is_floating(operand_.dtype())) {
    const double limit = greatest_finite(operand_.dtype());
    return operand_.set(index, std::isnan(quotient) ? quotient : std::clamp(quotient, -limit, limit));
  }
  int64_t at[EP_MAX_RANK];
  parameter_index(index, at);
  const double zero_point = zero_point_ ? zero_point_.get<double>(at) : 0;
  const Range range = range_of(operand_.dtype());
  if (std::isnan(quotient)) return operand_.set(index, range.least);
  operand_.set(index, std::clamp(std::nearbyint(quotient) + zero_point, range.least, range.greatest));
}

void run_quantise(Call& call) {
  const Quantised dst(call, EP_ROLE_DST);
  const Operand src = call[EP_ROLE_SRC];
  for_each_index(src.dims(), [&](const int64_t* index) { dst.write(index, src.get<double>(index)); });
}

void run_dequantise(Call& call) {
  const Quantised src(call, EP_ROLE_SRC);
  const Operand dst = call[EP_ROLE_DST];
  for_each_index(dst.dims(), [&](const int64_t* index) {
    dst.set(index, static_cast<double>(static_cast<float>(src.real(index))));
  });
}

}  // namespace tenon::reference
