// matmul on any type: narrow floats compute in f32, f64 in f64. Integers wrap.
#include <type_traits>
#include <vector>

#include "providers/cpu/plain/apart.h"
#include "providers/cpu/plain/epilogue.h"
#include "providers/cpu/plain/plain.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// Adds integers as unsigned, so that sums wrap.
template <class T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;

template <class T>
class MatmulPrimitive final : public ep_primitive {
 public:
  explicit MatmulPrimitive(const ep_primitive_desc& desc)
      : desc_(desc),
        format_(desc.operands[0].dtype),
        src_(find_operand(desc, EP_ROLE_SRC)),
        src_b_(find_operand(desc, EP_ROLE_SRC_B)),
        bias_(find_operand(desc, EP_ROLE_BIAS)) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const OperandShape dst = shape(launch, 0);
    const int32_t rank = dst.rank;
    const int64_t m = dst.dims[rank - 2];
    const int64_t n = dst.dims[rank - 1];
    const int64_t k = shape(launch, src_).dims[rank - 1];
    int64_t batches = 1;
    for (int32_t axis = 0; axis < rank - 2; ++axis) batches *= dst.dims[axis];
    std::vector<T> b(static_cast<size_t>(k * n));
    for (int64_t batch = 0; batch < batches; ++batch) {
      int64_t index[EP_MAX_RANK] = {};
      int64_t rest = batch;
      for (int32_t axis = rank - 3; axis >= 0; --axis) {
        index[axis] = rest % dst.dims[axis];
        rest /= dst.dims[axis];
      }
      for (int64_t row = 0; row < k; ++row) read_row(launch, src_b_, index, row, n, b.data() + row * n);
      parallel(device->threads, 2 * m * n * k / 2, [&](int32_t part, int32_t parts) {
        multiply(launch, b, index, m * part / parts, m * (part + 1) / parts, n, k);
      });
    }
    return EP_STATUS_OK;
  }

 private:
  OperandShape shape(const ep_launch& launch, int32_t i) const {
    return shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i));
  }

  char* row_address(const ep_launch& launch, int32_t i, const int64_t* index, int64_t row) const {
    const OperandShape given = shape(launch, i);
    int64_t offset = row * given.strides[given.rank - 2];
    for (int32_t axis = 0; axis < given.rank - 2; ++axis) offset += index[axis] * given.strides[axis];
    return address_of(launch.operands[i]) + offset * dtype_size(desc_.operands[i].dtype);
  }

  void read_row(const ep_launch& launch, int32_t i, const int64_t* index, int64_t row, int64_t n, T* to) const {
    const OperandShape given = shape(launch, i);
    RowFormat(desc_.operands[i].dtype)
        .read(to, 1, row_address(launch, i, index, row), given.strides[given.rank - 1], n);
  }

  void multiply(const ep_launch& launch, const std::vector<T>& b, const int64_t* batch, int64_t begin, int64_t end,
                int64_t n, int64_t k) const {
    const OperandShape dst = shape(launch, 0);
    std::vector<T> a(static_cast<size_t>(k));
    std::vector<T> sums(static_cast<size_t>(n));
    std::vector<T> bias(static_cast<size_t>(n));
    std::vector<char> buffer;
    int64_t index[EP_MAX_RANK];
    for (int32_t axis = 0; axis < dst.rank; ++axis) index[axis] = batch[axis];
    for (int64_t row = begin; row < end; ++row) {
      index[dst.rank - 2] = row;
      read_row(launch, src_, batch, row, k, a.data());
      std::fill(sums.begin(), sums.end(), T{0});
      for (int64_t i = 0; i < k; ++i) add_row(sums.data(), a[static_cast<size_t>(i)], b.data() + i * n, n);
      if (bias_ >= 0) {
        read_row(launch, bias_, batch, row, n, bias.data());
        add_row(sums.data(), T{1}, bias.data(), n);
      }
      apply_epilogues(desc_, device->simd, format_.compute, launch, index, n, sums.data(), &buffer);
      format_.write(row_address(launch, 0, batch, row), dst.strides[dst.rank - 1], sums.data(), 1, n);
    }
  }

  static void add_row(T* sums, T factor, const T* row, int64_t n) {
    using S = SumOf<T>;
    for (int64_t j = 0; j < n; ++j) {
      sums[j] = static_cast<T>(static_cast<S>(sums[j]) + static_cast<S>(factor) * static_cast<S>(row[j]));
    }
  }

  ep_primitive_desc desc_;
  RowFormat format_;
  int32_t src_;
  int32_t src_b_;
  int32_t bias_;
};

// With fewer products, one launch of this loop costs less than the launches of the parts.
constexpr int64_t kFewProducts = 100'000;

int64_t products_of(const ep_primitive_desc& desc) {
  const ep_operand_desc& dst = desc.operands[0];
  int64_t products = operand(desc, EP_ROLE_SRC)->dims[dst.rank - 1];
  for (int32_t axis = 0; axis < dst.rank; ++axis) products *= dst.dims[axis];
  return products;
}

}  // namespace

Refusal PlainMatmul::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* src_b = operand(desc, EP_ROLE_SRC_B);
  if (src == nullptr || src_b == nullptr || desc.operands[0].role != EP_ROLE_DST)
    return Refusal::because("an operand is missing");
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t compute = wide_dtype(dtype);
  if (compute == 0 || dtype_class(dtype) == DTypeClass::BOOL)
    return Refusal::because("no matmul on %s", dtype_name(dtype));
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || operand.rank != desc.operands[0].rank || operand.rank < 2)
      return Refusal::because("operand %u has rank %d", i, operand.rank);
    if (wide_dtype(operand.dtype) != compute)
      return Refusal::because("operand %u is %s, the result %s", i, dtype_name(operand.dtype), dtype_name(dtype));
  }
  if (desc.epilogue_count != 0 && !is_floating(dtype)) return Refusal::because("epilogues on %s", dtype_name(dtype));
  if (is_dynamic(desc) || products_of(desc) >= kFewProducts) {
    if (Refusal refusal = why_not_together(device, desc)) return refusal;
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return why_no_plain_epilogues(desc, device.simd, compute);
}

Refusal PlainMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  switch (wide_dtype(desc.operands[0].dtype)) {
    case EP_DTYPE_f32: *out = make_primitive<MatmulPrimitive<float>>(device, desc); break;
    case EP_DTYPE_f64: *out = make_primitive<MatmulPrimitive<double>>(device, desc); break;
    case EP_DTYPE_u64: *out = make_primitive<MatmulPrimitive<uint64_t>>(device, desc); break;
    default: *out = make_primitive<MatmulPrimitive<int64_t>>(device, desc); break;
  }
  return {};
}

}  // namespace tenon::provider::cpu
