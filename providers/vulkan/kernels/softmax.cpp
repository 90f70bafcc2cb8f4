// softmax and log-softmax along an axis.
#include "providers/vulkan/kernels/element.h"
#include "providers/vulkan/kernels/kernels.h"
#include "providers/vulkan/kernels/rows.h"

namespace tenon::provider::vulkan {
namespace {

constexpr int64_t kept_per_lane = 12;  // must match shaders/softmax.comp

// How a row is divided among invocations and where it is kept.
struct Plan {
  bool held = false;       // true: in registers, by shaders/softmax_held.comp; false: by shaders/softmax.comp
  uint32_t lane_bits = 0;  // 2^lane_bits invocations share it
  uint32_t kept = 0;       // if held: blocks that an invocation holds in registers; else 1 if shared memory keeps the
                           // row
};

// The invocations that hold a row in registers: at least 2^lane_bits, at most a workgroup of the largest size.
uint32_t held_lane_bits(const ep_device& device, const RowsSpace& space, uint32_t lane_bits) {
  if (lane_bits == 0) return 0;
  const uint32_t most = std::min(device.context->most_threads(), 1024U);
  while (space.length() > most_held << lane_bits && 2U << lane_bits <= most) ++lane_bits;
  return lane_bits;
}

// A number of blocks, at least `blocks`. For small blocks only few numbers are used, since each needs its own pipeline.
uint32_t registers_for(int64_t blocks, int64_t block) {
  if (block > 1 || blocks <= 4) return static_cast<uint32_t>(blocks);
  return static_cast<uint32_t>(divide_up(static_cast<uint64_t>(blocks), 4) * 4);
}

Plan plan_for(const ep_device& device, const RowsSpace& space, int64_t block) {
  const auto blocks = [&](uint32_t lane_bits) {
    return static_cast<int64_t>(divide_up(static_cast<uint64_t>(space.length()), block << lane_bits));
  };
  const uint32_t lane_bits = lane_bits_on(device, space);
  const uint32_t held_bits = held_lane_bits(device, space, lane_bits);
  if (device.context->packs && blocks(held_bits) * block <= most_held) {
    return {true, held_bits, registers_for(blocks(held_bits), block)};
  }
  return {false, lane_bits, blocks(lane_bits) * block <= kept_per_lane ? 1U : 0U};
}

uint32_t mask_of(const ep_primitive_desc& desc) {
  const int32_t axis = desc.attributes.softmax.axis;
  return axis < 0 || axis >= EP_MAX_RANK ? 0 : 1U << axis;
}

}  // namespace

Refusal Softmax::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = why_no_rows(device, desc, mask_of(desc))) return refusal;
  const int32_t dtype = desc.operands[1].dtype;
  if (desc.operands[0].dtype != dtype) {
    return Refusal::because("a result of %s, not %s", dtype_name(desc.operands[0].dtype), dtype_name(dtype));
  }
  if (!is_floating(dtype)) return Refusal::because("softmax is not defined on %s", dtype_name(dtype));
  return why_not_computed(device.context->physical->features, dtype);
}

Refusal Softmax::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const RowsSpace space(desc, mask_of(desc));
  const int64_t block = block_for(device, space, 2);
  const Plan plan = plan_for(device, space, block);
  const uint32_t threads = std::max(row_threads, 1U << plan.lane_bits);
  const Constants constants = {threads,
                               32,
                               desc.attributes.softmax.log != 0 ? 1U : 0U,
                               static_cast<uint32_t>(desc.operands[1].dtype),
                               0,
                               0,
                               plan.kept,
                               plan.held ? plan.lane_bits : 0U,
                               static_cast<uint32_t>(block),
                               static_cast<uint32_t>(dtype_size(desc.operands[1].dtype))};
  std::shared_ptr<Pipeline> pipeline;
  const char* const shader = plan.held ? "softmax_held" : "softmax";
  const std::string module = module_name(shader, "f32", device.context->physical->features);
  if (Refusal refusal = compile(device, module, constants, &pipeline)) return refusal;
  *out = make_primitive<RowPrimitive>(device, space, plan.lane_bits, threads, std::move(pipeline));
  return {};
}

}  // namespace tenon::provider::vulkan
