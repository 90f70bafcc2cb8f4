// concat and split: several operands are consecutive parts of another operand along an axis.
#include <algorithm>

#include "providers/cpu/movement/movement.h"
#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/simd/copy_bytes.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int32_t most_woven = 4;  // parts that are written together

// to[count * i + k] = from[k][i] for begin <= i < end
template <class T, int count>
void weave(char* to, const char* const* from, int64_t begin, int64_t end) {
  T* __restrict out = reinterpret_cast<T*>(to);
  const T* in[count];
  for (int k = 0; k < count; ++k) in[k] = reinterpret_cast<const T*>(from[k]);
  for (int64_t i = begin; i < end; ++i) {
    for (int k = 0; k < count; ++k) out[count * i + k] = in[k][i];
  }
}

using Weave = void (*)(char*, const char* const*, int64_t, int64_t);

template <class T>
Weave weave_of(int32_t parts) {
  switch (parts) {
    case 2: return weave<T, 2>;
    case 3: return weave<T, 3>;
    case most_woven: return weave<T, most_woven>;
    default: return nullptr;
  }
}
Weave weave_of(int32_t size, int32_t parts) {
  switch (size) {
    case 1: return weave_of<uint8_t>(parts);
    case 2: return weave_of<uint16_t>(parts);
    case 4: return weave_of<uint32_t>(parts);
    case 8: return weave_of<uint64_t>(parts);
    default: return nullptr;
  }
}

// One operand, divided by the axes before the joined one: `count` runs of `bytes`, `step` bytes apart. A part is at
// byte `position` of each run of the whole.
struct Runs {
  char* address;
  int64_t count, bytes, step, position;

  // Returns false if a run is not contiguous, or runs are not equally spaced.
  bool read(const OperandShape& operand, int32_t axis, int32_t size) {
    Axes before, within;
    for (int32_t k = 0; k < operand.rank; ++k) (k < axis ? before : within).add(operand.dims[k], operand.strides[k]);
    count = before.count();
    bytes = within.count() * size;
    int64_t unit = 0;
    for (int32_t k = 0; k < axis; ++k) {
      if (before.dims[k] != 1) unit = before.strides[k];
    }
    step = unit * size;
    return within.contiguous() && before.contiguous(unit);
  }
};

