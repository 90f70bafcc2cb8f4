// layer_norm (one group per row) and batch_norm for inference (one work-item per element).
#include <algorithm>
#include <array>

#include "providers/opencl/kernels/axes.h"
#include "providers/opencl/kernels/element.h"
#include "providers/opencl/kernels/kernels.h"

namespace tenon::provider::opencl {
namespace {

// Mirrors struct layer_norm_parameters of programs/layer_norm.cl.
struct LayerNormParameters {
  RowParameters rows;
  uint64_t eps;
  uint64_t scale;
  uint64_t shift;
  uint64_t mean;
  uint64_t inv_std;
  uint64_t scale_strides[EP_MAX_RANK];
  uint64_t shift_strides[EP_MAX_RANK];
  uint64_t mean_strides[EP_MAX_RANK];
  uint64_t inv_std_strides[EP_MAX_RANK];
  int32_t scale_dtype;
  int32_t shift_dtype;
  int32_t has_mean;
  int32_t has_inv_std;
};

// The operand number of each role; -1 if the descriptor has none.
struct LayerNormOperands {
  explicit LayerNormOperands(const ep_primitive_desc& desc)
      : src(find_operand(desc, EP_ROLE_SRC)),
        scale(find_operand(desc, EP_ROLE_SCALE)),
        shift(find_operand(desc, EP_ROLE_SHIFT)),
        mean(find_operand(desc, EP_ROLE_MEAN)),
        inv_std(find_operand(desc, EP_ROLE_INV_STD)) {}
  int32_t src, scale, shift, mean, inv_std;
};

// Writes the strides of operand `i` along the axes of SRC from `begin` to `end` that are longer than 1, as rows_of
// does. The last axes of both correspond.
void strides_along(const ep_primitive_desc& desc, int32_t src, int32_t i, int32_t begin, int32_t end,
                   uint64_t* strides) {
  if (i < 0) return;
  const ep_operand_desc& all = desc.operands[src];
  const ep_operand_desc& operand = desc.operands[i];
  for (int32_t axis = begin; axis < end; ++axis) {
    const int32_t own = axis - (all.rank - operand.rank);
    if (all.dims[axis] != 1) *strides++ = own < 0 ? 0 : static_cast<uint64_t>(operand.strides[own]);
  }
}

class LayerNormPrimitive final : public ep_primitive {
 public:
  LayerNormPrimitive(const ep_primitive_desc& desc, std::shared_ptr<Kernel> kernel)
      : desc_(desc), of_(desc), kernel_(std::move(kernel)) {
    const int32_t axis = desc.attributes.layer_norm.axis;
    const ep_operand_desc& src = desc.operands[of_.src];
    p_.rows = rows_of(desc.operands[0], src, (1U << src.rank) - (1U << axis));
    strides_along(desc, of_.src, of_.scale, axis, src.rank, p_.scale_strides);
    strides_along(desc, of_.src, of_.shift, axis, src.rank, p_.shift_strides);
    strides_along(desc, of_.src, of_.mean, 0, axis, p_.mean_strides);
    strides_along(desc, of_.src, of_.inv_std, 0, axis, p_.inv_std_strides);
    p_.scale_dtype = of_.scale < 0 ? 0 : desc.operands[of_.scale].dtype;
    p_.shift_dtype = of_.shift < 0 ? 0 : desc.operands[of_.shift].dtype;
    p_.has_mean = of_.mean < 0 ? 0 : 1;
    p_.has_inv_std = of_.inv_std < 0 ? 0 : 1;
  }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    if (launch.scalar_count < 1) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "layer_norm has no launch scalar 0 (eps).");
    }
    LayerNormParameters p = p_;
    const auto place = [&](int32_t i, uint64_t* first) {
      if (i < 0) return cl_mem{nullptr};
      *first = first_element(launch.operands[i], desc_.operands[i].dtype);
      return buffer_of(launch.operands[i]);
    };
    const cl_mem dst = place(0, &p.rows.dst);
    const cl_mem src = place(of_.src, &p.rows.src);
    const cl_mem scale = place(of_.scale, &p.scale);
    const cl_mem shift = place(of_.shift, &p.shift);
    const cl_mem mean = place(of_.mean, &p.mean);
    const cl_mem inv_std = place(of_.inv_std, &p.inv_std);
    p.eps = eps_bits(launch.scalars[0], desc_.operands[0].dtype);
    return stream.queue->launch({kernel_.get(), p.rows.rows, row_lanes}, {dst, src, scale, shift, mean, inv_std}, p,
                                error);
  }

  // Keeps eps unrounded: in a narrow dtype a small eps would become 0.
  static uint64_t eps_bits(const ep_scalar& eps, int32_t dtype) {
    return element_bits(eps, dtype == EP_DTYPE_f64 ? EP_DTYPE_f64 : EP_DTYPE_f32);
  }

 private:
  ep_primitive_desc desc_;
  LayerNormOperands of_;
  std::shared_ptr<Kernel> kernel_;
  LayerNormParameters p_{};
};

