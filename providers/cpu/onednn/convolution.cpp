// convolution and transposed convolution over f32 on oneDNN, with 1 to 3 spatial dims, bias and epilogues; and of bf16
// where the processor has products of bf16, with results of bf16 or f32.
//
// Layout: oneDNN's best convolutions need channels last, and weights in blocks. A pointwise convolution (kernel 1,
// stride 1, no padding) without epilogues is a matmul, and as fast with channels first. On the shapes of ResNet-50 and
// MobileNet, every other convolution gains more from channels last than the two reorders of its activations cost, even
// at batch 1. The launch reorders the weights too, unless they are constant and the host keeps them packed.
#include <algorithm>

#include "providers/cpu/convolution/images.h"
#include "providers/cpu/elementwise/tail.h"
#include "providers/cpu/onednn/epilogue.h"
#include "providers/cpu/onednn/onednn.h"
#include "providers/cpu/onednn/relaxed.h"
#include "providers/cpu/onednn/tiles.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

using dnnl::memory;

memory::desc operand_layout(const ep_operand_desc& operand, int32_t) { return layout_of(operand); }

// The layout [n, c, spatial...] with channels innermost.
memory::desc channels_last(const memory::dims& dims, memory::data_type type) {
  memory::dims strides(dims.size());
  strides[1] = 1;
  int64_t next = dims[1];
  for (size_t axis = dims.size(); axis-- > 2;) {
    strides[axis] = next;
    next *= dims[axis];
  }
  strides[0] = next;
  return memory_desc(dims, strides, type);
}

// WEIGHT in oneDNN's order [o, i, k...], preceded by the groups if there are several.
memory::desc weight_layout(const ep_operand_desc& weight, const ep_convolution_attributes& attributes) {
  memory::dims dims;
  memory::dims strides;
  if (attributes.groups > 1) {
    dims.push_back(attributes.groups);
    strides.push_back(weight.dims[0] / attributes.groups * weight.strides[0]);
  }
  for (int32_t axis = 0; axis < weight.rank; ++axis) {
    dims.push_back(axis == 0 ? weight.dims[0] / attributes.groups : weight.dims[axis]);
    strides.push_back(weight.strides[axis]);
  }
  if (attributes.transposed != 0) {  // our order is [i, o, k...]
    const size_t first = attributes.groups > 1 ? 1 : 0;
    std::swap(dims[first], dims[first + 1]);
    std::swap(strides[first], strides[first + 1]);
  }
  return memory_desc(dims, strides, type_of(weight));
}

Window window_of(const ep_primitive_desc& desc) {
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_WEIGHT);
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& dst = desc.operands[0];
  Window window;
  for (int32_t i = 0; i < attributes.spatial_rank; ++i) {
    const int64_t reach = (weight.dims[2 + i] - 1) * attributes.dilation[i] + 1;
    const int64_t small = attributes.transposed != 0 ? src.dims[2 + i] : dst.dims[2 + i];
    const int64_t large = attributes.transposed != 0 ? dst.dims[2 + i] : src.dims[2 + i];
    window.kernel.push_back(weight.dims[2 + i]);
    window.stride.push_back(attributes.stride[i]);
    window.dilation.push_back(attributes.dilation[i] - 1);
    window.pad_low.push_back(attributes.pad_low[i]);
    // oneDNN needs the high padding for which the sizes agree exactly. It may differ from the attribute, because a
    // stride may leave a remainder. It is negative if the last rows are not read.
    window.pad_high.push_back((small - 1) * attributes.stride[i] + reach - large - attributes.pad_low[i]);
  }
  return window;
}

// oneDNN generates code for each result whose window begins in the padding, which takes seconds if the padding is wide.
Refusal why_not_window(const Window& window) {
  constexpr int64_t kMostBeyond = 256;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t reach = (window.kernel[i] - 1) * (window.dilation[i] + 1) + 1;
    const int64_t pad = std::max(window.pad_low[i], window.pad_high[i]);
    if (pad - reach > kMostBeyond) {
      return Refusal::because("a padding of %lld around a window of %lld", static_cast<long long>(pad),
                              static_cast<long long>(reach));
    }
  }
  return {};
}

bool is_pointwise(const ep_primitive_desc& desc, const Window& window) {
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  if (attributes.groups != 1 || attributes.transposed != 0) return false;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    if (window.kernel[i] != 1 || window.stride[i] != 1 || window.pad_low[i] != 0 || window.pad_high[i] != 0)
      return false;
  }
  return true;
}

