// The rules of fft and linear_algebra, as stated in ep_api.h above their attributes.
#include <algorithm>

#include "primitives/descriptor/check.h"

namespace tenon::descriptor {
namespace {

// The operands of an op of linear algebra and the dims of their matrices. null means that the op has no such operand.
// Dims are letters: m and n of SRC, c of SRC_B's columns, k = min(m, n); q is k or m.
struct LinearRule {
  int32_t op;
  bool square;
  const char* src_b;
  const char* dst;
  const char* r;
  const char* vectors;
  const char* vectors_h;
  const char* pivots;
  const char* log;
  int32_t flags;
};

constexpr LinearRule linear_rules[] = {
    {EP_LINEAR_SOLVE, true, "nc", "nc", nullptr, nullptr, nullptr, nullptr, nullptr, 0},
    {EP_LINEAR_TRIANGULAR_SOLVE, true, "nc", "nc", nullptr, nullptr, nullptr, nullptr, nullptr,
     EP_LINEAR_FLAG_UPPER | EP_LINEAR_FLAG_UNIT},
    {EP_LINEAR_LEAST_SQUARES, false, "mc", "nc", nullptr, nullptr, nullptr, nullptr, nullptr, 0},
    {EP_LINEAR_CHOLESKY, true, nullptr, "nn", nullptr, nullptr, nullptr, nullptr, nullptr, EP_LINEAR_FLAG_UPPER},
    {EP_LINEAR_INVERSE, true, nullptr, "nn", nullptr, nullptr, nullptr, nullptr, nullptr, 0},
    {EP_LINEAR_DETERMINANT, true, nullptr, "", nullptr, nullptr, nullptr, nullptr, nullptr, 0},
    {EP_LINEAR_LOG_DETERMINANT, true, nullptr, "", nullptr, nullptr, nullptr, nullptr, "", 0},
    {EP_LINEAR_LU, false, nullptr, "mn", nullptr, nullptr, nullptr, "k", nullptr, 0},
    {EP_LINEAR_QR, false, nullptr, "mq", "qn", nullptr, nullptr, nullptr, nullptr, 0},
    {EP_LINEAR_SVD, false, nullptr, "k", nullptr, "mk", "kn", nullptr, nullptr, 0},
    {EP_LINEAR_EIGEN, true, nullptr, "n", nullptr, "nn", nullptr, nullptr, nullptr, EP_LINEAR_FLAG_UPPER},
};

const LinearRule* linear_rule(int32_t op) {
  for (const LinearRule& rule : linear_rules) {
    if (rule.op == op) return &rule;
  }
  return nullptr;
}

// The values of the letters in one descriptor.
struct Sides {
  int64_t m, n, c, k, q;
  int64_t of(char letter) const {
    switch (letter) {
      case 'm': return m;
      case 'n': return n;
      case 'c': return c;
      case 'q': return q;
      default: return k;
    }
  }
};

Status has_sides(const Desc& desc, const Operand& src, const Sides& sides, const char* letters, int32_t role) {
  const Operand* operand = find_operand(desc, role);
  if (letters == nullptr) {
    return operand == nullptr ? Status() : wrong(desc, "has no operand '{}'.", table::role_name(role));
  }
  if (operand == nullptr) return wrong(desc, "operand '{}' is missing.", table::role_name(role));
  Dims dims;
  for (int32_t axis = 0; axis < src.rank - 2; ++axis) dims.push_back(src.dims[axis]);
  for (const char* letter = letters; *letter != 0; ++letter) dims.push_back(sides.of(*letter));
  if (dims.rank() == 0) dims.push_back(1);
  return has_dims(desc, *operand, dims);
}

}  // namespace

Status check_linear_algebra(const Desc& desc) {
  const ep_linear_algebra_attributes& at = desc.attributes.linear_algebra;
  const LinearRule& rule = *linear_rule(at.op);
  const Operand& src = get(desc, EP_ROLE_SRC);
  if ((at.flags & ~rule.flags) != 0) {
    return unsupported(desc, "has flags {}, which are not those of its op.", at.flags);
  }
  if (src.rank < 2) return wrong(desc, "'src' has rank {} but must have at least 2.", src.rank);
  TENON_RETURN_IF_ERROR(is_float(desc, src));
  const int64_t m = src.dims[src.rank - 2];
  const int64_t n = src.dims[src.rank - 1];
  if (rule.square && !agree(m, n)) return wrong(desc, "'src' {} must hold square matrices.", dims_of(src));
  const Operand* right = find_operand(desc, EP_ROLE_SRC_B);
  const int64_t k = m == EP_ANY || n == EP_ANY ? EP_ANY : std::min(m, n);
  const int64_t columns = right == nullptr || right->rank < 1 ? 1 : right->dims[right->rank - 1];
  const Operand& dst = get(desc, EP_ROLE_DST);
  const bool complete = at.op == EP_LINEAR_QR && dst.dims[dst.rank - 1] == m;
  const Sides sides = {m, n, columns, k, complete ? m : k};
  TENON_RETURN_IF_ERROR(has_sides(desc, src, sides, rule.src_b, EP_ROLE_SRC_B));
  TENON_RETURN_IF_ERROR(has_sides(desc, src, sides, rule.dst, EP_ROLE_DST));
  TENON_RETURN_IF_ERROR(has_sides(desc, src, sides, rule.r, EP_ROLE_DST_R));
  TENON_RETURN_IF_ERROR(has_sides(desc, src, sides, rule.pivots, EP_ROLE_DST_PIVOTS));
  TENON_RETURN_IF_ERROR(has_sides(desc, src, sides, rule.log, EP_ROLE_DST_LOG));
  const bool vectors = find_operand(desc, EP_ROLE_DST_VECTORS) != nullptr;
  if (at.op == EP_LINEAR_SVD && vectors != (find_operand(desc, EP_ROLE_DST_VECTORS_H) != nullptr)) {
    return wrong(desc, "'dst_vectors' and 'dst_vectors_h' of svd must be given both or not at all.");
  }
  const bool none = !vectors && (at.op == EP_LINEAR_SVD || at.op == EP_LINEAR_EIGEN);
  TENON_RETURN_IF_ERROR(has_sides(desc, src, sides, none ? nullptr : rule.vectors, EP_ROLE_DST_VECTORS));
  TENON_RETURN_IF_ERROR(has_sides(desc, src, sides, none ? nullptr : rule.vectors_h, EP_ROLE_DST_VECTORS_H));
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const Operand& operand = desc.operands[i];
    TENON_RETURN_IF_ERROR(operand.role == EP_ROLE_DST_PIVOTS ? is_type(desc, operand, DType::i32)
                                                             : same_type(desc, operand, src));
  }
  return {};
}