class PartsPrimitive final : public ep_primitive {
 public:
  explicit PartsPrimitive(const ep_primitive_desc& desc)
      : desc_(desc),
        joins_(desc.kind == EP_PRIMITIVE_concat),
        whole_(joins_ ? 0 : static_cast<int32_t>(desc.operand_count) - 1),
        weave_(weave_of(dtype_size(desc.operands[0].dtype), static_cast<int32_t>(desc.operand_count) - 1)) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    if (weaves(launch.shapes)) {
      weave_parts(launch);
      return EP_STATUS_OK;
    }
    const int32_t axis = joins_ ? desc_.attributes.concat.axis : desc_.attributes.split.axis;
    if (copy_runs(launch, axis)) return EP_STATUS_OK;
    const OperandShape whole = shape(launch.shapes, whole_);
    const int32_t size = dtype_size(desc_.operands[0].dtype);
    int64_t position = 0;
    for (int32_t i = 0; i < static_cast<int32_t>(desc_.operand_count); ++i) {
      if (i == whole_) continue;
      const OperandShape part = shape(launch.shapes, i);
      StridedCopy copy;
      copy.rank = part.rank;
      copy.size = size;
      for (int32_t k = 0; k < part.rank; ++k) {
        copy.dims[k] = part.dims[k];
        copy.dst_strides[k] = joins_ ? whole.strides[k] : part.strides[k];
        copy.src_strides[k] = joins_ ? part.strides[k] : whole.strides[k];
      }
      char* inside = address_of(launch.operands[whole_]) + position * whole.strides[axis] * size;
      char* alone = address_of(launch.operands[i]);
      strided_copy(copy, joins_ ? inside : alone, joins_ ? alone : inside, device->simd, device->threads);
      position += part.dims[axis];
    }
    return EP_STATUS_OK;
  }

 private:
  OperandShape shape(const ep_shape* shapes, int32_t i) const {
    return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
  }

  // True if the parts have one element each along the last axis, and can be written together.
  bool weaves(const ep_shape* shapes) const {
    if (weave_ == nullptr || !joins_ || desc_.attributes.concat.axis != desc_.operands[0].rank - 1) return false;
    const auto count = static_cast<int32_t>(desc_.operand_count);
    for (int32_t i = 0; i < count; ++i) {
      const OperandShape operand = shape(shapes, i);
      if (i != whole_ && operand.dims[operand.rank - 1] != 1) return false;
    }
    for (int32_t i = 0; i < count; ++i) {
      if (!axes_of(shape(shapes, i), ~0U, true).contiguous()) return false;
    }
    return true;
  }

  void weave_parts(const ep_launch& launch) const {
    const int32_t parts = static_cast<int32_t>(desc_.operand_count) - 1;
    const char* from[most_woven];
    for (int32_t i = 0; i < parts; ++i) from[i] = address_of(launch.operands[1 + i]);
    const int64_t rows = axes_of(shape(launch.shapes, 1), ~0U, true).count();
    parallel(device->threads, rows * parts * dtype_size(desc_.operands[0].dtype) / 8, [&](int32_t part, int32_t of) {
      weave_(address_of(launch.operands[0]), from, rows * part / of, rows * (part + 1) / of);
    });
  }

  // Copies all parts in one region of threads. Returns false if an operand does not consist of long runs.
  bool copy_runs(const ep_launch& launch, int32_t axis) const {
    constexpr int64_t shortest = 64;  // bytes
    const int32_t size = dtype_size(desc_.operands[0].dtype);
    Runs runs[EP_MAX_OPERANDS], whole;
    int32_t parts = 0;
    for (int32_t i = 0; i < static_cast<int32_t>(desc_.operand_count); ++i) {
      Runs& one = i == whole_ ? whole : runs[parts];
      if (!one.read(shape(launch.shapes, i), axis, size)) return false;
      one.address = address_of(launch.operands[i]);
      if (i == whole_ || one.bytes == 0) continue;
      if (one.count > 1 && one.bytes < shortest) return false;
      one.position = parts == 0 ? 0 : runs[parts - 1].position + runs[parts - 1].bytes;
      ++parts;
    }
    const int64_t total = whole.count * whole.bytes;
    if (total == 0) return true;
    parallel(device->threads, total / 8, [&](int32_t part, int32_t of) {
      const auto cut = [&](int32_t k) { return k == 0 ? 0 : k == of ? total : total * k / of / shortest * shortest; };
      const int64_t begin = cut(part), end = cut(part + 1);
      int64_t row = begin == 0 ? 0 : begin / whole.bytes, within = begin - row * whole.bytes;
      int32_t k = 0;
      while (within >= runs[k].position + runs[k].bytes) ++k;
      for (int64_t at = begin; at < end;) {
        const Runs& one = runs[k];
        const int64_t n = std::min(end - at, one.position + one.bytes - within);
        char* const inside = whole.address + row * whole.step + within;
        char* const alone = one.address + row * one.step + within - one.position;
        copy_bytes(joins_ ? inside : alone, joins_ ? alone : inside, static_cast<size_t>(n));
        at += n;
        within += n;
        if (within < one.position + one.bytes || ++k < parts) continue;
        k = 0;
        within = 0;
        ++row;
      }
    });
    return true;
  }

  ep_primitive_desc desc_;
  bool joins_;
  int32_t whole_;
  Weave weave_;
};

}  // namespace

Refusal Parts::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count < 2) return Refusal::because("%u operands", desc.operand_count);
  const bool joins = desc.kind == EP_PRIMITIVE_concat;
  const int32_t whole = joins ? 0 : static_cast<int32_t>(desc.operand_count) - 1;
  if (desc.operands[whole].role != (joins ? EP_ROLE_DST : EP_ROLE_SRC))
    return Refusal::because("operand %d has role %d", whole, desc.operands[whole].role);
  const int32_t axis = joins ? desc.attributes.concat.axis : desc.attributes.split.axis;
  const ep_operand_desc& first = desc.operands[0];
  if (axis < 0 || axis >= first.rank) return Refusal::because("axis %d of rank %d", axis, first.rank);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || operand.rank != first.rank)
      return Refusal::because("operand %u has rank %d", i, operand.rank);
    if (operand.dtype != first.dtype)
      return Refusal::because("parts of %s and %s", dtype_name(first.dtype), dtype_name(operand.dtype));
  }
  if (dtype_size(first.dtype) == 0) return Refusal::because("%s is packed", dtype_name(first.dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Parts::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<PartsPrimitive>(device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
