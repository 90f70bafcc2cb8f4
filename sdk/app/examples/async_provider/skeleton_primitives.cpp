// The primitives of the device: relu of f32, copies between any layouts, and gather, which can raise faults.
//
// A kind has a list of implementations, best first; each returns the reason if it does not support a primitive. If we
// refuse, the host computes the op from other primitives or on the CPU, and its execution report shows the reason. To
// compute more, add a kernel, a why_not, a make, a line in `lists`, and a claim in skeleton.expect.
#include <algorithm>
#include <cstring>

#include "sdk/provider/elementwise.h"
#include "sdk/provider/entry.h"
#include "skeleton.h"

using namespace tenon::provider;

namespace {

// ---- Kernels: here C++ on the worker thread. YOUR API: device code, which primitive_create loads or compiles. The
// files in sdk/provider/opencl and glsl define every scalar function of the table as device code. ----

int64_t count(const Operand& operand) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) elements *= operand.dims[axis];
  return elements;
}

// Writes the coordinates of element number `i` in row-major order.
void coordinates_of(const Operand& operand, int64_t i, int64_t* out_at) {
  for (int32_t axis = operand.rank; axis-- > 0; i /= operand.dims[axis]) out_at[axis] = i % operand.dims[axis];
}

// Returns the position of an element, in elements from the start. Strides may be 0 (a repeated input) or leave gaps.
int64_t place(const Operand& operand, const int64_t* at) {
  int64_t offset = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) offset += at[axis] * operand.strides[axis];
  return offset;
}

// NaN stays NaN, as scalar_ops.def requires. unary_row computes every other unary function of that table in the same
// way.
void relu_kernel(const ep_primitive_desc&, const Launch& launch, ep_stream&) {
  const auto& [dst, src, unused] = launch.operands;
  int64_t at[EP_MAX_RANK];
  for (int64_t i = 0; i < count(dst); ++i) {
    coordinates_of(dst, i, at);
    const float x = reinterpret_cast<const float*>(src.data)[place(src, at)];
    reinterpret_cast<float*>(dst.data)[place(dst, at)] = scalar::unary_row(scalar::Op<EP_UNARY_relu>{}, x, 0.0f, 0.0f);
  }
}

void copy_kernel(const ep_primitive_desc& desc, const Launch& launch, ep_stream&) {
  const auto& [dst, src, unused] = launch.operands;
  const int64_t size = dtype_size(desc.operands[0].dtype);
  int64_t at[EP_MAX_RANK];
  for (int64_t i = 0; i < count(dst); ++i) {
    coordinates_of(dst, i, at);
    std::memcpy(dst.data + size * place(dst, at), src.data + size * place(src, at), static_cast<size_t>(size));
  }
}

int64_t index_at(int32_t dtype, const Operand& indices, const int64_t* at) {
  const int64_t offset = place(indices, at);
  if (dtype == EP_DTYPE_i32) return reinterpret_cast<const int32_t*>(indices.data)[offset];
  return reinterpret_cast<const int64_t*>(indices.data)[offset];
}

// Writes the coordinates in `src` of result element `at`, except on the axis that the index gives.
// Returns the coordinates of the index.
const int64_t* source_of(const ep_gather_attributes& gather, const Operand& src, int32_t index_rank, const int64_t* at,
                         int64_t* out_at) {
  if (gather.mode == EP_GATHER_ELEMENTS) {
    std::memcpy(out_at, at, static_cast<size_t>(src.rank) * sizeof *at);
    return at;
  }
  for (int32_t axis = 0; axis < src.rank; ++axis) out_at[axis] = at[axis <= gather.axis ? axis : axis + index_rank - 1];
  return at + gather.axis;
}

// An index out of range is a fault: the element is not written, and the others are computed. The fault names the first
// bad index, its operand, and the launch.
void gather_kernel(const ep_primitive_desc& desc, const Launch& launch, ep_stream& stream) {
  const auto& [dst, src, indices] = launch.operands;
  const ep_gather_attributes& gather = desc.attributes.gather;
  const int64_t size = dtype_size(desc.operands[0].dtype);
  const int64_t length = src.dims[gather.axis];
  bool sound = true;
  int64_t at[EP_MAX_RANK], from[EP_MAX_RANK];
  for (int64_t i = 0; i < count(dst); ++i) {
    coordinates_of(dst, i, at);
    const int64_t* index_of = source_of(gather, src, indices.rank, at, from);
    const int64_t index = index_at(desc.operands[2].dtype, indices, index_of);
    if (index < -length || index >= length) {
      if (sound) stream.report({launch.tag, EP_FAULT_INDEX_OUT_OF_RANGE, 2, index, length, 0});
      sound = false;
      continue;
    }
    from[gather.axis] = index < 0 ? index + length : index;
    std::memcpy(dst.data + size * place(dst, at), src.data + size * place(src, from), static_cast<size_t>(size));
  }
}

// ---- Lists. why_not is fast and has no side effects. unknown_parts of the SDK refuses additions of newer hosts. ----