int64_t work_of(const ep_primitive_desc& desc) {
  const ep_operand_desc& weight = *operand(desc, EP_ROLE_WEIGHT);
  // Each weight is multiplied with every position of the smaller side, once per image.
  const ep_operand_desc& side =
      desc.attributes.convolution.transposed != 0 ? *operand(desc, EP_ROLE_SRC) : desc.operands[0];
  int64_t work = 2 * side.dims[0];
  for (int32_t axis = 0; axis < weight.rank; ++axis) work *= weight.dims[axis];
  for (int32_t axis = 2; axis < side.rank; ++axis) work *= side.dims[axis];
  return work;
}

int32_t axis_of(const ep_primitive_desc& desc, const ep_operand_desc& operand, int32_t axis) {
  switch (operand.role) {
    case EP_ROLE_SRC: return axis == 1 ? -1 : axis;
    case EP_ROLE_WEIGHT: return axis == 1 ? (desc.attributes.convolution.transposed != 0 ? 1 : 0) : -1;
    case EP_ROLE_BIAS: return axis == 1 ? 0 : -1;
    default: return axis;
  }
}

// Tiles of whole images, or of some channels of one image. Groups share no channels, so that their images stay whole.
Tiling tiling_of(const ep_primitive_desc& desc, int64_t nanoseconds) {
  constexpr int64_t fewest_channels = 16;
  const ep_operand_desc& dst = desc.operands[0];
  Tiling tiling;
  tiling.axis_of = axis_of;
  std::copy_n(dst.dims, dst.rank, tiling.lengths.begin());
  const int64_t tiles = nanoseconds / tile_work;
  tiling.lengths[0] = std::max<int64_t>(1, dst.dims[0] / tiles);
  if (tiles <= dst.dims[0] || desc.attributes.convolution.groups != 1) return tiling;
  const int64_t channels = dst.dims[1] * dst.dims[0] / tiles / fewest_channels * fewest_channels;
  tiling.lengths[1] = std::min(dst.dims[1], std::max(channels, fewest_channels));
  return tiling;
}

// A candidate for the layouts: as the operands lie in memory, or channels last.
struct Layouts {
  memory::desc src, weights, dst;
};

// True if the convolution can use the operands' layouts: pointwise and without epilogues.
bool runs_as_given(const ep_primitive_desc& desc, const Window& window) {
  return is_pointwise(desc, window) && post_op_count(desc) == 0;
}

// True if a deterministic convolution must run on one thread, because without AVX-512 oneDNN's bits depend on the
// number of threads.
bool runs_alone(const ep_device& device, const ep_primitive_desc& desc) {
  return (desc.flags & EP_PRIMITIVE_FLAG_DETERMINISTIC) != 0 && device.simd != SimdLevel::avx3;
}

// True for a tensor as large as the result, for one number per channel, and for one number. oneDNN 2.6 accepts operands
// that repeat along other axes, but misreads them.
bool is_post_op_operand(const ep_operand_desc& operand) {
  bool whole = true, of_channels = true;
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (operand.dims[axis] == 1) continue;
    whole = whole && operand.strides[axis] != 0;
    of_channels = of_channels && (axis == 1 || operand.strides[axis] == 0);
  }
  return whole || of_channels;
}

// True if bias and epilogues of a transposed convolution follow it, because oneDNN would add them in a slow loop.
bool finishes_apart(const ep_device& device, const ep_primitive_desc& desc) {
  return desc.attributes.convolution.transposed != 0 && !why_no_tail(device, desc, 0);
}

bool has_gaps(const ep_operand_desc& operand) {
  int64_t elements = 1, last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    elements *= operand.dims[axis];
    last += (operand.dims[axis] - 1) * operand.strides[axis];
  }
  return elements != 0 && last + 1 != elements;
}

// Products of bf16 do not pay for groups of few channels, whose time is that of their memory.
Refusal why_not_types(const ep_primitive_desc& desc) {
  constexpr int64_t fewest_channels = 8;
  const ep_operand_desc &src = *operand(desc, EP_ROLE_SRC), &dst = desc.operands[0];
  const bool bf16 = src.dtype == EP_DTYPE_bf16;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    const bool factor = operand.role == EP_ROLE_SRC || operand.role == EP_ROLE_WEIGHT;
    const int32_t wanted = !bf16 ? EP_DTYPE_f32 : factor || dst.dtype != EP_DTYPE_f32 ? EP_DTYPE_bf16 : EP_DTYPE_f32;
    if (operand.dtype != wanted) {
      return Refusal::because("operand %u is %s, not %s", i, dtype_name(operand.dtype), dtype_name(wanted));
    }
  }
  if (!bf16) return {};
  if (!has_bf16_products()) return Refusal::because("bf16 needs avx512_core_bf16");
  const bool finishes = operand(desc, EP_ROLE_BIAS) != nullptr || desc.epilogue_count != 0;
  if (desc.attributes.convolution.transposed != 0 && dst.dtype == EP_DTYPE_bf16 && finishes) {
    return Refusal::because("bias and epilogues of a transposed convolution need its sums in f32");
  }
  const int64_t groups = desc.attributes.convolution.groups;
  if (groups > 1 && std::min(src.dims[1], dst.dims[1]) < groups * fewest_channels) {
    return Refusal::because("%lld groups of few channels of bf16", static_cast<long long>(groups));
  }
  return {};
}

}  // namespace

