#include "tests/fakes/async/layouts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/table/table.h"
#include "sdk/provider/negotiate.h"
#include "tests/fakes/async/device.h"

namespace tenon::fakes {
namespace {

constexpr int64_t kTokens = 5;  // 1 to 5; the odd ones are images, if there are images
constexpr uint64_t kMagic = 0x7061716f6e6f6e65;
constexpr char kGarbage = 0x5c;

struct Head {
  uint64_t magic, token, key;
};

uint32_t operands_of(const ep_primitive_desc& desc) { return std::min<uint32_t>(desc.operand_count, EP_MAX_OPERANDS); }

uint64_t mix(uint64_t seed, uint64_t value) {
  seed = (seed ^ value) * 0x9e3779b97f4a7c15u;
  return seed ^ seed >> 29;
}

// The arguments of a layout: seed, token, dtype and dims.
uint64_t key_of(const ep_operand_desc& operand) {
  uint64_t key = mix(async_control().layout_seed.load(), static_cast<uint64_t>(operand.dtype));
  for (int32_t axis = 0; axis < operand.rank; ++axis) key = mix(key, static_cast<uint64_t>(operand.dims[axis]));
  return descriptor::is_opaque(operand) ? mix(key, static_cast<uint64_t>(operand.strides[0])) : key;
}

int64_t elements_of(const ep_operand_desc& operand) {
  return std::accumulate(operand.dims, operand.dims + operand.rank, int64_t{1}, std::multiplies<>());
}

uint64_t element_bytes(const ep_operand_desc& operand) {
  return static_cast<uint64_t>(dtype_size(static_cast<DType>(operand.dtype)));
}

// Element i lies at slot (i * step + begin) % places.
struct Order {
  uint64_t places, step, begin;
  explicit Order(const ep_operand_desc& operand) {
    const uint64_t key = key_of(operand);
    const auto elements = static_cast<uint64_t>(elements_of(operand));
    places = (elements + 3) / 4 * 4 + key % 3 * 4;
    step = 1 + (key >> 8) % places;
    while (std::gcd(step, places) != 1) ++step;
    begin = (key >> 20) % places;
  }
  uint64_t place(uint64_t element) const { return (element * step + begin) % places; }
};

// Returns a token that the device has defined for this dtype and these dims.
bool is_made(const ep_operand_desc& operand, int64_t token) {
  return token >= 1 && token <= kTokens && operand.rank >= 1 && element_bytes(operand) != 0 &&
         (token != kTokens || operand.rank > 1);
}

int64_t wish_for(const ep_primitive_desc& desc, uint32_t index) {
  const ep_operand_desc& operand = desc.operands[index];
  if ((operand.flags & (EP_OPERAND_FLAG_SCALAR | EP_OPERAND_FLAG_CONSTANT)) != 0) return 0;
  const uint64_t drawn = mix(mix(key_of(plain_operand(operand)), static_cast<uint64_t>(desc.kind)), index);
  const auto token = static_cast<int64_t>(drawn >> 7) % (2 * kTokens) - kTokens + 1;
  return is_made(operand, token) ? token : 0;
}

// Copies between row-major elements and a layout always work; copies between layouts and strides sometimes do.
bool takes(const ep_primitive_desc& desc, uint32_t index) {
  const ep_operand_desc& operand = desc.operands[index];
  if (!descriptor::is_opaque(operand) || wish_for(desc, index) == operand.strides[0]) return true;
  if (desc.kind == EP_PRIMITIVE_copy) {
    const ep_operand_desc& other = desc.operands[1 - index];
    const ep_operand_desc plain = plain_operand(other);
    const bool row_major =
        !descriptor::is_opaque(other) && std::equal(plain.strides, plain.strides + other.rank, other.strides);
    if (row_major && other.dtype == operand.dtype) return true;
  }
  return mix(key_of(operand), static_cast<uint64_t>(desc.kind) * 31 + index) % 2 == 0;
}

}  // namespace

bool has_layouts() { return async_control().layout_seed.load(std::memory_order_relaxed) != 0; }

std::string why_not_layouts(const ep_primitive_desc& desc) {
  for (uint32_t i = 0; i < operands_of(desc); ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (!descriptor::is_opaque(operand)) continue;
    if (!has_layouts() || !is_made(operand, operand.strides[0])) {
      return fmt::format("operand {} lies in layout {}, which is unknown.", i, operand.strides[0]);
    }
    if (!takes(desc, i)) return fmt::format("the draw refuses layout {} for operand {}.", operand.strides[0], i);
  }
  return {};
}

void wish_layouts(const ep_primitive_desc& desc, int64_t* wishes) {
  for (uint32_t i = 0; has_layouts() && i < desc.operand_count; ++i) {
    wishes[i] = descriptor::is_opaque(desc.operands[i]) ? 0 : wish_for(desc, i);
  }
}

ep_operand_desc plain_operand(const ep_operand_desc& operand) {
  ep_operand_desc plain = operand;
  plain.flags &= ~EP_OPERAND_FLAG_OPAQUE;
  int64_t stride = 1;
  for (int32_t axis = operand.rank - 1; axis >= 0; --axis) {
    plain.strides[axis] = stride;
    stride *= operand.dims[axis];
  }
  return plain;
}

ep_primitive_desc plain_primitive(const ep_primitive_desc& desc) {
  ep_primitive_desc plain = desc;
  for (uint32_t i = 0; i < operands_of(desc); ++i) {
    if (descriptor::is_opaque(desc.operands[i])) plain.operands[i] = plain_operand(desc.operands[i]);
  }
  return plain;
}

uint64_t operand_bytes(const ep_operand_desc& operand) {
  if (descriptor::is_opaque(operand)) return sizeof(Head) + Order(operand).places * element_bytes(operand);
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
  return static_cast<uint64_t>(dtype_bytes(static_cast<DType>(operand.dtype), last + 1));
}

bool is_image(const ep_operand_desc& operand) { return async_control().images.load() && operand.strides[0] % 2 == 1; }

void check_home(const ep_operand_desc& operand, const ep_memory* memory) {
  if (!descriptor::is_opaque(operand) || !is_image(operand)) return check_no_image(memory);
  if (!memory->image) async_control().violate("a layout of images lies in plain memory");
}

namespace {

// Writes the row-major elements at `plain` into the layout of `operand`.
void pack(const ep_operand_desc& operand, const char* plain, char* value) {
  const Order order(operand);
  const uint64_t size = element_bytes(operand);
  std::memset(value, kGarbage, operand_bytes(operand));
  const Head head{kMagic, static_cast<uint64_t>(operand.strides[0]), key_of(operand)};
  std::memcpy(value, &head, sizeof head);
  const auto change = static_cast<char>(head.key | 1);
  for (int64_t i = 0; i < elements_of(operand); ++i) {
    char* to = value + sizeof head + order.place(static_cast<uint64_t>(i)) * size;
    const char* from = plain + static_cast<uint64_t>(i) * size;
    std::transform(from, from + size, to, [change](char byte) { return static_cast<char>(byte ^ change); });
  }
}

// The other direction. Returns what is wrong if the bytes are not a value of this layout.
std::string unpack(const ep_operand_desc& operand, const char* value, char* plain) {
  const Order order(operand);
  const uint64_t size = element_bytes(operand);
  Head head{};
  std::memcpy(&head, value, sizeof head);
  if (head.magic != kMagic || head.token != static_cast<uint64_t>(operand.strides[0]) || head.key != key_of(operand)) {
    return fmt::format("an operand is read under token {} and holds no value of that layout", operand.strides[0]);
  }
  const auto change = static_cast<char>(head.key | 1);
  for (int64_t i = 0; i < elements_of(operand); ++i) {
    const char* from = value + sizeof head + order.place(static_cast<uint64_t>(i)) * size;
    std::transform(from, from + size, plain + static_cast<uint64_t>(i) * size,
                   [change](char byte) { return static_cast<char>(byte ^ change); });
  }
  return {};
}

bool is_output(const ep_primitive_desc& desc, uint32_t index) {
  return desc.kind >= kMix ? index == 0 : table::is_output(desc.kind, desc.operands[index].role);
}

}  // namespace

PlainRun::PlainRun(const ep_primitive_desc& given, char* const* values)
    : desc(plain_primitive(given)),
      operands(values, values + given.operand_count),
      given_(given),
      values_(values),
      elements_(given.operand_count) {
  for (uint32_t i = 0; i < given.operand_count; ++i) {
    if (!descriptor::is_opaque(given.operands[i])) continue;
    elements_[i].resize(operand_bytes(desc.operands[i]));
    operands[i] = elements_[i].data();
    if (is_output(given, i)) continue;
    const std::string wrong = unpack(given.operands[i], values[i], operands[i]);
    if (!wrong.empty()) async_control().violate(wrong);
    async_control().opaque_reads.fetch_add(1, std::memory_order_relaxed);
  }
}

void PlainRun::finish() {
  for (uint32_t i = 0; i < given_.operand_count; ++i) {
    if (elements_[i].empty() || !is_output(given_, i)) continue;
    pack(given_.operands[i], elements_[i].data(), values_[i]);
    async_control().opaque_writes.fetch_add(1, std::memory_order_relaxed);
  }
}

namespace {

ep_status unknown(const ep_device* device, const ep_operand_desc* operand, ep_error** error) {
  return fail(device->host, error, EP_STATUS_UNSUPPORTED,
              fmt::format("layout {} is unknown for this dtype and these dims.", operand->strides[0]));
}

ep_status layout_info(ep_device* device, const ep_operand_desc* operand, ep_layout_info* out, ep_error** error) {
  static constexpr const char* kNames[kTokens] = {"draw_1", "draw_2", "draw_3", "draw_4", "draw_5"};
  if (!descriptor::is_opaque(*operand) || !is_made(*operand, operand->strides[0])) {
    return unknown(device, operand, error);
  }
  ep_layout_info info{};
  info.name = {kNames[operand->strides[0] - 1], 6};
  info.bytes = operand_bytes(*operand);
  info.pool = is_image(*operand) ? image_pool(device->plugin) : 0;
  provider::fill(out, info);
  return EP_STATUS_OK;
}

ep_status layout_allocate(ep_device* device, const ep_operand_desc* operand, ep_memory** out, ep_error** error) {
  if (!descriptor::is_opaque(*operand) || !is_made(*operand, operand->strides[0]) || !is_image(*operand)) {
    return unknown(device, operand, error);
  }
  const ep_status status = allocate(device, operand_bytes(*operand), true, out, error);
  if (status == EP_STATUS_OK) (*out)->image = true;
  return status;
}

}  // namespace

void fill_layouts(ep_device_ops* ops) {
  ops->layout_info = layout_info;
  if (async_control().images) ops->layout_allocate = layout_allocate;
}

}  // namespace tenon::fakes
