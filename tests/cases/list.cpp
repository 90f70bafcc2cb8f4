#include <cstring>

#include "tests/cases/case.h"

namespace tenon::cases {

// Values up to 1e-20 have products up to 1e-40, and the sums of these stay below 1.17e-38. The last place of each is
// 2^-149, which is 2^-23 of the least normal number.
void make_denormal(Case* test, double terms) {
  test->name += "_denormals";
  for (uint32_t i = 0; i < test->desc.operand_count; ++i) {
    const double most = test->desc.operands[i].role == EP_ROLE_BIAS ? 1e-40 : 1e-20;
    test->values[i] = {Fill::RANDOM, -most, most};
  }
  set_tolerances(test, [&](Tier tier) -> Tolerance {
    const double factor = beyond_full("product", tier, DType::f32).ulps * 0x1p-24;  // relative error of a product
    return {0, 0, (terms + 2) * 0x1p-23 + terms * factor * 1e-40 / 0x1p-126};
  });
}

namespace {

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  add_copy_cases(&cases);
  add_elementwise_cases(&cases);
  add_reduce_cases(&cases);
  add_matmul_cases(&cases);
  add_convolution_cases(&cases);
  add_pooling_cases(&cases);
  add_norm_cases(&cases);
  add_move_cases(&cases);
  add_quantisation_cases(&cases);
  add_gradient_cases(&cases);
  add_order_cases(&cases);
  add_scatter_cases(&cases);
  add_random_cases(&cases);
  add_attention_cases(&cases);
  add_resize_cases(&cases);
  add_recurrent_cases(&cases);
  add_fft_cases(&cases);
  add_linear_algebra_cases(&cases);
  add_operand_layouts(&cases);
  return cases;
}

}  // namespace

const std::vector<Case>& all_cases() {
  static const auto* cases = new std::vector<Case>(make_cases());
  return *cases;
}

ep_primitive_desc make_desc(int32_t kind) {
  ep_primitive_desc desc;
  std::memset(&desc, 0, sizeof(desc));
  desc.kind = kind;
  return desc;
}

ep_operand_desc& add_operand(ep_primitive_desc& desc, int32_t role, DType dtype, const Dims& dims) {
  return add_operand(desc, role, dtype, dims, contiguous_strides(dims));
}

ep_operand_desc& add_operand(ep_primitive_desc& desc, int32_t role, DType dtype, const Dims& dims,
                             const Dims& strides) {
  ep_operand_desc& operand = desc.operands[desc.operand_count++];
  operand.role = role;
  operand.dtype = static_cast<int32_t>(dtype);
  operand.rank = dims.rank();
  std::copy(dims.begin(), dims.end(), operand.dims);
  std::copy(strides.begin(), strides.end(), operand.strides);
  return operand;
}

void add_scalar_operand(ep_primitive_desc& desc, int32_t role, DType dtype) {
  add_operand(desc, role, dtype, {}).flags = EP_OPERAND_FLAG_SCALAR;
}

ep_scalar make_scalar(DType dtype, double value) {
  ep_scalar scalar = {};
  scalar.dtype = static_cast<int32_t>(dtype);
  switch (dtype_info(dtype).type_class) {
    case DTypeClass::FLOAT: scalar.value.f64 = value; break;
    case DTypeClass::INT: scalar.value.i64 = static_cast<int64_t>(value); break;
    default: scalar.value.u64 = static_cast<uint64_t>(value); break;
  }
  return scalar;
}

Dims permuted_strides(const Dims& dims, std::initializer_list<int32_t> order) {
  Dims strides = dims;
  int64_t step = 1;
  for (auto axis = std::rbegin(order); axis != std::rend(order); ++axis) {
    strides[*axis] = step;
    step *= dims[*axis];
  }
  return strides;
}

Dims gapped_strides(const Dims& dims, int64_t gap) {
  Dims wide = dims;
  wide[dims.rank() - 1] += gap;
  return contiguous_strides(wide);
}

}  // namespace tenon::cases
