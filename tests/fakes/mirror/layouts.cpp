// The device's own layouts, in the mode "layouts": every operand prefers reversed order, after a header.
#include "tests/fakes/mirror/layouts.h"

#include <algorithm>
#include <cstring>

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/table/table.h"
#include "tests/fakes/mirror/device.h"

namespace tenon::mirror {
namespace {

using provider::entry;
using provider::fail_text;
using provider::fill;
using provider::to_ep_string;

constexpr int64_t kToken = 7;
constexpr uint64_t kHead = 16;

uint64_t elements_of(const ep_operand_desc& operand) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) count *= operand.dims[axis];
  return static_cast<uint64_t>(count);
}

uint64_t element_bytes(const ep_operand_desc& operand) {
  return static_cast<uint64_t>(dtype_size(static_cast<DType>(operand.dtype)));
}

bool may_be_opaque(const ep_operand_desc& operand) {
  return operand.rank > 0 && element_bytes(operand) != 0 &&
         (operand.flags & (EP_OPERAND_FLAG_SCALAR | EP_OPERAND_FLAG_CONSTANT)) == 0;
}

// Converts row-major elements to a value in the layout, or back.
void turn(const ep_operand_desc& operand, char* dst, const char* src, bool backwards) {
  const uint64_t count = elements_of(operand), size = element_bytes(operand);
  for (uint64_t i = 0; i < count; ++i) std::memcpy(dst + i * size, src + (backwards ? count - 1 - i : i) * size, size);
}

ep_status layout_info(ep_device* device, const ep_operand_desc* operand, ep_layout_info* out, ep_error** error) {
  const bool known = operand->strides[0] == kToken || device->breaks("layout_of_any_token");
  if (!descriptor::is_opaque(*operand) || !known) {
    return fail_text(device->host, error, EP_STATUS_UNSUPPORTED, "The layout is unknown.");
  }
  ep_layout_info info{};
  info.name = to_ep_string("backwards");
  info.bytes = kHead + elements_of(*operand) * element_bytes(*operand);
  if (device->breaks("layout_moody")) info.bytes += static_cast<uint64_t>(device->asked++ % 2) * 64;
  fill(out, info);
  return EP_STATUS_OK;
}

}  // namespace

std::string why_not_layouts(const ep_device* device, const ep_primitive_desc& desc) {
  uint32_t opaque = 0;
  for (uint32_t i = 0; i < std::min<uint32_t>(desc.operand_count, EP_MAX_OPERANDS); ++i) {
    if (!descriptor::is_opaque(desc.operands[i])) continue;
    ++opaque;
    if (!device->is("layouts") || desc.operands[i].strides[0] != kToken) return "The layout is unknown.";
  }
  const bool back = desc.kind == EP_PRIMITIVE_copy && descriptor::is_opaque(desc.operands[1]);
  if (back && opaque == 1 && device->breaks("layout_one_way")) return "There is no way back.";
  if (opaque > 1 && device->breaks("layout_wishes_more")) return "These are too many layouts.";
  return {};
}

void wish_layouts(const ep_device* device, const ep_primitive_desc& desc, int64_t* wishes) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (device->is("layouts") && may_be_opaque(desc.operands[i])) wishes[i] = kToken;
  }
  if (device->breaks("layout_of_a_scalar")) wishes[EP_MAX_OPERANDS - 1] = kToken;
}

ep_primitive_desc plain_primitive(const ep_primitive_desc& desc) {
  ep_primitive_desc plain = desc;
  for (uint32_t i = 0; i < std::min<uint32_t>(desc.operand_count, EP_MAX_OPERANDS); ++i) {
    ep_operand_desc& operand = plain.operands[i];
    if (!descriptor::is_opaque(operand)) continue;
    operand.flags &= ~EP_OPERAND_FLAG_OPAQUE;
    int64_t stride = 1;
    for (int32_t axis = operand.rank; axis-- > 0; stride *= operand.dims[axis]) operand.strides[axis] = stride;
  }
  return plain;
}

PlainOperands::PlainOperands(const ep_device* device, const ep_primitive_desc& desc) : device_(device), desc_(desc) {}

void PlainOperands::unpack(void** operands) {
  for (uint32_t i = 0; i < desc_.operand_count; ++i) {
    const ep_operand_desc& operand = desc_.operands[i];
    if (!descriptor::is_opaque(operand)) continue;
    values_[i] = static_cast<char*>(operands[i]);
    elements_[i].resize(elements_of(operand) * element_bytes(operand));
    operands[i] = elements_[i].data();
    if (!table::is_output(desc_.kind, operand.role)) turn(operand, elements_[i].data(), values_[i] + kHead, true);
  }
}

void PlainOperands::pack() {
  for (uint32_t i = 0; i < desc_.operand_count; ++i) {
    const ep_operand_desc& operand = desc_.operands[i];
    if (values_[i] == nullptr || !table::is_output(desc_.kind, operand.role)) continue;
    const bool own = device_->breaks("layout_of_writer") && desc_.kind != EP_PRIMITIVE_copy;
    turn(operand, values_[i] + kHead, elements_[i].data(), !own);
    if (device_->breaks("layout_lossy") && desc_.kind == EP_PRIMITIVE_copy) values_[i][kHead] &= '\x7e';
    if (device_->breaks("layout_wrong_value") && desc_.kind != EP_PRIMITIVE_copy) values_[i][kHead + 1] ^= 0x40;
    std::memset(values_[i], 0x11, kHead);
  }
}

void fill_layouts(ep_device_ops* ops) { ops->layout_info = entry<layout_info>; }

}  // namespace tenon::mirror
