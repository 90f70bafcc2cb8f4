// quantise, dequantise and binary over bytes: processes rows along an axis with constant scales.
#include <algorithm>
#include <cstring>
#include <vector>

#include "providers/cpu/quantised/quantised.h"
#include "providers/cpu/quantised/rows.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kChunk = 4096;  // elements per buffer

bool is_byte(int32_t dtype) { return dtype == EP_DTYPE_i8 || dtype == EP_DTYPE_u8; }

// A tensor operand, and the operands of its scale and zero point; -1 if absent.
struct Numbers {
  int32_t operand = -1, scale = -1, zero = -1;
  ep_quantisation how{};
};

std::vector<Numbers> operands_of(const ep_primitive_desc& desc) {
  const auto at = [&](int32_t role, int32_t scale_role, const ep_quantisation& how) {
    return Numbers{find_operand(desc, role), scale_role == 0 ? -1 : find_operand(desc, scale_role),
                   scale_role == 0 ? -1 : find_operand(desc, scale_role + 1), how};
  };
  if (desc.kind == EP_PRIMITIVE_quantise) {
    return {at(EP_ROLE_DST, EP_ROLE_DST_SCALE, desc.attributes.quantise.dst), at(EP_ROLE_SRC, 0, {})};
  }
  if (desc.kind == EP_PRIMITIVE_dequantise) {
    return {at(EP_ROLE_DST, 0, {}), at(EP_ROLE_SRC, EP_ROLE_SRC_SCALE, desc.attributes.dequantise.src)};
  }
  return {at(EP_ROLE_DST, EP_ROLE_DST_SCALE, {}), at(EP_ROLE_SRC, EP_ROLE_SRC_SCALE, {}),
          at(EP_ROLE_SRC_B, EP_ROLE_WEIGHT_SCALE, {})};
}

