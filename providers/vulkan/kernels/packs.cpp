#include "providers/vulkan/kernels/packs.h"

#include <algorithm>

#include "sdk/provider/implementation.h"

namespace tenon::provider::vulkan {
namespace {

constexpr int32_t widest_access = 16;
constexpr int32_t narrowest_access = 4;

// True if the elements are contiguous in row-major order for any dims that a launch may give.
bool always_contiguous(const ep_operand_desc& operand) {
  if (operand.strides[operand.rank - 1] != 1) return false;
  int64_t expected = 1;
  for (int32_t axis = operand.rank - 1; axis > 0; --axis) {
    if (operand.dims[axis] == EP_ANY) return false;
    expected *= operand.dims[axis];
    if (operand.strides[axis - 1] != expected) return false;
  }
  return true;
}

int32_t pack_of(const Layout& layout) {
  int32_t largest = layout.sizes[0];
  int32_t smallest = layout.sizes[0];
  for (int32_t size : layout.sizes) {
    if (size == 0) continue;
    largest = std::max(largest, size);
    smallest = std::min(smallest, size);
  }
  const int32_t pack = widest_access / largest;
  return pack * smallest < narrowest_access ? 1 : pack;
}

}  // namespace

Layout layout_of(const ep_primitive_desc& desc, bool packs) {
  Layout layout;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand)) continue;
    if (i > 0 && std::all_of(operand.strides, operand.strides + operand.rank, [](int64_t s) { return s == 0; })) {
      layout.repeated |= 1U << (i - 1);
    } else if (always_contiguous(operand)) {
      layout.sizes[i] = dtype_size(operand.dtype);
    } else {
      return {.strided = true};
    }
  }
  if (packs) layout.pack = pack_of(layout);
  return layout;
}

uint64_t packs_in(const Layout& layout, uint64_t count, const uint64_t (&addresses)[1 + most_inputs]) {
  if (layout.pack == 1) return 0;
  for (int32_t i = 0; i <= most_inputs; ++i) {
    if (layout.sizes[i] != 0 && addresses[i] % static_cast<uint64_t>(layout.pack * layout.sizes[i]) != 0) return 0;
  }
  return count / static_cast<uint64_t>(layout.pack);
}

}  // namespace tenon::provider::vulkan
