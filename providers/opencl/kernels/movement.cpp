// Kinds that move elements to other places: gather, concat and split, pad.
#include <algorithm>
#include <array>

#include "providers/opencl/kernels/kernels.h"
#include "providers/opencl/kernels/map.h"

namespace tenon::provider::opencl {
namespace {

class GatherPrimitive final : public ep_primitive {
 public:
  GatherPrimitive(const ep_primitive_desc& desc, std::shared_ptr<Kernel> kernel)
      : kernel_(std::move(kernel)), attributes_(desc.attributes.gather) {
    std::copy_n(desc.operands, 3, operands_.begin());
  }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    MapParameters p = parameters(launch.shapes);
    cl_mem buffers[3];
    for (uint32_t i = 0; i < 3; ++i) {
      buffers[i] = buffer_of(launch.operands[i]);
      p.offsets[i] = first_element(launch.operands[i], operands_[i].dtype);
    }
    cl_mem faults = nullptr;
    const ep_status status =
        stream.queue->faults().watch(launch.tag, 2, static_cast<int64_t>(p.scalars[1]), &faults, &p.fault_slot, error);
    if (status != EP_STATUS_OK) return status;
    return stream.queue->launch({kernel_.get(), groups_for(p.count), group_size},
                                {buffers[0], buffers[1], buffers[2], faults}, p, error);
  }

 private:
  // DST has the axes of SRC, with the gathered axis replaced by the axes of INDICES (one axis for single elements).
  MapParameters parameters(const ep_shape* shapes) const {
    const OperandShape dst = shape_of(operands_[0], shapes, 0);
    const OperandShape src = shape_of(operands_[1], shapes, 1);
    const OperandShape indices = shape_of(operands_[2], shapes, 2);
    MapParameters p{};
    set_dims(dst.dims, dst.rank, &p);
    std::copy_n(dst.strides, dst.rank, p.strides[0]);
    const int32_t axis = attributes_.axis;
    const bool slices = attributes_.mode == EP_GATHER_SLICES;
    const int32_t replaced = slices ? indices.rank : 1;
    for (int32_t k = 0; k < src.rank; ++k) {
      if (k != axis) p.strides[1][k < axis ? k : k - 1 + replaced] = static_cast<uint64_t>(src.strides[k]);
    }
    std::copy_n(indices.strides, indices.rank, p.strides[2] + (slices ? axis : 0));
    p.scalars[0] = static_cast<uint64_t>(src.strides[axis]);
    p.scalars[1] = static_cast<uint64_t>(src.dims[axis]);
    p.op = operands_[2].dtype == EP_DTYPE_i64 ? 1 : 0;
    return p;
  }

  std::shared_ptr<Kernel> kernel_;
  ep_gather_attributes attributes_;
  std::array<ep_operand_desc, 3> operands_{};
};

// concat and split: copies each part to its place in the whole, or from there.
class PartsPrimitive final : public ep_primitive {
 public:
  PartsPrimitive(const ep_primitive_desc& desc, std::shared_ptr<Kernel> kernel)
      : desc_(desc),
        joins_(desc.kind == EP_PRIMITIVE_concat),
        whole_(joins_ ? 0 : desc.operand_count - 1),
        kernel_(std::move(kernel)) {}

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    const int32_t axis = joins_ ? desc_.attributes.concat.axis : desc_.attributes.split.axis;
    const OperandShape whole = shape_of(desc_.operands[whole_], launch.shapes, whole_);
    uint64_t first = first_element(launch.operands[whole_], desc_.operands[whole_].dtype);
    for (uint32_t i = 0; i < desc_.operand_count; ++i) {
      if (i == whole_) continue;
      const OperandShape part = shape_of(desc_.operands[i], launch.shapes, i);
      MapParameters p{};
      set_dims(part.dims, part.rank, &p);
      const int32_t inside = joins_ ? 0 : 1;
      std::copy_n(whole.strides, part.rank, p.strides[inside]);
      std::copy_n(part.strides, part.rank, p.strides[1 - inside]);
      p.offsets[inside] = first;
      p.offsets[1 - inside] = first_element(launch.operands[i], desc_.operands[i].dtype);
      const cl_mem in_whole = buffer_of(launch.operands[whole_]);
      const cl_mem alone = buffer_of(launch.operands[i]);
      const ep_status status = stream.queue->launch({kernel_.get(), groups_for(p.count), group_size},
                                                    {joins_ ? in_whole : alone, joins_ ? alone : in_whole}, p, error);
      if (status != EP_STATUS_OK) return status;
      first += static_cast<uint64_t>(part.dims[axis] * whole.strides[axis]);
    }
    return EP_STATUS_OK;
  }

 private:
  ep_primitive_desc desc_;
  bool joins_;
  uint32_t whole_;
  std::shared_ptr<Kernel> kernel_;
};

// Mirrors struct pad_parameters of programs/pad.cl.
struct PadParameters {
  uint64_t count;
  uint64_t value;
  uint64_t dst;
  uint64_t src;
  uint64_t dims[EP_MAX_RANK];
  uint64_t dst_strides[EP_MAX_RANK];
  uint64_t src_strides[EP_MAX_RANK];
  int64_t src_dims[EP_MAX_RANK];
  int64_t low[EP_MAX_RANK];
  int32_t rank;
  int32_t mode;
};

