// convolution_weight over f32: operands whose channels are not contiguous are copied; then Winograd's method or the
// direct method runs.
#include <algorithm>
#include <optional>

#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/weight_gradient/direct.h"
#include "providers/cpu/weight_gradient/weight_gradient.h"
#include "providers/cpu/weight_gradient/winograd.h"

namespace tenon::provider::cpu {
namespace {

// The bytes to copy for an operand with channels first, if the descriptor is static.
uint64_t bytes_of(const ep_operand_desc& operand) {
  uint64_t bytes = sizeof(float);
  for (int32_t axis = 0; axis < operand.rank; ++axis) bytes *= static_cast<uint64_t>(operand.dims[axis]);
  return bytes;
}

class WeightProduct final : public ep_primitive {
 public:
  WeightProduct(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        src_(find_operand(desc, EP_ROLE_SRC)),
        gradient_(find_operand(desc, EP_ROLE_GRADIENT)),
        level_(on.simd),
        threads_(on.threads) {
    if (!is_dynamic(desc)) plan_.emplace(WeightSizes(desc, nullptr), level_, threads_);
  }

  uint64_t workspace(const ep_shape* shapes) const override {
    std::optional<Plan> made;
    return static_cast<uint64_t>(plan(shapes, &made).floats()) * sizeof(float);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    std::optional<Plan> made;
    const Plan& plan = this->plan(launch.shapes, &made);
    if (plan.sizes.out == 0 || plan.sizes.in == 0 || plan.sizes.taps() == 0) return EP_STATUS_OK;
    auto* room = reinterpret_cast<float*>(address_of(launch.workspace));
    const auto floats = [&](int32_t i) { return reinterpret_cast<float*>(address_of(launch.operands[i])); };
    WeightOperands operands{floats(src_), floats(gradient_), floats(0), plan.sizes.src_strides,
                            plan.sizes.gradient_strides};
    if (plan.moves_src) {
      operands.src =
          lay_out(operands.src, plan.sizes.src, plan.sizes.images, plan.sizes.in, &operands.src_strides, room);
      room += plan.src_floats();
    }
    if (plan.moves_gradient) {
      operands.gradient = lay_out(operands.gradient, plan.sizes.results, plan.sizes.images, plan.sizes.out,
                                  &operands.gradient_strides, room);
      room += plan.gradient_floats();
    }
    if (!plan.winograd || !plan.winograd->run(operands, room)) plan.direct.run(operands, room);
    return EP_STATUS_OK;
  }

 private:
  // The plan of a launch with certain sizes.
  struct Plan {
    Plan(const WeightSizes& of, SimdLevel level, int32_t threads) : sizes(of), direct(of, level, threads) {
      moves_src = sizes.src_strides.channel != 1 && sizes.in > 1 && !direct.framed();
      moves_gradient = sizes.gradient_strides.channel != 1 && sizes.out > 1;
      if (WinogradWeightGradient::pays(sizes)) winograd.emplace(sizes, level, threads);
    }
    int64_t src_floats() const { return moves_src ? sizes.src_pixels() * sizes.in : 0; }
    int64_t gradient_floats() const { return moves_gradient ? sizes.pixels() * sizes.out : 0; }
    int64_t floats() const {
      return src_floats() + gradient_floats() + std::max(direct.floats(), winograd ? winograd->floats() : 0);
    }

    WeightSizes sizes;
    DirectWeightGradient direct;
    std::optional<WinogradWeightGradient> winograd;
    bool moves_src, moves_gradient;
  };

  const Plan& plan(const ep_shape* shapes, std::optional<Plan>* made) const {
    return plan_ ? *plan_ : made->emplace(WeightSizes(desc_, shapes), level_, threads_);
  }

  // Copies pixels so that their channels are contiguous.
  const float* lay_out(const float* from, const int64_t (&size)[3], int64_t images, int64_t channels,
                       WeightStrides* strides, float* to) const {
    const int64_t dims[] = {images, size[0], size[1], size[2], channels};
    const int64_t given[] = {strides->outer, strides->axis[0], strides->axis[1], strides->axis[2], strides->channel};
    const StridedCopy copy = to_dense(sizeof(float), dims, given);
    if (images * size[0] * size[1] * size[2] * channels > 0) {
      strided_copy(copy, reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from), level_, threads_);
    }
    strides->outer = copy.dst_strides[0];
    std::copy_n(copy.dst_strides + 1, 3, strides->axis);
    strides->channel = 1;
    return to;
  }

  ep_primitive_desc desc_;
  int32_t src_, gradient_;
  SimdLevel level_;
  int32_t threads_;
  std::optional<Plan> plan_;  // set if the descriptor is static
};

}  // namespace

Refusal WeightGradient::product_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = why_not(device, desc, info)) return refusal;
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  if (src.dtype != EP_DTYPE_f32) return Refusal::because("%s is not f32", dtype_name(src.dtype));
  if (desc.attributes.convolution_weight.groups > 1) {
    if (Refusal refusal = why_few_channels(desc)) return refusal;
    info.flags = 0;
  }
  if (is_dynamic(desc)) return {};
  for (const ep_operand_desc* moved : {&src, operand(desc, EP_ROLE_GRADIENT)}) {
    if (moved->strides[1] != 1 && moved->dims[1] > 1) info.penalty_bytes += bytes_of(*moved) * 2 / 3;
  }
  return {};
}

Refusal WeightGradient::product_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                     ep_primitive_info&) {
  *out = make_primitive<WeightProduct>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
