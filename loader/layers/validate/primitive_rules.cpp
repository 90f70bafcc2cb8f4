// The rules of descriptors, of a provider's answers to them, and of primitives.
#include "loader/layers/validate/rules.h"
#include "primitives/descriptor/descriptor.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {
namespace {

constexpr int32_t first_test_kind = 0x10000;

void check_descriptor(Call& call, const ep_primitive_desc* desc) {
  if (desc == nullptr) return call.refuse("A01", "the descriptor is NULL");
  if (desc->operand_count > EP_MAX_OPERANDS) {
    return call.refuse("P04", fmt::format("the descriptor has {} operands", desc->operand_count));
  }
  if (desc->kind >= first_test_kind) return;
  const Status status = descriptor::check_descriptor(*desc);
  if (status.code() == Code::invalid_argument)
    call.refuse("P04", fmt::format("the descriptor is not valid: {}", status.message()));
}

void check_known(Call& call, ep_status status, const ep_primitive_desc& desc) {
  if (status != EP_STATUS_OK || desc.kind >= first_test_kind) return;
  const Status known = descriptor::check_descriptor(desc);
  if (known.code() == Code::unsupported) {
    call.blame("P02", fmt::format("it returned OK for a descriptor that this host does not know: {}", known.message()));
  }
}

bool is_text(ep_string text) { return text.data != nullptr && text.size > 0 && text.size <= 256; }

void check_create_info(Call& call, const ep_primitive_desc& desc, const ep_primitive_info& info) {
  if (!is_text(info.implementation)) call.blame("R01", "ep_primitive_info names no implementation");
  if (info.pack_operand == 0) return;
  const uint32_t packed = info.pack_operand - 1;
  const bool constant = packed < desc.operand_count && (desc.operands[packed].flags & EP_OPERAND_FLAG_CONSTANT) != 0;
  if (!constant || info.pack_bytes == 0) {
    call.blame(
        "R01",
        fmt::format(
            "ep_primitive_info wants operand {} packed into {} bytes, which is not a constant operand or not a size",
            packed, info.pack_bytes));
  }
}

}  // namespace

void before(Tag<Slot::primitive_support>, Call& call, Device&, Argument<const ep_primitive_desc*>& desc,
            Argument<ep_support_info*>&, Error&) {
  check_descriptor(call, desc.value);
}

void after(Tag<Slot::primitive_support>, Call& call, ep_status status, Device&,
           Argument<const ep_primitive_desc*>& desc, Argument<ep_support_info*>& out, Error&) {
  if (status != EP_STATUS_OK) return;
  check_known(call, status, *desc.value);
  const ep_support_info& info = out.room.info;
  if (!is_text(info.implementation)) call.blame("R01", "ep_support_info names no implementation");
  constexpr uint64_t known =
      EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES | EP_SUPPORT_FLAG_PRECISION | EP_SUPPORT_FLAG_RELAXED;
  if ((info.flags & ~known) != 0) {
    call.blame("R01", fmt::format("ep_support_info has unknown flags {}", info.flags));
  }
  const auto& pools = call.layer->info.pools;
  const uint64_t most = pools.empty() ? 1 : std::max<uint64_t>(1, pools[0].minimum_alignment);
  for (int32_t alignment : info.alignment) {
    if (descriptor::is_alignment(alignment) && static_cast<uint64_t>(alignment) <= most) continue;
    call.blame("R01", fmt::format("ep_support_info wants the alignment {}; 0 or a power of two up to {}, the "
                                  "minimum_alignment of pool 0, is possible",
                                  alignment, most));
    break;
  }
  check_wishes(call, *desc.value, info);
  if (desc.value->kind >= first_test_kind) return;
  if (const uint64_t greatest = descriptor::greatest_penalty(*desc.value); info.penalty_bytes > greatest) {
    call.blame("W01", fmt::format("ep_support_info states a penalty of {} bytes, and {} are possible",
                                  info.penalty_bytes, greatest));
  }
}

void before(Tag<Slot::primitive_create>, Call& call, Device&, Argument<const ep_primitive_desc*>& desc,
            Argument<ep_primitive**>&, Argument<ep_primitive_info*>&, Error&) {
  check_descriptor(call, desc.value);
}

void after(Tag<Slot::primitive_create>, Call& call, ep_status status, Device&, Argument<const ep_primitive_desc*>& desc,
           Argument<ep_primitive**>& out, Argument<ep_primitive_info*>& info, Error&) {
  if (status != EP_STATUS_OK) return;
  check_known(call, status, *desc.value);
  check_create_info(call, *desc.value, info.room.info);
  if (out.object == nullptr) return;
  out.object->desc = *desc.value;
  out.object->info = info.room.info;
  out.object->dynamic = descriptor::has_any(*desc.value);
}

void before(Tag<Slot::primitive_destroy>, Call& call, Device&, PrimitiveHandle& primitive) {
  if (primitive.object != nullptr) call.check_unused(*primitive.object);
  check_no_list(call, primitive.object);
}

void after(Tag<Slot::primitive_destroy>, Call&, ep_status, Device&, PrimitiveHandle& primitive) {
  if (primitive.object != nullptr) Objects::instance().bury(primitive.object);
}

void before(Tag<Slot::primitive_workspace>, Call& call, PrimitiveHandle& primitive, Argument<const ep_shape*>& shapes,
            Argument<uint32_t>& count, Argument<uint64_t*>&, Error&) {
  if (primitive.object == nullptr) return;
  if (shapes.value == nullptr || count.value != primitive.object->desc.operand_count) {
    call.refuse("P08",
                fmt::format("{} shapes were given for {} operands", count.value, primitive.object->desc.operand_count));
  }
}

}  // namespace tenon::loader::validate
