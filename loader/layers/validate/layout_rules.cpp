// Opaque operands: the layouts that the device asks for, and the accesses to opaque values.
#include <cstring>

#include "loader/layers/validate/rules.h"
#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {
namespace {

// The part of an operand that a layout depends on.
ep_operand_desc layout_of(const ep_operand_desc& operand) {
  ep_operand_desc layout = operand;
  layout.role = 0;
  layout.alignment = 0;
  return layout;
}

bool same_layout(const ep_operand_desc& a, const ep_operand_desc& b) {
  const ep_operand_desc first = layout_of(a), second = layout_of(b);
  return std::memcmp(&first, &second, sizeof first) == 0;
}

void check_layout_operand(Call& call, const ep_operand_desc* operand) {
  if (operand == nullptr) return call.refuse("A01", "the operand is NULL");
  const bool numbers = operand->rank >= 1 && operand->rank <= EP_MAX_RANK && operand->strides[0] > 0;
  if (!descriptor::is_opaque(*operand) || !numbers) call.refuse("Y04", "the operand is not opaque or names no token");
}

Result<ep_layout_info> ask(const Layer& layer, const ep_operand_desc& operand) {
  ep_layout_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_LAYOUT_INFO;
  const auto function = layer.inner.layout_info;
  const ep_status status =
      function == nullptr ? EP_STATUS_UNSUPPORTED : function(layer.handle, &operand, &info, nullptr);
  if (status != EP_STATUS_OK) return Status(Code::unsupported, "the layout is unknown");
  return info;
}

bool is_image_pool(const Layer& layer, uint32_t pool) {
  return pool < layer.info.pools.size() && (layer.info.pools[pool].flags & EP_POOL_FLAG_IMAGE) != 0;
}

}  // namespace

void before(Tag<Slot::layout_info>, Call& call, Device&, Argument<const ep_operand_desc*>& operand,
            Argument<ep_layout_info*>&, Error&) {
  check_layout_operand(call, operand.value);
}

void after(Tag<Slot::layout_info>, Call& call, ep_status status, Device&, Argument<const ep_operand_desc*>&,
           Argument<ep_layout_info*>& out, Error&) {
  if (status != EP_STATUS_OK) return;
  const ep_layout_info& info = out.room.info;
  if (info.name.data == nullptr || info.name.size == 0 || info.name.size > 256 || info.bytes == 0) {
    return call.blame("R01", "ep_layout_info has no name or no bytes");
  }
  if (info.pool != 0 && !is_image_pool(*call.layer, info.pool)) {
    call.blame("R01",
               fmt::format("ep_layout_info names pool {}, which is neither 0 nor EP_POOL_FLAG_IMAGE", info.pool));
  }
}

void before(Tag<Slot::layout_allocate>, Call& call, Device&, Argument<const ep_operand_desc*>& operand,
            Argument<ep_memory**>&, Error&) {
  check_layout_operand(call, operand.value);
  if (call.refused()) return;
  const Result<ep_layout_info> info = ask(*call.layer, *operand.value);
  if (info.ok() && info->pool == 0) call.refuse("Y06", "a value of this layout lies in pool 0, and is not an image");
}

void after(Tag<Slot::layout_allocate>, Call& call, ep_status, Device&, Argument<const ep_operand_desc*>& operand,
           Argument<ep_memory**>& out, Error&) {
  if (out.object == nullptr) return;
  const Result<ep_layout_info> info = ask(*call.layer, *operand.value);
  if (!info.ok()) return call.blame("R01", "it made an image of a layout that layout_info does not know");
  out.object->image = true;
  out.object->size = info->bytes;
  out.object->pool = info->pool;
  out.object->values[0] = {layout_of(*operand.value), 0};  // nothing is written yet
}

void check_wishes(Call& call, const ep_primitive_desc& desc, const ep_support_info& info) {
  for (uint32_t i = 0; i < EP_MAX_OPERANDS; ++i) {
    const int64_t token = info.layouts[i];
    if (token == 0) continue;
    if (call.layer->inner.layout_info == nullptr) {
      return call.blame("Y03", "it would like a layout and has no layout_info");
    }
    const ep_operand_desc& operand = desc.operands[i];
    const bool opaque = i < desc.operand_count && descriptor::is_opaque(operand);
    const bool possible = i < desc.operand_count && token > 0 &&
                          (operand.flags & (EP_OPERAND_FLAG_SCALAR | EP_OPERAND_FLAG_CONSTANT)) == 0 &&
                          (!opaque || operand.strides[0] == token);
    if (possible) continue;
    return call.blame(
        "Y03", fmt::format("it would like operand {} in layout {}, and that operand has no such choice", i, token));
  }
}

uint64_t opaque_bytes(const Layer& layer, const ep_operand_desc& operand) {
  const Result<ep_layout_info> info = ask(layer, operand);
  return info.ok() ? info->bytes : 0;
}

void check_opaque(Call& call, const Memory& memory, const ep_operand_desc& operand, uint64_t offset, bool reads) {
  const Result<ep_layout_info> info = ask(*memory.layer, operand);
  if (!info.ok()) return call.refuse("Y04", fmt::format("the device does not know layout {}", operand.strides[0]));
  check_range(call, memory, offset, info->bytes, "an opaque operand");
  const bool image = info->pool != 0;
  const auto& pools = memory.layer->info.pools;
  const uint64_t unit = image || pools.empty() ? 1 : pools[0].minimum_alignment;
  if (image != memory.image || offset % unit != 0 || (image && offset != 0)) {
    return call.refuse("Y04", fmt::format("an operand in layout {} begins at offset {} of a block that is {}",
                                          operand.strides[0], offset, memory.image ? "an image" : "no image"));
  }
  const auto found = memory.values.find(offset);
  if (image && (found == memory.values.end() || !same_layout(found->second.layout, operand))) {
    return call.refuse("Y04", fmt::format("the image was made for another layout than {}", operand.strides[0]));
  }
  const bool there =
      found != memory.values.end() && found->second.bytes != 0 && same_layout(found->second.layout, operand);
  if (reads && !there) {
    call.refuse("Y05", fmt::format("it reads layout {} where no launch wrote a value of this layout, dtype and dims",
                                   operand.strides[0]));
  }
}

void forget_values(Memory& memory, uint64_t offset, uint64_t bytes) {
  if (memory.image || memory.values.empty()) return;
  std::erase_if(memory.values, [&](const auto& entry) {
    return entry.first < offset + bytes && offset < entry.first + entry.second.bytes;
  });
}

void note_value(Memory& memory, const ep_operand_desc& operand, uint64_t offset) {
  const uint64_t bytes = opaque_bytes(*memory.layer, operand);
  forget_values(memory, offset, bytes);
  memory.values[offset] = {layout_of(operand), bytes};
}

void check_plain(Call& call, const Memory* memory, uint64_t offset, const char* what) {
  if (memory == nullptr) return;
  if (memory->image) return call.refuse("Y06", fmt::format("{} is an image", what));
  const auto found = memory->values.find(offset);
  if (found == memory->values.end()) return;
  call.refuse("Y06", fmt::format("{} is an opaque value, in layout {}", what, found->second.layout.strides[0]));
}

}  // namespace tenon::loader::validate