Refusal OneDnnConvolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (is_dynamic(desc)) return Refusal::because("oneDNN's convolution needs static dims");
  if (is_huge(desc)) return Refusal::because("an operand of 2^31 elements or more");
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* weight = operand(desc, EP_ROLE_WEIGHT);
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  if (src == nullptr || weight == nullptr) return Refusal::because("an input is missing");
  if (attributes.spatial_rank < 1 || attributes.spatial_rank > 3 || src->rank != attributes.spatial_rank + 2) {
    return Refusal::because("%d spatial dims of rank %d", attributes.spatial_rank, src->rank);
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand)) return Refusal::because("operand %u is a scalar", i);
    const bool epilogue = operand.role >= EP_ROLE_EPILOGUE_0 && operand.role < EP_ROLE_SRC_0;
    if (epilogue && !is_post_op_operand(operand)) {
      return Refusal::because("operand %u is neither a whole tensor nor one number per channel", i);
    }
    for (int32_t axis = 0; axis < operand.rank && !epilogue; ++axis) {
      if (operand.strides[axis] == 0 && operand.dims[axis] != 1)
        return Refusal::because("operand %u is repeated by stride 0", i);
    }
  }
  if (Refusal refusal = why_not_types(desc)) return refusal;
  if (Refusal refusal = why_no_epilogues(device, desc)) return refusal;
  if (Refusal refusal = why_not_window(window_of(desc))) return refusal;
  const bool f32 = src->dtype == EP_DTYPE_f32;
  if (f32 && !runs_as_given(desc, window_of(desc)) && (has_gaps(*src) || has_gaps(desc.operands[0]))) {
    return Refusal::because("oneDNN is slow to reorder images with gaps");
  }
  info.penalty_bytes = runs_as_given(desc, window_of(desc)) ? 0 : penalty_of_planes(desc);
  return {};
}

