#include "providers/cuda/pooling/pooling.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "providers/cuda/elementwise/scalar_value.h"

namespace tenon::provider::cuda {
namespace {

constexpr int32_t spatial_axes = 3;

const char* window_name(int32_t op) {
  switch (op) {
    case EP_POOLING_MAX: return "max";
    case EP_POOLING_LP: return "lp";
    default: return "average";
  }
}

// The arguments of a pooling, without operands and counts.
PoolingArguments pooling_arguments(const ep_pooling_attributes& attributes, int32_t dtype) {
  PoolingArguments pool{};
  pool.dtype = dtype;
  pool.op = attributes.op;
  pool.p = attributes.p;
  const int32_t absent = spatial_axes - attributes.spatial_rank;
  for (int32_t axis = 0; axis < spatial_axes; ++axis) {
    const int32_t from = axis - absent;
    pool.kernel[axis] = from < 0 ? 1 : attributes.kernel[from];
    pool.stride[axis] = from < 0 ? 1 : attributes.stride[from];
    pool.dilation[axis] = from < 0 ? 1 : attributes.dilation[from];
    pool.pad_low[axis] = from < 0 ? 0 : attributes.pad_low[from];
    pool.pad_high[axis] = from < 0 ? 0 : attributes.pad_high[from];
  }
  return pool;
}

int64_t count_of(const int64_t* dims) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < 2 + spatial_axes; ++axis) count *= dims[axis];
  return count;
}

// True if channels come before pixels in the order of `strides`.
bool has_channels_first(const int64_t* dims, const int64_t* strides) {
  return strides[1] >= strides[4] || dims[1] == 1;
}

// True if the greatest offset of each operand and the end of the last window fit 31 bits.
bool is_small(const PoolingArguments& pool) {
  constexpr double most = 0x7fffffff;
  const auto reach = [](const int64_t* dims, const int64_t* strides) {
    double sum = 0;
    for (int32_t axis = 0; axis < 2 + spatial_axes; ++axis)
      sum += static_cast<double>(dims[axis]) * std::fabs(static_cast<double>(strides[axis]));
    return sum;
  };
  double plane = 1;
  double taps = 1;
  for (int32_t axis = 0; axis < spatial_axes; ++axis) {
    const double window = static_cast<double>(pool.kernel[axis]) * static_cast<double>(pool.dilation[axis]);
    const double end = static_cast<double>(pool.dst_dims[2 + axis]) * static_cast<double>(pool.stride[axis]) + window +
                       static_cast<double>(pool.pad_low[axis]) + static_cast<double>(pool.pad_high[axis]) +
                       static_cast<double>(pool.src_dims[2 + axis]);
    if (end >= most) return false;
    plane *= static_cast<double>(pool.src_dims[2 + axis]) + window;
    taps *= static_cast<double>(pool.kernel[axis]);
  }
  // A window may begin before its plane, so the first offset counts too.
  int64_t widened[2 + spatial_axes];
  std::copy_n(pool.src_dims, 2, widened);
  for (int32_t axis = 2; axis < 2 + spatial_axes; ++axis)
    widened[axis] = pool.src_dims[axis] + pool.kernel[axis - 2] * pool.dilation[axis - 2];
  return static_cast<double>(pool.count) < most && plane < most && taps < most &&
         reach(widened, pool.src_strides) < most && reach(pool.dst_dims, pool.dst_strides) < most &&
         (pool.indices == 0 || reach(pool.dst_dims, pool.index_strides) < most);
}

// Reads an operand as [image, channel, z, y, x]. Missing axes have length 1.
void read(const ep_primitive_desc& desc, const ep_launch& launch, int32_t i, uint64_t* address, int64_t* dims,
          int64_t* strides) {
  const OperandShape given = shape_of(desc.operands[i], launch.shapes, static_cast<uint32_t>(i));
  const int32_t spatial = given.rank - 2;
  *address = address_of(launch.operands[i]);
  std::fill_n(dims, 2 + spatial_axes, 1);
  std::copy_n(given.dims, 2, dims);
  std::copy_n(given.strides, 2, strides);
  std::copy_n(given.dims + 2, spatial, dims + 2 + spatial_axes - spatial);
  std::copy_n(given.strides + 2, spatial, strides + 2 + spatial_axes - spatial);
}

