#include "providers/cpu/elementwise/tail.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t block = 1024;            // all steps process a block before the next block begins
constexpr int64_t worth_threads = 10'000;  // nanoseconds of work from which on several threads pay

MapKernel kernel_of(const ep_device& device, const ep_epilogue& epilogue) {
  return epilogue.arity == 1 ? unary_kernel(device.simd, epilogue.op, EP_DTYPE_f32)
                             : binary_kernel(device.simd, epilogue.op, EP_DTYPE_f32);
}

// Returns the number of elements if `operand` is dense in any order of axes, else 0.
int64_t gapless(const ep_operand_desc& operand) {
  int64_t elements = 1;
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    elements *= operand.dims[axis];
    last += (operand.dims[axis] - 1) * operand.strides[axis];
  }
  return last + 1 == elements ? elements : 0;
}

}  // namespace

bool lies_as_dst(const ep_primitive_desc& desc, const ep_operand_desc& other) {
  const ep_operand_desc& dst = desc.operands[0];
  if (other.rank != dst.rank) return false;
  for (int32_t axis = 0; axis < dst.rank; ++axis) {
    if (other.dims[axis] != dst.dims[axis]) return false;
    if (dst.dims[axis] != 1 && other.strides[axis] != dst.strides[axis]) return false;
  }
  return true;
}

Refusal why_no_tail(const ep_device& device, const ep_primitive_desc& desc, uint32_t first) {
  if (first < desc.epilogue_count && gapless(desc.operands[0]) == 0) {
    return Refusal::because("epilogue %u over a result with gaps", first);
  }
  if (first < desc.epilogue_count && desc.operands[0].dtype != EP_DTYPE_f32) {
    return Refusal::because("epilogue %u over %s", first, dtype_name(desc.operands[0].dtype));
  }
  for (uint32_t i = first; i < desc.epilogue_count; ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    const char* name = epilogue.arity == 1 ? unary_name(epilogue.op) : binary_name(epilogue.op);
    const bool tensor = epilogue.arity == 2 && epilogue.role != 0;
    if (tensor) {
      const ep_operand_desc* other = operand(desc, epilogue.role);
      if (other == nullptr) return Refusal::because("epilogue %u has no operand of role %d", i, epilogue.role);
      if (other->dtype != EP_DTYPE_f32 || !lies_as_dst(desc, *other)) {
        return Refusal::because("epilogue %u, %s of a tensor that is not laid out like the result", i, name);
      }
    }
    const int32_t scalars = epilogue.arity == 1 ? 2 : 1;
    if (!tensor && (epilogue.scalar < 0 || epilogue.scalar + scalars > EP_MAX_SCALARS)) {
      return Refusal::because("epilogue scalar %d", epilogue.scalar);
    }
    const MapKernel kernel = kernel_of(device, epilogue);
    if (kernel.function == nullptr || kernel.dst_dtype != EP_DTYPE_f32 ||
        kernel.implementation != std::string_view("simd")) {
      return Refusal::because("no vectors for epilogue %s on f32", name);
    }
  }
  return {};
}

Tail::Tail(const ep_device& device, const ep_primitive_desc& desc, uint32_t first)
    : elements_(gapless(desc.operands[0])) {
  for (uint32_t i = first; i < desc.epilogue_count; ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    const int32_t other = epilogue.arity == 2 && epilogue.role != 0 ? find_operand(desc, epilogue.role) : -1;
    steps_.push_back({kernel_of(device, epilogue), epilogue.arity, epilogue.scalar, other});
    picoseconds_ += steps_.back().kernel.picoseconds;
  }
}

void Tail::run(const ep_launch& launch, int32_t width) const {
  const int64_t nanoseconds = elements_ * picoseconds_ / 1000;
  if (width == 1 || nanoseconds < worth_threads) return run_part(launch, 0, elements_);
  const int64_t blocks = (elements_ + block - 1) / block;
  run_parts(width, nanoseconds, [&](int32_t part, int32_t parts) {
    run_part(launch, blocks * part / parts * block, std::min(elements_, blocks * (part + 1) / parts * block));
  });
}

void Tail::run_part(const ep_launch& launch, int64_t begin, int64_t end) const {
  auto* dst = reinterpret_cast<float*>(address_of(launch.operands[0]));
  const auto longest = static_cast<size_t>(std::min(block, end - begin));
  alignas(64) float repeated[EP_MAX_EPILOGUES][block];  // values of the scalar operands
  const float* others[EP_MAX_EPILOGUES] = {};           // tensor operands; NULL: none
  MapContext contexts[EP_MAX_EPILOGUES];
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto value = [&](int32_t parameter) {
      const auto slot = static_cast<uint32_t>(steps_[i].scalar + parameter);
      return slot < launch.scalar_count ? static_cast<float>(launch.scalars[slot].value.f64) : 0.0F;
    };
    if (steps_[i].other >= 0) {
      others[i] = reinterpret_cast<const float*>(address_of(launch.operands[steps_[i].other]));
    } else if (steps_[i].arity == 2) {
      std::fill_n(repeated[i], longest, value(0));
    } else {
      const float parameters[] = {value(0), value(1)};
      std::memcpy(contexts[i].a, &parameters[0], sizeof parameters[0]);
      std::memcpy(contexts[i].b, &parameters[1], sizeof parameters[1]);
    }
  }
  for (int64_t at = begin; at < end; at += block) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const void* sources[] = {dst + at, others[i] != nullptr ? others[i] + at : repeated[i]};
      steps_[i].kernel.function(dst + at, sources, std::min(block, end - at), contexts[i]);
    }
  }
}

}  // namespace tenon::provider::cpu
