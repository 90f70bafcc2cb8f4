#include "providers/cuda/elementwise/map.h"

#include <algorithm>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/kernels/element.h"

namespace tenon::provider::cuda {
namespace {

constexpr double most_chunks = 2147483648.0;

// True if axis `b`, the inner neighbour of `a`, can be merged with it in every operand.
bool continues(const MapShape& shape, int32_t count, int32_t a, int32_t b) {
  for (int32_t i = 0; i < count; ++i) {
    if (shape.strides[i][a] != shape.strides[i][b] * shape.dims[b]) return false;
  }
  return true;
}

void move_axis(MapShape* shape, int32_t count, int32_t to, int32_t from) {
  shape->dims[to] = shape->dims[from];
  for (int32_t i = 0; i < count; ++i) shape->strides[i][to] = shape->strides[i][from];
}

void swap_axes(MapShape* shape, int32_t count, int32_t a, int32_t b) {
  std::swap(shape->dims[a], shape->dims[b]);
  for (int32_t i = 0; i < count; ++i) std::swap(shape->strides[i][a], shape->strides[i][b]);
}

// Sorts the axes by the destination's stride, greatest first. Insertion sort suits few axes that are mostly in order.
void sort_axes(MapShape* shape, int32_t count) {
  for (int32_t axis = 1; axis < shape->rank; ++axis) {
    for (int32_t i = axis; i > 0 && shape->strides[0][i] > shape->strides[0][i - 1]; --i) {
      swap_axes(shape, count, i, i - 1);
    }
  }
}

int64_t row_chunks(const MapShape& shape, int32_t chunk) { return (shape.dims[shape.rank - 1] + chunk - 1) / chunk; }

constexpr uint32_t most_steps = 2;

// Chunks per thread if every operand is one run of aligned chunks: two if there are enough chunks to occupy all threads
// of the device, else one. 0 if an operand has other strides or alignment.
uint32_t steps_of(const MapArguments& map, const MapPlan& plan, const DeviceFacts& facts) {
  if (map.rank != 1 || plan.chunk != map_chunk) return 0;
  for (int32_t i = 0; i < plan.count; ++i) {
    if (!plan.scalar[i] && map.operands[i].vector == 0) return 0;
  }
  const int64_t resident = int64_t{facts.processors} * facts.threads_per_processor;
  return static_cast<uint32_t>(std::clamp<int64_t>(map.chunks / std::max<int64_t>(resident, 1), 1, most_steps));
}

bool may_be_vector(const MapShape& shape, int32_t operand, CUdeviceptr address, int64_t size) {
  const auto alignment = pack_alignment(size);
  if (shape.strides[operand][shape.rank - 1] != 1 || address % static_cast<uint64_t>(alignment) != 0) return false;
  for (int32_t axis = 0; axis + 1 < shape.rank; ++axis) {
    if (shape.strides[operand][axis] * size % alignment != 0) return false;
  }
  return true;
}

}  // namespace

MapShape folded(const MapPlan& plan, std::span<const OperandShape> operands) {
  MapShape shape;
  const OperandShape& dst = operands[0];
  for (int32_t axis = 0; axis < dst.rank; ++axis) {
    if (dst.dims[axis] == 1) continue;
    shape.dims[shape.rank] = dst.dims[axis];
    for (int32_t i = 0; i < plan.count; ++i) {
      shape.strides[i][shape.rank] = plan.scalar[i] ? 0 : operands[static_cast<size_t>(i)].strides[axis];
    }
    ++shape.rank;
  }
  if (shape.rank == 0) {
    shape.rank = 1;
    shape.dims[0] = 1;
    for (int32_t i = 0; i < plan.count; ++i) shape.strides[i][0] = 1;
    return shape;
  }
  sort_axes(&shape, plan.count);
  int32_t last = 0;
  for (int32_t axis = 1; axis < shape.rank; ++axis) {
    if (continues(shape, plan.count, last, axis)) {
      const int64_t dim = shape.dims[last];
      move_axis(&shape, plan.count, last, axis);
      shape.dims[last] *= dim;
    } else {
      move_axis(&shape, plan.count, ++last, axis);
    }
  }
  shape.rank = last + 1;
  return shape;
}

int32_t axis_to_halve(const MapShape& shape, int32_t chunk) {
  const int32_t last = shape.rank - 1;
  int32_t longest = last;
  auto most = static_cast<double>(row_chunks(shape, chunk));
  double chunks = most;
  for (int32_t axis = 0; axis < last; ++axis) {
    const auto dim = static_cast<double>(shape.dims[axis]);
    chunks *= dim;
    if (dim <= most) continue;
    most = dim;
    longest = axis;
  }
  return chunks < most_chunks ? -1 : longest;
}

MapArguments map_arguments(const MapPlan& plan, const MapShape& shape, const MapOperands& operands) {
  MapArguments map{};
  const int32_t last = shape.rank - 1;
  map.row_chunks = static_cast<uint32_t>(row_chunks(shape, plan.chunk));
  map.chunks = map.row_chunks;
  for (int32_t axis = 0; axis < last; ++axis) {
    map.dims[axis] = static_cast<uint32_t>(shape.dims[axis]);
    map.chunks *= map.dims[axis];
  }
  map.inner = shape.dims[last];
  map.rank = shape.rank;
  map.op = plan.op;
  map.parameters[0] = operands.parameters[0];
  map.parameters[1] = operands.parameters[1];
  for (int32_t i = 0; i < plan.count; ++i) {
    MapOperand& operand = map.operands[i];
    operand.dtype = plan.dtypes[i];
    if (plan.scalar[i]) {
      operand.scalar = operands.scalars[i];
      continue;
    }
    operand.address = operands.addresses[i];
    std::copy_n(shape.strides[i], shape.rank, operand.strides);
    const bool vector = plan.chunk == map_chunk && may_be_vector(shape, i, operand.address, dtype_size(operand.dtype));
    operand.vector = vector ? 1 : 0;
  }
  return map;
}

void Map::read_scalars(const ep_scalar* scalars, uint32_t count, uint32_t first_parameter,
                       MapOperands* operands) const {
  for (int32_t i = 1; i < plan_.count; ++i) {
    const auto slot = static_cast<uint32_t>(i - 1);
    if (!plan_.scalar[i] || slot >= count) continue;
    operands->scalars[i] = plan_.moves_bits && plan_.dtypes[i] != EP_DTYPE_bool
                               ? element_bits(scalars[slot], plan_.dtypes[i])
                               : class_bits(scalars[slot], plan_.dtypes[i]);
  }
  if (plan_.parameter_class == 0) return;
  for (uint32_t i = 0; i < 2 && first_parameter + i < count; ++i) {
    operands->parameters[i] = parameter_bits(scalars[first_parameter + i], plan_.parameter_class);
  }
}

ep_status Map::run(ep_stream* stream, const MapShape& shape, const MapOperands& operands, uint64_t tag,
                   ep_error** error) const {
  const auto launch = [&](const FaultTarget& fault) {
    return cut(plan_, shape, operands, [&](const MapShape& piece, const MapOperands& of_piece) {
      MapArguments arguments = map_arguments(plan_, piece, of_piece);
      arguments.fault = fault;
      arguments.steps = steps_of(arguments, plan_, stream->device->facts);
      const int64_t each = std::max<int64_t>(arguments.steps, 1);
      return launch_kernel(stream, function_, blocks_for((arguments.chunks + each - 1) / each), &arguments, error);
    });
  };
  if (plan_.fault_operand == 0) return launch({});
  return launch_watched(stream, tag, plan_.fault_operand, launch, error);
}

}  // namespace tenon::provider::cuda