// The kernel that counts in 64 bits and, for floats computed in f32, the one that counts in 32 bits.
struct Kernels {
  CUfunction wide = nullptr;
  CUfunction small = nullptr;

  Refusal find(ep_device& device, const char* kind, int32_t op, int32_t dtype) {
    const int32_t dtype_class = class_of(dtype);
    const std::string name = fmt::format("{}_{}_{}", kind, window_name(op), class_name(dtype_class));
    if (Refusal refusal = find_kernel(device, Family::POOLING, name.c_str(), &wide)) return refusal;
    if (dtype_class != EP_DTYPE_f32) return {};
    return find_kernel(device, Family::POOLING, (name + "_small").c_str(), &small);
  }
  CUfunction of(bool is_small) const { return is_small && small != nullptr ? small : wide; }
};

class PoolingPrimitive final : public ep_primitive {
 public:
  PoolingPrimitive(const ep_primitive_desc& desc, const Kernels& kernels)
      : desc_(desc),
        src_(find_operand(desc, EP_ROLE_SRC)),
        indices_(find_operand(desc, EP_ROLE_DST_INDICES)),
        kernels_(kernels) {}

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    PoolingArguments pool = pooling_arguments(desc_.attributes.pooling, desc_.operands[0].dtype);
    read(desc_, launch, 0, &pool.dst, pool.dst_dims, pool.dst_strides);
    read(desc_, launch, src_, &pool.src, pool.src_dims, pool.src_strides);
    int64_t ignored[5];
    if (indices_ >= 0) read(desc_, launch, indices_, &pool.indices, ignored, pool.index_strides);
    pool.count = count_of(pool.dst_dims);
    pool.channels_first = has_channels_first(pool.dst_dims, pool.dst_strides) ? 1 : 0;
    return launch_kernel(stream, kernels_.of(is_small(pool)), blocks_for(pool.count), &pool, error);
  }

 private:
  ep_primitive_desc desc_;
  int32_t src_;
  int32_t indices_;
  Kernels kernels_;
};

class PoolingBackwardPrimitive final : public ep_primitive {
 public:
  PoolingBackwardPrimitive(const ep_primitive_desc& desc, const Kernels& kernels)
      : desc_(desc),
        gradient_(find_operand(desc, EP_ROLE_GRADIENT)),
        indices_(find_operand(desc, EP_ROLE_INDICES)),
        kernels_(kernels) {}

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    PoolingBackwardArguments back{};
    PoolingArguments& pool = back.pool;
    pool = pooling_arguments(desc_.attributes.pooling_backward, desc_.operands[0].dtype);
    read(desc_, launch, 0, &pool.src, pool.src_dims, pool.src_strides);
    read(desc_, launch, gradient_, &pool.dst, pool.dst_dims, pool.dst_strides);
    int64_t ignored[2 + spatial_axes];
    if (indices_ >= 0) read(desc_, launch, indices_, &pool.indices, ignored, pool.index_strides);
    back.windows = pool.count = count_of(pool.dst_dims);
    bool small = is_small(pool);
    pool.count = count_of(pool.src_dims);
    small = small && pool.count <= 0x7fffffff;
    pool.channels_first = has_channels_first(pool.src_dims, pool.src_strides) ? 1 : 0;
    const auto run = [&](const FaultTarget& fault) {
      back.fault = fault;
      return launch_kernel(stream, kernels_.of(small), blocks_for(std::max(pool.count, back.windows)), &back, error);
    };
    return indices_ < 0 ? run({}) : launch_watched(stream, launch.tag, indices_, run, error);
  }

 private:
  ep_primitive_desc desc_;
  int32_t gradient_;
  int32_t indices_;
  Kernels kernels_;
};

}  // namespace