enum BatchNormSlot : int32_t { BN_DST, BN_SRC, BN_SCALE, BN_SHIFT, BN_MEAN, BN_VARIANCE, batch_norm_slots };

// Mirrors struct batch_norm_parameters of programs/batch_norm.cl.
struct BatchNormParameters {
  uint64_t count;
  uint64_t eps;
  uint64_t dims[EP_MAX_RANK];
  uint64_t offsets[batch_norm_slots];
  uint64_t strides[batch_norm_slots][EP_MAX_RANK];
  int32_t dtypes[batch_norm_slots];
  int32_t rank;
  int32_t unused;
};

std::array<int32_t, batch_norm_slots> batch_norm_operands(const ep_primitive_desc& desc) {
  const int32_t roles[] = {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SCALE, EP_ROLE_SHIFT, EP_ROLE_MEAN, EP_ROLE_VARIANCE};
  std::array<int32_t, batch_norm_slots> found{};
  std::transform(std::begin(roles), std::end(roles), found.begin(),
                 [&desc](int32_t role) { return find_operand(desc, role); });
  return found;
}

class BatchNormPrimitive final : public ep_primitive {
 public:
  BatchNormPrimitive(const ep_primitive_desc& desc, std::shared_ptr<Kernel> kernel)
      : operands_(batch_norm_operands(desc)), dtype_(desc.operands[0].dtype), kernel_(std::move(kernel)) {
    const ep_operand_desc& dst = desc.operands[0];
    p_.rank = dst.rank;
    p_.count = 1;
    for (int32_t axis = 0; axis < dst.rank; ++axis) {
      p_.dims[axis] = static_cast<uint64_t>(dst.dims[axis]);
      p_.count *= p_.dims[axis];
    }
    for (size_t slot = 0; slot < batch_norm_slots; ++slot) {
      if (operands_[slot] < 0) continue;
      const ep_operand_desc& operand = desc.operands[operands_[slot]];
      p_.dtypes[slot] = operand.dtype;
      if (slot <= BN_SRC) {
        std::copy_n(operand.strides, dst.rank, p_.strides[slot]);
      } else {
        p_.strides[slot][desc.attributes.batch_norm.axis] = static_cast<uint64_t>(operand.strides[0]);
      }
    }
  }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    if (launch.scalar_count < 1) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "batch_norm has no launch scalar 0 (eps).");
    }
    BatchNormParameters p = p_;
    cl_mem b[batch_norm_slots] = {};
    for (size_t slot = 0; slot < batch_norm_slots; ++slot) {
      if (operands_[slot] < 0) continue;
      b[slot] = buffer_of(launch.operands[operands_[slot]]);
      p.offsets[slot] = first_element(launch.operands[operands_[slot]], p.dtypes[slot]);
    }
    p.eps = LayerNormPrimitive::eps_bits(launch.scalars[0], dtype_);
    return stream.queue->launch({kernel_.get(), groups_for(p.count), group_size}, {b[0], b[1], b[2], b[3], b[4], b[5]},
                                p, error);
  }

 private:
  std::array<int32_t, batch_norm_slots> operands_;
  int32_t dtype_;
  std::shared_ptr<Kernel> kernel_;
  BatchNormParameters p_{};
};

