#include <algorithm>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/kernels/element.h"
#include "providers/cuda/movement/movement.h"

namespace tenon::provider::cuda {
namespace {

constexpr double most_chunks = 2147483648.0;

bool is_padded(const PadArguments& pad, int32_t axis) {
  return pad.low[axis] != 0 || pad.dims[axis] != pad.src_dims[axis];
}

// True if axis `b`, the inner neighbour of `a`, can be merged with it. `b` must have no border. The border of `a` then
// consists of whole runs of `b`; a reflected or repeated border must not reach into a run.
bool may_merge(const PadArguments& pad, int32_t a, int32_t b) {
  if (is_padded(pad, b) || (is_padded(pad, a) && pad.mode != EP_PAD_CONSTANT)) return false;
  return pad.dst_strides[a] == pad.dst_strides[b] * pad.dims[b] &&
         pad.src_strides[a] == pad.src_strides[b] * pad.src_dims[b];
}

// Appends axis `from` of `all` to the axes of `pad`, or merges it with the last one.
void add_axis(const PadArguments& all, int32_t from, PadArguments* pad) {
  const int32_t to = pad->rank;
  pad->dims[to] = all.dims[from];
  pad->src_dims[to] = all.src_dims[from];
  pad->low[to] = all.low[from];
  pad->dst_strides[to] = all.dst_strides[from];
  pad->src_strides[to] = all.src_strides[from];
  if (to == 0 || !may_merge(*pad, to - 1, to)) {
    ++pad->rank;
    return;
  }
  pad->dims[to - 1] *= pad->dims[to];
  pad->src_dims[to - 1] *= pad->dims[to];
  pad->low[to - 1] *= pad->dims[to];
  pad->dst_strides[to - 1] = pad->dst_strides[to];
  pad->src_strides[to - 1] = pad->src_strides[to];
}

bool is_aligned(uint64_t address, const int64_t* strides, int32_t rank, int64_t size) {
  const int64_t alignment = pack_alignment(size);
  if (strides[rank - 1] != 1 || address % static_cast<uint64_t>(alignment) != 0) return false;
  return std::all_of(strides, strides + rank - 1, [&](int64_t stride) { return stride * size % alignment == 0; });
}

class PadPrimitive final : public ep_primitive {
 public:
  PadPrimitive(const ep_primitive_desc& desc, CUfunction function)
      : attributes_(desc.attributes.pad), function_(function) {
    std::copy_n(desc.operands, 2, operands_);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const OperandShape dst = shape_of(operands_[0], launch.shapes, 0);
    const OperandShape src = shape_of(operands_[1], launch.shapes, 1);
    PadArguments all{};
    all.mode = attributes_.mode;
    std::copy_n(dst.dims, dst.rank, all.dims);
    std::copy_n(src.dims, dst.rank, all.src_dims);
    std::copy_n(attributes_.low, dst.rank, all.low);
    std::copy_n(dst.strides, dst.rank, all.dst_strides);
    std::copy_n(src.strides, dst.rank, all.src_strides);
    PadArguments pad{};
    pad.mode = attributes_.mode;
    pad.dst = address_of(launch.operands[0]);
    pad.src = address_of(launch.operands[1]);
    if (launch.scalar_count != 0) pad.value = element_bits(launch.scalars[0], operands_[0].dtype);
    for (int32_t axis = 0; axis < dst.rank; ++axis) add_axis(all, axis, &pad);
    return run(stream, pad, error);
  }

 private:
  // Halves the longest axis if the tensor has more chunks than 32 bits can number.
  ep_status run(ep_stream* stream, const PadArguments& whole, ep_error** error) const {
    PadArguments pad = whole;
    const int32_t inner = pad.rank - 1;
    const int64_t size = dtype_size(operands_[0].dtype);
    const int64_t row_chunks = (pad.dims[inner] + map_chunk - 1) / map_chunk;
    auto chunks = static_cast<double>(row_chunks);
    for (int32_t axis = 0; axis < inner; ++axis) chunks *= static_cast<double>(pad.dims[axis]);
    if (chunks >= most_chunks) {
      const auto axis = std::max_element(pad.dims, pad.dims + pad.rank) - pad.dims;
      const int64_t half = (pad.dims[axis] / 2 + map_chunk - 1) / map_chunk * map_chunk;
      pad.dims[axis] = half;
      if (const ep_status status = run(stream, pad, error); status != EP_STATUS_OK) return status;
      pad.dims[axis] = whole.dims[axis] - half;
      pad.low[axis] -= half;
      pad.dst += static_cast<uint64_t>(half * pad.dst_strides[axis] * size);
      return run(stream, pad, error);
    }
    pad.row_chunks = static_cast<uint32_t>(std::max<int64_t>(row_chunks, 1));
    pad.chunks = static_cast<uint32_t>(chunks);
    pad.dst_vector = is_aligned(pad.dst, pad.dst_strides, pad.rank, size) ? 1 : 0;
    const bool in_step = pad.low[inner] % map_chunk == 0;
    pad.src_vector = in_step && is_aligned(pad.src, pad.src_strides, pad.rank, size) ? 1 : 0;
    return launch_kernel(stream, function_, blocks_for(pad.chunks), &pad, error);
  }

  ep_pad_attributes attributes_;
  ep_operand_desc operands_[2];
  CUfunction function_;
};

}  // namespace

Refusal Pad::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = desc.operands[1];
  const ep_pad_attributes& attributes = desc.attributes.pad;
  if (attributes.mode != EP_PAD_CONSTANT && attributes.mode != EP_PAD_REFLECT && attributes.mode != EP_PAD_EDGE)
    return Refusal::because("mode %d", attributes.mode);
  if (is_scalar(src) || is_scalar(dst) || dst.rank != src.rank || dst.rank < 1)
    return Refusal::because("ranks %d and %d", dst.rank, src.rank);
  if (dst.dtype != src.dtype)
    return Refusal::because("a source of %s, a result of %s", dtype_name(src.dtype), dtype_name(dst.dtype));
  const bool known = attributes.mode == EP_PAD_CONSTANT ? class_of(dst.dtype) != 0 : dtype_size(dst.dtype) != 0;
  if (!known) return Refusal::because("no kernel pads %s", dtype_name(dst.dtype));
  for (int32_t axis = 0; axis < dst.rank; ++axis) {
    if (attributes.low[axis] < 0 || attributes.high[axis] < 0)
      return Refusal::because("a negative border of axis %d", axis);
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Pad::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  SizedKernels kernels;
  if (Refusal refusal = kernels.find(device, Family::PAD, "pad")) return refusal;
  *out = make_primitive<PadPrimitive>(device, desc, kernels.of(dtype_size(desc.operands[0].dtype)));
  return {};
}

}  // namespace tenon::provider::cuda