Status check_fft(const Desc& desc) {
  const ep_fft_attributes& at = desc.attributes.fft;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  if (at.inverse != 0 && at.inverse != 1) return wrong(desc, "inverse is {}; it may be 0 or 1.", at.inverse);
  if (at.reserved != 0) return unsupported(desc, "has attributes beyond those of its kind.");
  if (at.form == EP_FFT_REAL_TO_HALF && at.inverse != 0) return wrong(desc, "real_to_half is not inverse.");
  TENON_RETURN_IF_ERROR(is_float(desc, src));
  TENON_RETURN_IF_ERROR(same_type(desc, dst, src));
  const bool from_real = at.form == EP_FFT_REAL_TO_HALF;
  const bool to_real = at.form == EP_FFT_HALF_TO_REAL;
  const Operand& real = from_real ? src : dst;
  const int32_t rank = from_real || to_real ? real.rank : real.rank - 1;
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, at.axis, rank));
  Dims pairs = dims_of(real);
  if (from_real || to_real) {
    if (pairs.rank() == EP_MAX_RANK) return wrong(desc, "has rank {}; pairs need one more.", pairs.rank());
    if (pairs[at.axis] != EP_ANY) pairs[at.axis] = pairs[at.axis] / 2 + 1;
    pairs.push_back(2);
  } else if (!agree(pairs[rank], 2)) {
    return wrong(desc, "the last axis of 'dst' {} must hold pairs.", pairs);
  }
  return has_dims(desc, from_real ? dst : src, pairs);
}

}  // namespace tenon::descriptor