namespace {

// `rounds`: the factors of `original` are f32, and a launch rounds them to bf16.
Refusal make_program(ep_device& device, const ep_primitive_desc& original, bool rounds, ep_primitive** out,
                     ep_primitive_info& info) {
  const ep_primitive_desc desc = rounds ? with_rounded_factors(original) : original;
  const ep_convolution_attributes& attributes = desc.attributes.convolution;
  const Window window = window_of(desc);
  const int64_t nanoseconds = runs_alone(device, desc) ? 0 : work_of(desc) / 60;
  if (work_of(desc) / 60 >= tiled_from) {
    if (const Tiling tiling = tiling_of(desc, work_of(desc) / 60); tiling.cuts(desc)) {
      return make_tiles(device, original, tiling, rounds ? &RelaxedConvolution::make : &OneDnnConvolution::make, out,
                        info);
    }
  }
  const OpenMpWidth width(nanoseconds >= 3000 ? device.threads : 1);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const int32_t src_index = find_operand(desc, EP_ROLE_SRC);
  const int32_t weight_index = find_operand(desc, EP_ROLE_WEIGHT);
  const int32_t bias_index = find_operand(desc, EP_ROLE_BIAS);
  const Layouts given = {layout_of(desc.operands[src_index]), weight_layout(desc.operands[weight_index], attributes),
                         layout_of(desc.operands[0])};
  const memory::desc given_bias = bias_index < 0 ? memory::desc() : layout_of(desc.operands[bias_index]);
  // oneDNN accepts a bias with a stride but ignores the stride.
  const memory::desc bias =
      bias_index < 0 ? given_bias : memory::desc(given_bias.dims(), given_bias.data_type(), memory::format_tag::a);
  const memory::desc any_weights(given.weights.dims(), given.weights.data_type(), memory::format_tag::any);
  const Layouts blocked = {channels_last(given.src.dims(), given.src.data_type()), any_weights,
                           channels_last(given.dst.dims(), given.dst.data_type())};
  const Layouts free_weights = {given.src, any_weights, given.dst};
  const bool as_given = !rounds && runs_as_given(desc, window);
  const Layouts orders[] = {as_given ? given : blocked, as_given ? blocked : given, free_weights};

  const bool apart = finishes_apart(device, desc);
  dnnl::primitive_desc_base chosen;
  std::vector<EpilogueOperand> epilogues;
  std::string refused;
  for (const Layouts& layouts : orders) {
    dnnl::primitive_attr attr = user_scratchpad();
    std::vector<EpilogueOperand> operands;
    if (!apart) operands = add_epilogues(desc, operand_layout, layouts.dst, &attr, true);
    const dnnl::primitive_desc_base candidate =
        make_convolution(engine, attributes.transposed != 0, window, layouts.src, layouts.weights,
                         apart ? memory::desc() : bias, layouts.dst, attr);
    if (candidate && !is_reference(candidate)) {
      chosen = candidate;
      epilogues = std::move(operands);
      break;
    }
    if (candidate) refused = implementation_of(candidate);
  }
  if (!chosen) return Refusal::because("oneDNN has only '%s' for this convolution", refused.c_str());

  Program program(engine);
  Packing packing;
  std::vector<ProgramArgument> arguments;
  const memory::desc weights = chosen.weights_desc();
  const memory::desc original_weights = weight_layout(original.operands[weight_index], attributes);
  const bool packed =
      (desc.operands[weight_index].flags & EP_OPERAND_FLAG_CONSTANT) != 0 && weights != original_weights;
  const int32_t src =
      program.reordered(program.operand(src_index, layout_of(original.operands[src_index])), chosen.src_desc());
  arguments.push_back({DNNL_ARG_SRC, src});
  if (packed) {
    arguments.push_back({DNNL_ARG_WEIGHTS, program.operand(weight_index, weights)});
    packing = {original_weights, weights};
    packing.describe(weight_index, &info);
  } else {
    arguments.push_back(
        {DNNL_ARG_WEIGHTS, program.reordered(program.operand(weight_index, original_weights), weights)});
  }
  if (bias_index >= 0 && !apart) {
    arguments.push_back({DNNL_ARG_BIAS, program.reordered(program.operand(bias_index, given_bias), bias)});
  }
  const int32_t dst = program.operand(0, given.dst);
  const memory::desc inner_dst = chosen.dst_desc();
  const int32_t result = inner_dst == given.dst ? dst : program.temporary(inner_dst);
  arguments.push_back({DNNL_ARG_DST, result});
  add_epilogue_arguments(epilogues, result, &program, &arguments);
  program.step(chosen, arguments);
  if (bias_index >= 0 && apart) {
    memory::dims dims(inner_dst.dims().size(), 1), strides(dims.size(), 1);
    dims[1] = strides[0] = given_bias.dims()[0];
    const memory::desc dense = memory_desc(dims, strides, given_bias.data_type());
    strides[1] = desc.operands[bias_index].strides[0];
    const memory::desc strided = memory_desc(dims, strides, given_bias.data_type());
    const dnnl::primitive_desc_base add = make_add(engine, inner_dst, dense);
    if (!add) return Refusal::because("oneDNN cannot add the bias");
    const int32_t added = program.reordered(program.operand(bias_index, strided), dense);
    program.step(add, {{DNNL_ARG_SRC_0, result}, {DNNL_ARG_SRC_1, added}, {DNNL_ARG_DST, result}});
  }
  if (result != dst) {
    program.step(make_reorder(engine, inner_dst, given.dst), {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, dst}});
  }
  info.host_bytes = program.host_bytes();
  *out = make_primitive<OneDnnPrimitive>(
      device, std::move(program), Tail(device, desc, apart ? 0 : post_op_count(desc)), nanoseconds, std::move(packing));
  return {};
}

}  // namespace

Refusal OneDnnConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                ep_primitive_info& info) {
  return make_program(device, desc, false, out, info);
}

Refusal RelaxedConvolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = why_not_relaxed(device, desc)) return refusal;
  if (is_dynamic(desc)) return Refusal::because("oneDNN's convolution needs static dims");
  for (int32_t role : {EP_ROLE_SRC, EP_ROLE_DST}) {
    const ep_operand_desc* image = operand(desc, role);
    if (image != nullptr && has_gaps(*image)) return Refusal::because("oneDNN is slow to reorder images with gaps");
  }
  if (Refusal refusal = OneDnnConvolution::why_not(device, with_rounded_factors(desc), info)) return refusal;
  constexpr int64_t fewest_products = 64 * 64 * 64;
  if (work_of(desc) < 2 * fewest_products) {
    return Refusal::because("fewer than %lld products", static_cast<long long>(fewest_products));
  }
  const bool planes = operand(desc, EP_ROLE_SRC)->strides[1] != 1 || desc.operands[0].strides[1] != 1;
  if (planes && is_pointwise(desc, window_of(desc))) {
    return Refusal::because("planes of one tap take longer to reorder than to multiply");
  }
  info.penalty_bytes = penalty_of_planes(desc);
  info.flags |= EP_SUPPORT_FLAG_RELAXED;
  return {};
}

Refusal RelaxedConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                 ep_primitive_info& info) {
  return make_program(device, desc, true, out, info);
}

}  // namespace tenon::provider::cpu
