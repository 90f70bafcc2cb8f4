#include "providers/cuda/attention/attention.h"

#include <algorithm>

#include "providers/cuda/attention/plan.h"
#include "providers/cuda/elementwise/scalar_value.h"

namespace tenon::provider::cuda {
namespace {

// Kernels count rows, keys and blocks in 32 bits.
constexpr int64_t most_along_an_axis = int64_t{1} << 29;
constexpr int64_t longest_flash_row = 256;

AttentionDevice facts_of(const ep_device& device) {
  return {device.facts.capability, device.facts.processors, device.facts.shared_bytes_on_demand};
}

class AttentionPrimitive final : public ep_primitive {
 public:
  struct Kernels {
    CUfunction of[attention_kernels] = {};
    CUfunction combine = nullptr;
  };

  AttentionPrimitive(const ep_device& on, const ep_primitive_desc& desc, const Kernels& kernels)
      : desc_(desc), device_(facts_of(on)), kernels_(kernels), dynamic_(is_dynamic(desc)) {}

  bool has_workspace() const override { return dynamic_ || workspace(nullptr) != 0; }
  uint64_t workspace(const ep_shape* shapes) const override {
    const AttentionSizes sizes = sizes_of(shapes);
    return parts_bytes(plan_of(sizes), sizes.columns);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    if (launch.scalar_count < 1)
      return fail_text(stream->host, error, EP_STATUS_INVALID_ARGUMENT, "attention has no launch scalar 0 (scale).");
    const AttentionSizes sizes = sizes_of(launch.shapes);
    const AttentionPlan plan = plan_of(sizes);
    if (plan.blocks() == 0) return EP_STATUS_OK;
    if (plan.blocks() > most_blocks) {
      return fail(stream->host, error, EP_STATUS_UNSUPPORTED, "attention takes %lld blocks; a launch has at most %lld.",
                  static_cast<long long>(plan.blocks()), static_cast<long long>(most_blocks));
    }
    const AttentionArguments attention = arguments(launch, sizes, plan);
    const auto shared = static_cast<int32_t>(shared_bytes_of(plan.kernel, attention.dtype));
    const ep_status status = launch_kernel(stream, kernels_.of[static_cast<size_t>(plan.kernel)],
                                           {plan.blocks(), attention_threads, shared}, &attention, error);
    if (status != EP_STATUS_OK || plan.splits == 1) return status;
    constexpr int64_t combined = 128;  // columns per block
    const int64_t blocks = plan.units * plan.unit_rows * ((sizes.columns + combined - 1) / combined);
    return launch_kernel(stream, kernels_.combine, {blocks, attention_threads, combine_shared_bytes}, &attention,
                         error);
  }

 private:
  OperandShape shape(const ep_shape* shapes, int32_t i) const {
    return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
  }
  AttentionSizes sizes_of(const ep_shape* shapes) const {
    const int64_t* query = shape(shapes, find_operand(desc_, EP_ROLE_SRC)).dims;
    const int64_t* value = shape(shapes, find_operand(desc_, EP_ROLE_SRC_C)).dims;
    return {query[0], query[1], value[1], query[2], value[2], query[3], value[3]};
  }
  AttentionPlan plan_of(const AttentionSizes& sizes) const {
    return plan_attention(sizes, desc_.operands[0].dtype, device_);
  }

  // An operand of the launch.
  struct Given {
    uint64_t address = 0;
    OperandShape shape{};
    int32_t size = 0;

    // True if each row consists of whole runs of `bytes` bytes at addresses that are multiples of `bytes`.
    bool rows_have(int64_t bytes) const {
      if (shape.strides[3] != 1 || shape.dims[3] * size % bytes != 0) return false;
      int64_t steps = static_cast<int64_t>(address % static_cast<uint64_t>(bytes));
      for (int axis = 0; axis < 3; ++axis) {
        if (shape.dims[axis] > 1) steps |= shape.strides[axis] * size % bytes;
      }
      return steps == 0;
    }
  };
  Given given(const ep_launch& launch, int32_t role, uint64_t* address, int64_t* strides) const {
    const int32_t i = find_operand(desc_, role);
    if (i < 0) return {};
    const Given found = {address_of(launch.operands[i]), shape(launch.shapes, i), dtype_size(desc_.operands[i].dtype)};
    *address = found.address;
    std::copy_n(found.shape.strides, found.shape.rank, strides);
    return found;
  }