// With these flags one primitive serves all dims and strides, and each launch gives them. Omit the flags if your
// kernels are compiled for one shape; then the descriptor gives dims and strides.
constexpr uint64_t open_shapes = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;

Refusal check_in_memory(const ep_primitive_desc& desc) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (is_scalar(desc.operands[i])) return Refusal::because("operand %u is a scalar, and must lie in memory", i);
  }
  return {};
}

Refusal relu_why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.attributes.unary.op != EP_UNARY_relu) {
    return Refusal::because("relu is the only unary function here, not %s", unary_name(desc.attributes.unary.op));
  }
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC})) return refusal;
  for (uint32_t i = 0; i < 2; ++i) {
    const int32_t dtype = desc.operands[i].dtype;
    if (dtype != EP_DTYPE_f32) return Refusal::because("operand %u is %s, not f32", i, dtype_name(dtype));
  }
  info.flags = open_shapes;
  return check_in_memory(desc);
}

Refusal copy_why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = check_operands(desc, {EP_ROLE_DST, EP_ROLE_SRC})) return refusal;
  const int32_t to = desc.operands[0].dtype, from = desc.operands[1].dtype;
  if (to != from) return Refusal::because("there is no conversion of %s to %s", dtype_name(from), dtype_name(to));
  info.flags = open_shapes;
  return check_in_memory(desc);
}

Refusal gather_why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 3 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC ||
      desc.operands[2].role != EP_ROLE_INDICES) {
    return Refusal::because("the operands are not a result, a source and indices");
  }
  const int32_t to = desc.operands[0].dtype, from = desc.operands[1].dtype, index = desc.operands[2].dtype;
  if (to != from || dtype_size(to) == 0) {
    return Refusal::because("%s cannot be gathered from %s", dtype_name(to), dtype_name(from));
  }
  if (index != EP_DTYPE_i32 && index != EP_DTYPE_i64) {
    return Refusal::because("the indices are %s, not i32 or i64", dtype_name(index));
  }
  const int32_t mode = desc.attributes.gather.mode;
  if (mode != EP_GATHER_SLICES && mode != EP_GATHER_ELEMENTS) return Refusal::because("unknown mode %d", mode);
  info.flags = open_shapes;
  return check_in_memory(desc);
}

// YOUR API: compile or load the kernel here. If that fails, return Refusal::failure with the compiler's message.
template <Kernel* kernel>
Refusal make_plain(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out_primitive, ep_primitive_info&) {
  *out_primitive = make_primitive<ep_primitive>(device, desc, kernel);
  return {};
}

constexpr Implementation relu_list[] = {{"plain", relu_why_not, make_plain<relu_kernel>}};
constexpr Implementation copy_list[] = {{"plain", copy_why_not, make_plain<copy_kernel>}};
constexpr Implementation gather_list[] = {{"plain", gather_why_not, make_plain<gather_kernel>}};
constexpr ImplementationList lists[] = {
    {EP_PRIMITIVE_unary, relu_list}, {EP_PRIMITIVE_copy, copy_list}, {EP_PRIMITIVE_gather, gather_list}};
constexpr const char* name = "skeleton";

// ---- Slots. ----

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                            ep_error** error) {
  return support(*device, name, lists, *desc, out_info, error);
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                           ep_primitive_info* out_info, ep_error** error) {
  return create(*device, name, lists, *desc, out_primitive, out_info, error);
}

void primitive_destroy(ep_device*, ep_primitive* primitive) noexcept { destroy_primitive(primitive); }

Launch copy_of(const ep_primitive& primitive, const ep_launch& given) {
  Launch launch{};
  launch.tag = given.tag;
  for (uint32_t i = 0; i < primitive.desc.operand_count; ++i) {
    const OperandShape shape = shape_of(primitive.desc.operands[i], given.shapes, i);
    Operand& operand = launch.operands[i];
    operand.data = address(given.operands[i]);
    operand.rank = shape.rank;
    std::copy_n(shape.dims, shape.rank, operand.dims);
    std::copy_n(shape.strides, shape.rank, operand.strides);
  }
  return launch;
}

// Two threads may launch one primitive on two streams at the same time. Here each command has its own arguments. YOUR
// API: if a kernel object stores the arguments (clSetKernelArg), hold a lock of the primitive from the first argument
// to the enqueue.
ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* given, ep_fault*,
                           ep_error** error) {
  if (const ep_status status = check_not_lost(*stream->device, error); status != EP_STATUS_OK) return status;
  stream->submit([=, launch = copy_of(*primitive, *given)] { primitive->kernel(primitive->desc, launch, *stream); });
  return EP_STATUS_OK;
}

}  // namespace

void fill_primitives(ep_device_ops* ops) {
  ops->primitive_support = entry<primitive_support>;
  ops->primitive_create = entry<primitive_create>;
  ops->primitive_destroy = primitive_destroy;
  ops->primitive_launch = entry<primitive_launch>;
}