Refusal Pooling::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* indices = operand(desc, EP_ROLE_DST_INDICES);
  const ep_operand_desc& dst = desc.operands[0];
  const ep_pooling_attributes& attributes = desc.attributes.pooling;
  if (dst.role != EP_ROLE_DST || src == nullptr || desc.operand_count != (indices == nullptr ? 2U : 3U))
    return Refusal::because("its operands are not DST, DST_INDICES and SRC");
  if (attributes.op < EP_POOLING_MAX || attributes.op > EP_POOLING_LP) return Refusal::because("op %d", attributes.op);
  if (attributes.spatial_rank < 1 || attributes.spatial_rank > spatial_axes)
    return Refusal::because("%d spatial dims", attributes.spatial_rank);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& one = desc.operands[i];
    if (is_scalar(one) || one.rank != attributes.spatial_rank + 2)
      return Refusal::because("operand %u has rank %d", i, one.rank);
  }
  if (src->dtype != dst.dtype)
    return Refusal::because("a source of %s, a result of %s", dtype_name(src->dtype), dtype_name(dst.dtype));
  if (indices != nullptr && (attributes.op != EP_POOLING_MAX || indices->dtype != EP_DTYPE_i64))
    return Refusal::because("positions of %s for op %d", dtype_name(indices->dtype), attributes.op);
  const int32_t dtype_class = class_of(dst.dtype);
  if (dtype_class == 0 || dtype_class == EP_DTYPE_bool)
    return Refusal::because("no kernel pools %s", dtype_name(dst.dtype));
  if (attributes.op != EP_POOLING_MAX && !is_floating(dst.dtype))
    return Refusal::because("op %d of %s", attributes.op, dtype_name(dst.dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Pooling::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  Kernels kernels;
  if (Refusal refusal = kernels.find(device, "pooling", desc.attributes.pooling.op, desc.operands[0].dtype))
    return refusal;
  *out = make_primitive<PoolingPrimitive>(device, desc, kernels);
  return {};
}

Refusal PoolingBackward::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* gradient = operand(desc, EP_ROLE_GRADIENT);
  const ep_operand_desc* indices = operand(desc, EP_ROLE_INDICES);
  const ep_operand_desc& dst = desc.operands[0];
  const ep_pooling_attributes& attributes = desc.attributes.pooling_backward;
  if (attributes.op < EP_POOLING_MAX || attributes.op > EP_POOLING_AVERAGE_INCLUDE_PAD)
    return Refusal::because("op %d", attributes.op);
  const bool is_max = attributes.op == EP_POOLING_MAX;
  if (dst.role != EP_ROLE_DST || gradient == nullptr || (indices != nullptr) != is_max ||
      desc.operand_count != (is_max ? 3U : 2U))
    return Refusal::because("its operands are not DST, GRADIENT and, of a maximum, INDICES");
  if (attributes.spatial_rank < 1 || attributes.spatial_rank > spatial_axes)
    return Refusal::because("%d spatial dims", attributes.spatial_rank);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& one = desc.operands[i];
    if (is_scalar(one) || one.rank != attributes.spatial_rank + 2)
      return Refusal::because("operand %u has rank %d", i, one.rank);
  }
  if (gradient->dtype != dst.dtype)
    return Refusal::because("a gradient of %s, a result of %s", dtype_name(gradient->dtype), dtype_name(dst.dtype));
  if (indices != nullptr && indices->dtype != EP_DTYPE_i64)
    return Refusal::because("positions of %s", dtype_name(indices->dtype));
  if (class_of(dst.dtype) == 0 || !is_floating(dst.dtype))
    return Refusal::because("no kernel adds gradients of %s", dtype_name(dst.dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal PoolingBackward::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                              ep_primitive_info&) {
  const int32_t op = desc.attributes.pooling_backward.op;
  Kernels kernels;
  if (Refusal refusal = kernels.find(device, "pooling_backward", op, desc.operands[0].dtype)) return refusal;
  *out = make_primitive<PoolingBackwardPrimitive>(device, desc, kernels);
  return {};
}

}  // namespace tenon::provider::cuda