  AttentionArguments arguments(const ep_launch& launch, const AttentionSizes& sizes, const AttentionPlan& plan) const {
    AttentionArguments a{};
    a.dtype = desc_.operands[0].dtype;
    const Given dst = given(launch, EP_ROLE_DST, &a.dst, a.dst_strides);
    a.dst_vector = dst.rows_have(map_chunk * dst.size);
    a.query_vector = given(launch, EP_ROLE_SRC, &a.query, a.query_strides).rows_have(16);
    a.key_vector = given(launch, EP_ROLE_SRC_B, &a.key, a.key_strides).rows_have(16);
    a.value_vector = given(launch, EP_ROLE_SRC_C, &a.value, a.value_strides).rows_have(16);
    given(launch, EP_ROLE_LOG_SUM, &a.log_sum, a.log_sum_strides);
    given(launch, EP_ROLE_BIAS, &a.bias, a.bias_strides);
    given(launch, EP_ROLE_LENGTHS, &a.lengths, &a.length_stride);
    if (const ep_operand_desc* bias = operand(desc_, EP_ROLE_BIAS); bias != nullptr) a.bias_dtype = bias->dtype;
    if (const ep_operand_desc* lengths = operand(desc_, EP_ROLE_LENGTHS); lengths != nullptr)
      a.wide_lengths = lengths->dtype == EP_DTYPE_i64;
    // The wide kernels read runs only from f32.
    if (plan.kernel <= AttentionKernel::WIDE_256 && a.dtype != EP_DTYPE_f32)
      a.query_vector = a.key_vector = a.value_vector = 0;
    if (plan.splits > 1) a.parts = address_of(launch.workspace);
    const ep_attention_attributes& how = desc_.attributes.attention;
    const int64_t far = sizes.queries + sizes.keys;
    a.align_end = how.align == EP_ATTENTION_END;
    a.before = static_cast<int32_t>(std::min(how.before, far));
    a.after = static_cast<int32_t>(std::min(how.after, far));
    a.heads = static_cast<int32_t>(sizes.heads);
    a.ratio = static_cast<int32_t>(sizes.heads / sizes.groups);
    a.fold = plan.fold;
    a.queries = static_cast<int32_t>(sizes.queries);
    a.keys = static_cast<int32_t>(sizes.keys);
    a.width = static_cast<int32_t>(sizes.width);
    a.columns = static_cast<int32_t>(sizes.columns);
    a.unit_rows = static_cast<int32_t>(plan.unit_rows);
    a.row_blocks = static_cast<int32_t>(plan.row_blocks);
    a.units = static_cast<int32_t>(plan.units);
    a.splits = static_cast<int32_t>(plan.splits);
    a.split_keys = static_cast<int32_t>(plan.split_keys);
    a.scale = launch.scalars[0].value.f64;
    a.softcap = launch.scalar_count > 1 ? launch.scalars[1].value.f64 : 0;
    const bool plain_scale = a.scale >= 1e-30 && a.scale <= 1e30;
    a.shaped = a.softcap > 0 || a.bias != 0 || !plain_scale;
    return a;
  }