// Refuses operands that are not float tensors computed in the same type.
Refusal check_floats(const ep_device& device, const ep_primitive_desc& desc) {
  const int32_t dtype = desc.operands[0].dtype;
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  if (desc.operands[0].role != EP_ROLE_DST || src == nullptr || src->rank != desc.operands[0].rank) {
    return Refusal::because("it has no DST and SRC of one rank");
  }
  if (is_dynamic(desc)) return Refusal::because("dims or strides are only known at launch");
  if (src->dtype != dtype) return Refusal::because("a source of %s", dtype_name(src->dtype));
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& one = desc.operands[i];
    const bool statistic = one.role == EP_ROLE_INV_STD ||
                           (one.role == EP_ROLE_MEAN && desc.kind == EP_PRIMITIVE_layer_norm);  // result, in f32
    const bool wide = one.dtype == EP_DTYPE_f64;
    if (is_scalar(one) || !is_floating(one.dtype)) return Refusal::because("operand %u is not a tensor of floats", i);
    if (statistic ? one.dtype != EP_DTYPE_f32 : wide != (dtype == EP_DTYPE_f64)) {
      return Refusal::because("operand %u is %s, the result %s", i, dtype_name(one.dtype), dtype_name(dtype));
    }
  }
  return why_not_computed(device.context->physical, dtype);
}

}  // namespace

Refusal LayerNorm::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = check_floats(device, desc)) return refusal;
  const LayerNormOperands of(desc);
  const int32_t rank = desc.operands[of.src].rank;
  const int32_t axis = desc.attributes.layer_norm.axis;
  if (axis < 0 || axis >= rank) return Refusal::because("axis %d of rank %d", axis, rank);
  uint32_t known = 2;
  for (int32_t i : {of.scale, of.shift, of.mean, of.inv_std}) {
    if (i < 0) continue;
    ++known;
    const int32_t least = i == of.scale || i == of.shift ? rank - axis : rank;
    if (desc.operands[i].rank < least || desc.operands[i].rank > rank) {
      return Refusal::because("operand %d has rank %d", i, desc.operands[i].rank);
    }
  }
  if (known != desc.operand_count) return Refusal::because("%u operands", desc.operand_count);
  return {};
}

Refusal LayerNorm::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const std::string options = type_options(device.context->physical, desc.operands[0].dtype);
  std::shared_ptr<Kernel> kernel;
  if (Refusal refusal = device.programs->get("layer_norm", options, "layer_norm", &kernel)) return refusal;
  *out = make_primitive<LayerNormPrimitive>(device, desc, std::move(kernel));
  return {};
}

Refusal BatchNorm::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = check_floats(device, desc)) return refusal;
  const std::array<int32_t, batch_norm_slots> operands = batch_norm_operands(desc);
  if (operands[BN_MEAN] < 0 || operands[BN_VARIANCE] < 0) return Refusal::because("no MEAN or no VARIANCE");
  const int32_t axis = desc.attributes.batch_norm.axis;
  if (axis < 0 || axis >= desc.operands[0].rank) {
    return Refusal::because("axis %d of rank %d", axis, desc.operands[0].rank);
  }
  uint32_t known = 0;
  for (size_t slot = 0; slot < batch_norm_slots; ++slot) {
    if (operands[slot] < 0) continue;
    ++known;
    if (slot > BN_SRC && desc.operands[operands[slot]].rank != 1) {
      return Refusal::because("operand %d has rank %d", operands[slot], desc.operands[operands[slot]].rank);
    }
  }
  if (known != desc.operand_count) return Refusal::because("%u operands", desc.operand_count);
  return {};
}

Refusal BatchNorm::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const std::string options = type_options(device.context->physical, desc.operands[0].dtype);
  std::shared_ptr<Kernel> kernel;
  if (Refusal refusal = device.programs->get("batch_norm", options, "batch_norm", &kernel)) return refusal;
  *out = make_primitive<BatchNormPrimitive>(device, desc, std::move(kernel));
  return {};
}

}  // namespace tenon::provider::opencl