class PadPrimitive final : public ep_primitive {
 public:
  PadPrimitive(const ep_primitive_desc& desc, std::shared_ptr<Kernel> kernel)
      : kernel_(std::move(kernel)), attributes_(desc.attributes.pad) {
    std::copy_n(desc.operands, 2, operands_.begin());
  }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    const OperandShape dst = shape_of(operands_[0], launch.shapes, 0);
    const OperandShape src = shape_of(operands_[1], launch.shapes, 1);
    PadParameters p{};
    p.count = 1;
    for (int32_t axis = 0; axis < dst.rank; ++axis) {
      p.dims[axis] = static_cast<uint64_t>(dst.dims[axis]);
      p.count *= p.dims[axis];
    }
    std::copy_n(dst.strides, dst.rank, p.dst_strides);
    std::copy_n(src.strides, dst.rank, p.src_strides);
    std::copy_n(src.dims, dst.rank, p.src_dims);
    std::copy_n(attributes_.low, dst.rank, p.low);
    p.rank = dst.rank;
    p.mode = attributes_.mode;
    p.dst = first_element(launch.operands[0], operands_[0].dtype);
    p.src = first_element(launch.operands[1], operands_[1].dtype);
    if (launch.scalar_count != 0) p.value = element_bits(launch.scalars[0], operands_[0].dtype);
    return stream.queue->launch({kernel_.get(), groups_for(p.count), group_size},
                                {buffer_of(launch.operands[0]), buffer_of(launch.operands[1])}, p, error);
  }

 private:
  std::shared_ptr<Kernel> kernel_;
  ep_pad_attributes attributes_;
  std::array<ep_operand_desc, 2> operands_{};
};

}  // namespace

Refusal Gather::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 3 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC ||
      desc.operands[2].role != EP_ROLE_INDICES) {
    return Refusal::because("its operands are not DST, SRC and INDICES");
  }
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = desc.operands[1];
  const ep_operand_desc& indices = desc.operands[2];
  const ep_gather_attributes& attributes = desc.attributes.gather;
  const bool slices = attributes.mode == EP_GATHER_SLICES;
  if (!slices && attributes.mode != EP_GATHER_ELEMENTS) return Refusal::because("mode %d", attributes.mode);
  if (is_scalar(src) || is_scalar(indices)) return Refusal::because("a scalar operand");
  if (dst.dtype != src.dtype) return Refusal::because("a source of %s", dtype_name(src.dtype));
  if (Refusal refusal = why_not_stored(src.dtype)) return refusal;
  if (indices.dtype != EP_DTYPE_i32 && indices.dtype != EP_DTYPE_i64) {
    return Refusal::because("indices of %s", dtype_name(indices.dtype));
  }
  if (attributes.axis < 0 || attributes.axis >= src.rank) {
    return Refusal::because("axis %d of rank %d", attributes.axis, src.rank);
  }
  const int32_t expected = slices ? src.rank - 1 + indices.rank : src.rank;
  if (dst.rank != expected || (!slices && indices.rank != expected)) {
    return Refusal::because("ranks %d, %d and %d", dst.rank, src.rank, indices.rank);
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Gather::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  std::shared_ptr<Kernel> kernel;
  if (Refusal refusal = device.programs->get("gather", bits_option(desc.operands[0].dtype), "gather", &kernel)) {
    return refusal;
  }
  *out = make_primitive<GatherPrimitive>(device, desc, std::move(kernel));
  return {};
}

Refusal Parts::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count < 2) return Refusal::because("%u operands", desc.operand_count);
  const bool joins = desc.kind == EP_PRIMITIVE_concat;
  const uint32_t whole = joins ? 0 : desc.operand_count - 1;
  if (desc.operands[whole].role != (joins ? EP_ROLE_DST : EP_ROLE_SRC)) {
    return Refusal::because("operand %u has role %d", whole, desc.operands[whole].role);
  }
  const ep_operand_desc& first = desc.operands[0];
  const int32_t axis = joins ? desc.attributes.concat.axis : desc.attributes.split.axis;
  if (axis < 0 || axis >= first.rank) return Refusal::because("axis %d of rank %d", axis, first.rank);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || operand.rank != first.rank) {
      return Refusal::because("operand %u has rank %d", i, operand.rank);
    }
    if (operand.dtype != first.dtype) {
      return Refusal::because("parts of %s and %s", dtype_name(first.dtype), dtype_name(operand.dtype));
    }
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return why_not_stored(first.dtype);
}

Refusal Parts::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  std::shared_ptr<Kernel> kernel;
  if (Refusal refusal = device.programs->get("move", bits_option(desc.operands[0].dtype), "copy_strided", &kernel)) {
    return refusal;
  }
  *out = make_primitive<PartsPrimitive>(device, desc, std::move(kernel));
  return {};
}

Refusal Pad::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC) {
    return Refusal::because("its operands are not DST and SRC");
  }
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = desc.operands[1];
  const ep_pad_attributes& attributes = desc.attributes.pad;
  if (attributes.mode != EP_PAD_CONSTANT && attributes.mode != EP_PAD_REFLECT && attributes.mode != EP_PAD_EDGE) {
    return Refusal::because("mode %d", attributes.mode);
  }
  if (is_scalar(src) || dst.dtype != src.dtype) return Refusal::because("a source of %s", dtype_name(src.dtype));
  if (dst.rank != src.rank || dst.rank < 1) return Refusal::because("ranks %d and %d", dst.rank, src.rank);
  for (int32_t axis = 0; axis < dst.rank; ++axis) {
    if (attributes.low[axis] < 0 || attributes.high[axis] < 0) {
      return Refusal::because("a negative border of axis %d", axis);
    }
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return why_not_stored(dst.dtype);
}

Refusal Pad::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  std::shared_ptr<Kernel> kernel;
  if (Refusal refusal = device.programs->get("pad", bits_option(desc.operands[0].dtype), "pad", &kernel)) {
    return refusal;
  }
  *out = make_primitive<PadPrimitive>(device, desc, std::move(kernel));
  return {};
}

}  // namespace tenon::provider::opencl