  ep_primitive_desc desc_;
  AttentionDevice device_;
  Kernels kernels_;
  bool dynamic_;
};

Refusal find_attention_kernel(ep_device& device, AttentionKernel kernel, int32_t dtype,
                              AttentionPrimitive::Kernels* kernels) {
  CUfunction* const out = &kernels->of[static_cast<size_t>(kernel)];
  if (Refusal refusal = find_kernel(device, Family::ATTENTION, kernel_name(kernel, dtype).c_str(), out)) return refusal;
  return allow_shared_memory(device, *out, shared_bytes_of(kernel, dtype));
}

}  // namespace

Refusal PlainAttention::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count < 4 || desc.operands[0].role != EP_ROLE_DST) return Refusal::because("an operand is missing");
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t align = desc.attributes.attention.align;
  const int32_t dtype_class = class_of(dtype);
  if (dtype_class != EP_DTYPE_f32 && dtype_class != EP_DTYPE_f64)
    return Refusal::because("no kernel computes attention of %s", dtype_name(dtype));
  if (align != EP_ATTENTION_START && align != EP_ATTENTION_END) return Refusal::because("align %d", align);
  for (const int32_t role : {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_SRC_C}) {
    const ep_operand_desc* each = operand(desc, role);
    if (each == nullptr || each->rank != 4) return Refusal::because("operand %d is missing or not of rank 4", role);
    if (each->dtype != dtype)
      return Refusal::because("operands of %s and %s", dtype_name(each->dtype), dtype_name(dtype));
  }
  const ep_operand_desc* bias = operand(desc, EP_ROLE_BIAS);
  if (bias != nullptr && (bias->rank != 4 || (bias->dtype != EP_DTYPE_bool && bias->dtype != dtype)))
    return Refusal::because("a bias of %s and rank %d", dtype_name(bias->dtype), bias->rank);
  const ep_operand_desc* lengths = operand(desc, EP_ROLE_LENGTHS);
  if (lengths != nullptr && (lengths->rank != 1 || (lengths->dtype != EP_DTYPE_i32 && lengths->dtype != EP_DTYPE_i64)))
    return Refusal::because("lengths of %s and rank %d", dtype_name(lengths->dtype), lengths->rank);
  const ep_operand_desc* log_sum = operand(desc, EP_ROLE_LOG_SUM);
  if (log_sum != nullptr && (log_sum->rank != 4 || log_sum->dtype != dtype_class))
    return Refusal::because("a logarithm of %s and rank %d", dtype_name(log_sum->dtype), log_sum->rank);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    for (int32_t axis = 0; axis < desc.operands[i].rank; ++axis) {
      if (desc.operands[i].dims[axis] > most_along_an_axis)
        return Refusal::because("operand %u has %lld elements along axis %d", i,
                                static_cast<long long>(desc.operands[i].dims[axis]), axis);
    }
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  info.greatest_dim = most_along_an_axis;
  return {};
}

Refusal PlainAttention::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  AttentionPrimitive::Kernels kernels;
  const int32_t dtype = desc.operands[0].dtype;
  if (Refusal refusal = find_attention_kernel(device, AttentionKernel::PLAIN, dtype, &kernels)) return refusal;
  *out = make_primitive<AttentionPrimitive>(device, device, desc, kernels);
  return {};
}

Refusal FlashAttention::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = PlainAttention::why_not(device, desc, info)) return refusal;
  const int32_t dtype = desc.operands[0].dtype;
  if (dtype == EP_DTYPE_f64) return Refusal::because("f64 is computed query by query");
  const int64_t width = operand(desc, EP_ROLE_SRC)->dims[3];
  const int64_t columns = operand(desc, EP_ROLE_SRC_C)->dims[3];
  const AttentionSizes sizes = {1, 1, 1, 1, 1, std::max<int64_t>(width, 1), std::max<int64_t>(columns, 1)};
  if (std::max(width, columns) > longest_flash_row)
    return Refusal::because("rows of %lld and %lld elements; the limit is %lld", static_cast<long long>(width),
                            static_cast<long long>(columns), static_cast<long long>(longest_flash_row));
  if (plan_attention(sizes, dtype, facts_of(device)).kernel == AttentionKernel::PLAIN)
    return Refusal::because("a block has %d bytes of shared memory", device.facts.shared_bytes_on_demand);
  return {};
}

Refusal FlashAttention::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const int32_t dtype = desc.operands[0].dtype;
  AttentionPrimitive::Kernels kernels;
  // If the launch gives the sizes, it may choose any kernel.
  for (size_t i = 0; i < attention_kernels; ++i) {
    const auto kernel = static_cast<AttentionKernel>(i);
    if (!may_run(kernel, dtype, facts_of(device))) continue;
    if (Refusal refusal = find_attention_kernel(device, kernel, dtype, &kernels)) return refusal;
  }
  if (Refusal refusal = find_kernel(device, Family::ATTENTION, "attention_combine", &kernels.combine)) return refusal;
  *out = make_primitive<AttentionPrimitive>(device, device, desc, kernels);
  return {};
}

}  // namespace tenon::provider::cuda
