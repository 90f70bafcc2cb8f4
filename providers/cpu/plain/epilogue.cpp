#include "providers/cpu/plain/epilogue.h"

#include "providers/cpu/elementwise/scalar.h"

namespace tenon::provider::cpu {

bool is_epilogue_operand(const ep_operand_desc& operand) {
  return operand.role >= EP_ROLE_EPILOGUE_0 && operand.role < EP_ROLE_EPILOGUE_0 + EP_MAX_EPILOGUES;
}

Refusal why_no_plain_epilogues(const ep_primitive_desc& desc, SimdLevel simd, int32_t compute) {
  for (uint32_t i = 0; i < desc.epilogue_count && i < EP_MAX_EPILOGUES; ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    const MapKernel kernel = epilogue.arity == 1   ? unary_kernel(simd, epilogue.op, compute)
                             : epilogue.arity == 2 ? binary_kernel(simd, epilogue.op, compute)
                                                   : MapKernel();
    if (kernel.function == nullptr || kernel.dst_dtype != compute) {
      return Refusal::because("no epilogue %d of arity %d on %s", epilogue.op, epilogue.arity, dtype_name(compute));
    }
    if (epilogue.arity == 2 && epilogue.role != 0 && operand(desc, epilogue.role) == nullptr) {
      return Refusal::because("epilogue %u has no operand of role %d", i, epilogue.role);
    }
  }
  return {};
}

namespace {

// The second operand of a binary epilogue for one row of results, in the compute type.
const void* epilogue_operand(const ep_primitive_desc& desc, const ep_epilogue& epilogue, int32_t compute,
                             const ep_launch& launch, const int64_t* index, int64_t n, std::vector<char>* buffer) {
  const int32_t size = dtype_size(compute);
  buffer->resize(static_cast<size_t>(n * size));
  if (epilogue.role == 0) {
    write_scalar(launch.scalars[epilogue.scalar], compute, buffer->data());
    move_elements(size)(buffer->data(), 1, buffer->data(), 0, n);
    return buffer->data();
  }
  const int32_t i = find_operand(desc, epilogue.role);
  const OperandShape shape = shape_of(desc.operands[i], launch.shapes, static_cast<uint32_t>(i));
  int64_t offset = 0;
  for (int32_t axis = 0; axis < shape.rank; ++axis) offset += index[axis] * shape.strides[axis];
  const RowFormat format(desc.operands[i].dtype);
  format.read(buffer->data(), 1, address_of(launch.operands[i]) + offset * format.size, shape.strides[shape.rank - 1],
              n);
  return buffer->data();
}

}  // namespace

void apply_epilogues(const ep_primitive_desc& desc, SimdLevel simd, int32_t compute, const ep_launch& launch,
                     const int64_t* index, int64_t n, void* row, std::vector<char>* buffer) {
  for (uint32_t i = 0; i < desc.epilogue_count; ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    MapContext context;
    const void* sources[2] = {row, nullptr};
    MapKernel kernel;
    if (epilogue.arity == 1) {
      kernel = unary_kernel(simd, epilogue.op, compute);
      for (uint32_t slot = 0; slot < 2; ++slot) {
        const uint32_t scalar = static_cast<uint32_t>(epilogue.scalar) + slot;
        if (scalar < launch.scalar_count)
          write_scalar(launch.scalars[scalar], compute, slot == 0 ? context.a : context.b);
      }
    } else {
      kernel = binary_kernel(simd, epilogue.op, compute);
      sources[1] = epilogue_operand(desc, epilogue, compute, launch, index, n, buffer);
    }
    kernel.function(row, sources, n, context);
  }
}

}  // namespace tenon::provider::cpu