class Elements final : public ep_primitive {
 public:
  Elements(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc), operands_(operands_of(desc)), rows_(byte_rows(on.simd)) {
    const ep_operand_desc& dst = desc_.operands[0];
    uint32_t differs = 0;
    for (const Numbers& each : operands_) differs |= each.how.axes;
    inner_ = -1;
    for (int32_t axis = 0; axis < dst.rank; ++axis) {
      if ((differs >> axis & 1) == 0) inner_ = axis;
    }
    length_ = inner_ < 0 ? 1 : dst.dims[inner_];
    outer_ = 1;
    for (int32_t axis = 0; axis < dst.rank; ++axis) outer_ *= axis == inner_ ? 1 : dst.dims[axis];
    chunks_ = (length_ + kChunk - 1) / kChunk;
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const int64_t units = outer_ * chunks_;
    parallel(device->threads, outer_ * length_ / 4, [&](int32_t part, int32_t parts) {
      Buffers buffers;
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) run(launch, unit, &buffers);
    });
    return EP_STATUS_OK;
  }

 private:
  struct Buffers {
    alignas(64) char bytes[3][kChunk * 4];
  };

  // Elements [begin, begin + count) of a row of operand `i`.
  struct Row {
    char* address;
    int64_t stride;
    Number number;
  };

  Row row_of(const ep_launch& launch, const Numbers& numbers, const int64_t* index, int64_t begin) const {
    const ep_operand_desc& operand = desc_.operands[numbers.operand];
    int64_t offset = 0;
    for (int32_t axis = 0; axis < operand.rank; ++axis) offset += index[axis] * operand.strides[axis];
    const int64_t stride = inner_ < 0 ? 1 : operand.strides[inner_];
    char* address =
        address_of(launch.operands[numbers.operand]) + (offset + begin * stride) * dtype_size(operand.dtype);
    return {address, stride, number_of(launch, numbers, index)};
  }

  Number number_of(const ep_launch& launch, const Numbers& numbers, const int64_t* index) const {
    const bool is_signed = desc_.operands[numbers.operand].dtype == EP_DTYPE_i8;
    Number number{1, 0, is_signed};
    if (numbers.scale >= 0) std::memcpy(&number.scale, parameter(launch, numbers, numbers.scale, index), 4);
    if (numbers.zero >= 0) {
      const char* zero = parameter(launch, numbers, numbers.zero, index);
      number.zero =
          is_signed ? static_cast<float>(static_cast<int8_t>(*zero)) : static_cast<float>(static_cast<uint8_t>(*zero));
    }
    return number;
  }

  const char* parameter(const ep_launch& launch, const Numbers& numbers, int32_t which, const int64_t* index) const {
    const ep_operand_desc& operand = desc_.operands[which];
    int64_t offset = 0;
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      if ((numbers.how.axes >> axis & 1) == 0) continue;
      const int32_t block = axis - numbers.how.block_axis;
      const bool in_blocks = numbers.how.block[0] != 0 && (block == 0 || block == 1) && numbers.how.block[block] != 0;
      offset += (in_blocks ? index[axis] / numbers.how.block[block] : index[axis]) * operand.strides[axis];
    }
    return address_of(launch.operands[which]) + offset * dtype_size(operand.dtype);
  }

  void run(const ep_launch& launch, int64_t unit, Buffers* buffers) const {
    const ep_operand_desc& dst = desc_.operands[0];
    const int64_t begin = unit % chunks_ * kChunk, count = std::min(kChunk, length_ - begin);
    int64_t index[EP_MAX_RANK] = {}, rest = unit / chunks_;
    for (int32_t axis = dst.rank; axis-- > 0;) {
      if (axis == inner_) continue;
      index[axis] = rest % dst.dims[axis];
      rest /= dst.dims[axis];
    }
    Row rows[3];
    const char* in[3] = {};
    for (size_t i = 0; i < operands_.size(); ++i) {
      rows[i] = row_of(launch, operands_[i], index, begin);
      if (i > 0)
        in[i] = gathered(rows[i], dtype_size(desc_.operands[operands_[i].operand].dtype), count, buffers->bytes[i]);
    }
    const int32_t size = dtype_size(dst.dtype);
    char* out = rows[0].stride == 1 ? rows[0].address : buffers->bytes[0];
    const auto bytes = [](const char* at) { return reinterpret_cast<const uint8_t*>(at); };
    if (desc_.kind == EP_PRIMITIVE_quantise) {
      rows_.write(reinterpret_cast<uint8_t*>(out), reinterpret_cast<const float*>(in[1]), count, rows[0].number);
    } else if (desc_.kind == EP_PRIMITIVE_dequantise) {
      rows_.read(reinterpret_cast<float*>(out), bytes(in[1]), count, rows[1].number);
    } else {
      const Number numbers[3] = {rows[1].number, rows[2].number, rows[0].number};
      const auto combine = desc_.attributes.binary.op == EP_BINARY_add ? rows_.add : rows_.mul;
      combine(reinterpret_cast<uint8_t*>(out), bytes(in[1]), bytes(in[2]), count, numbers);
    }
    if (rows[0].stride == 1) return;
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(rows[0].address + i * rows[0].stride * size, out + i * size, static_cast<size_t>(size));
    }
  }

  static const char* gathered(const Row& row, int32_t size, int64_t count, char* buffer) {
    if (row.stride == 1) return row.address;
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(buffer + i * size, row.address + i * row.stride * size, static_cast<size_t>(size));
    }
    return buffer;
  }

  const ep_primitive_desc desc_;
  const std::vector<Numbers> operands_;
  const ByteRows& rows_;
  int32_t inner_;
  int64_t length_, outer_, chunks_;
};

}  // namespace

Refusal QuantisedElements::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("kernels over rows of bytes need static dims");
  const bool combines = desc.kind == EP_PRIMITIVE_binary;
  if (combines && desc.attributes.binary.op != EP_BINARY_add && desc.attributes.binary.op != EP_BINARY_mul) {
    return Refusal::because("%s of quantised operands", binary_name(desc.attributes.binary.op));
  }
  int32_t dtype = 0;
  for (const Numbers& each : operands_of(desc)) {
    if (each.operand < 0) return Refusal::because("an operand is missing");
    const ep_operand_desc& operand = desc.operands[each.operand];
    const bool quantised = each.scale >= 0 || each.zero >= 0;
    if (is_scalar(operand)) return Refusal::because("a scalar");
    if (quantised ? !is_byte(operand.dtype) : operand.dtype != EP_DTYPE_f32) {
      return Refusal::because("operand %d is %s", each.operand, dtype_name(operand.dtype));
    }
    if (combines && dtype != 0 && operand.dtype != dtype) return Refusal::because("operands of i8 and of u8");
    dtype = operand.dtype;
    if (each.scale >= 0 && desc.operands[each.scale].dtype != EP_DTYPE_f32) {
      return Refusal::because("a scale of %s", dtype_name(desc.operands[each.scale].dtype));
    }
  }
  return {};
}

Refusal QuantisedElements::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                ep_primitive_info&) {
  *out = make_primitive<Elements>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
