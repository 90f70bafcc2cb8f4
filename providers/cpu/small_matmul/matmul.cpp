// matmul over f32 of at most 64 x 64 x 64 multiplications.
#include <algorithm>
#include <array>

#include "providers/cpu/elementwise/tail.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/small_matmul/kernel.h"
#include "providers/cpu/small_matmul/small_matmul.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t most_multiplications = 64 * 64 * 64;
constexpr int64_t longest_sum = 1024;  // oneDNN computes longer sums, because it adds them in parts
constexpr int64_t most_copied = 1024;  // elements of a src_b whose columns are not contiguous

// One operand: the strides of its matrix, and the axes of its batch.
struct Matrices {
  int32_t index = -1;  // operand number; -1 if absent
  int64_t row = 0;
  int64_t column = 0;
  Axes batch;

  Matrices() = default;
  Matrices(const ep_primitive_desc& desc, int32_t role) : index(find_operand(desc, role)) {
    if (index < 0) return;
    const ep_operand_desc& operand = desc.operands[index];
    row = operand.strides[operand.rank - 2];
    column = operand.strides[operand.rank - 1];
    for (int32_t axis = 0; axis < operand.rank - 2; ++axis) batch.add(operand.dims[axis], operand.strides[axis]);
  }

  float* at(const ep_launch& launch, int64_t matrix) const {
    return index < 0 ? nullptr : reinterpret_cast<float*>(address_of(launch.operands[index])) + batch.offset(matrix);
  }
};

class SmallMatmulPrimitive final : public ep_primitive {
 public:
  SmallMatmulPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : kernel_(product_kernel<float>(on.simd)),
        dst_(desc, EP_ROLE_DST),
        src_(desc, EP_ROLE_SRC),
        src_b_(desc, EP_ROLE_SRC_B),
        bias_(desc, EP_ROLE_BIAS),
        matrices_(dst_.batch.count()),
        tail_(on, desc, 0) {
    const ep_operand_desc& dst = desc.operands[dst_.index];
    product_ = {nullptr,
                nullptr,
                nullptr,
                nullptr,
                dst.dims[dst.rank - 2],
                dst.dims[dst.rank - 1],
                desc.operands[src_.index].dims[dst.rank - 1],
                src_.row,
                src_.column,
                src_b_.row,
                bias_.row,
                dst_.row};
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    Product<float> product = product_;
    std::array<float, most_copied> rows_of_b;
    if (src_b_.column != 1 && product.n > 1) product.b_row = product.n;
    for (int64_t matrix = 0; matrix < matrices_; ++matrix) {
      product.a = src_.at(launch, matrix);
      product.b = src_b_.at(launch, matrix);
      if (src_b_.column != 1 && product.n > 1) {
        for (int64_t p = 0; p < product.k; ++p) {
          for (int64_t j = 0; j < product.n; ++j) {
            rows_of_b[static_cast<size_t>(p * product.n + j)] = product.b[p * src_b_.row + j * src_b_.column];
          }
        }
        product.b = rows_of_b.data();
      }
      product.bias = bias_.at(launch, matrix);
      product.c = dst_.at(launch, matrix);
      kernel_(product);
    }
    if (!tail_.empty()) tail_.run(launch, 1);
    return EP_STATUS_OK;
  }

 private:
  ProductKernel<float> kernel_;
  Matrices dst_, src_, src_b_, bias_;
  int64_t matrices_;
  Product<float> product_;
  Tail tail_;
};

}  // namespace

Refusal SmallMatmul::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("small matmuls need static dims");
  if (desc.accumulate_dtype != 0 && desc.accumulate_dtype != EP_DTYPE_f32) {
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  }
  const ep_operand_desc& dst = desc.operands[0];
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (operand.dtype != EP_DTYPE_f32)
      return Refusal::because("operand %u is %s, not f32", i, dtype_name(operand.dtype));
    if (is_scalar(operand)) return Refusal::because("operand %u is a scalar", i);
    if (operand.rank != dst.rank || operand.rank < 2) return Refusal::because("rank %d", operand.rank);
    const int64_t rows = operand.dims[operand.rank - 2], columns = operand.dims[operand.rank - 1];
    const bool copied =
        operand.role == EP_ROLE_SRC_B && rows <= most_copied && columns <= most_copied / std::max<int64_t>(rows, 1);
    if (operand.role != EP_ROLE_SRC && !copied && operand.strides[operand.rank - 1] != 1 && columns != 1) {
      return Refusal::because("the columns of operand %u are not contiguous", i);
    }
  }
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  if (dst.role != EP_ROLE_DST || src == nullptr || operand(desc, EP_ROLE_SRC_B) == nullptr) {
    return Refusal::because("an operand is missing");
  }
  const int64_t k = src->dims[src->rank - 1];
  if (k > longest_sum) return Refusal::because("sums of %lld products", static_cast<long long>(k));
  int64_t multiplications = std::max<int64_t>(k, 1);
  for (int32_t axis = 0; axis < dst.rank; ++axis) {
    if (dst.dims[axis] > most_multiplications / multiplications) {
      return Refusal::because("more than 64 x 64 x 64 multiplications");
    }
    multiplications *= std::max<int64_t>(dst.dims[axis], 1);
  }
  return why_no_tail(device, desc, 0);
}

Refusal SmallMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<SmallMatmulPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
