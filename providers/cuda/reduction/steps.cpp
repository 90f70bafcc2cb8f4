// Cuts reductions into parts, and launches the one or two steps.
#include <algorithm>

#include "providers/cuda/reduction/reduction.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t short_row = 8;         // elements that one thread reduces alone
constexpr int64_t warp_row = 2048;       // elements a warp reduces
constexpr int64_t least_part = 4096;     // elements of a part that a block reduces
constexpr int64_t least_solo_part = 64;  // elements of a part that a thread reduces
constexpr int64_t most_parts = 1024;
constexpr int64_t blocks_per_processor = 8;

// The launch that combines the values of the parts of `first`, which are stored contiguously at `parts`.
ReduceArguments second_step(const ReduceArguments& first, uint64_t parts) {
  ReduceArguments second = first;
  second.src = parts;
  second.second = 1;
  second.vector = 0;
  second.parts = 1;
  second.part_length = first.parts;
  second.reduced = {};
  second.reduced.rank = 1;
  second.reduced.count = second.reduced.dims[0] = first.parts;
  second.reduced.src[0] = 1;
  int64_t stride = first.parts;
  for (int32_t axis = second.kept.rank - 1; axis >= 0; --axis) {
    second.kept.src[axis] = stride;
    stride *= second.kept.dims[axis];
  }
  return second;
}

ep_status run_step(ep_stream* stream, const CUfunction* functions, Team team, const ReduceArguments& reduce,
                   ep_error** error) {
  const Geometry geometry = geometry_for(reduce.kept.count * reduce.parts, team);
  return launch_kernel(stream, functions[static_cast<size_t>(team)], geometry, &reduce, error);
}

}  // namespace

ReducePlan plan_reduce(const AxisSet& kept, const AxisSet& reduced, int64_t processors) {
  ReducePlan plan;
  const int64_t count = reduced.count;
  const bool columns = kept.src[kept.rank - 1] == 1 && kept.count > 1 && reduced.src[reduced.rank - 1] != 1;
  int64_t wanted = processors * blocks_per_processor;  // teams that keep the device busy
  int64_t least = least_part;
  if (columns || count <= short_row) {
    plan.team = Team::SOLO;
    wanted *= row_block;
    least = least_solo_part;
  } else if (count <= warp_row) {
    plan.team = Team::WARP;
  }
  const int64_t room = std::min(count / least, most_parts);
  plan.parts = std::clamp<int64_t>(wanted / std::max<int64_t>(kept.count, 1), 1, std::max<int64_t>(room, 1));
  plan.part_length = (count + plan.parts - 1) / plan.parts;
  if (plan.parts == 1) return plan;
  plan.part_length = (plan.part_length + map_chunk - 1) / map_chunk * map_chunk;
  plan.parts = (count + plan.part_length - 1) / plan.part_length;
  return plan;
}

Geometry geometry_for(int64_t rows, Team team) {
  const int64_t per_block = teams_per_block(team);
  return {std::clamp<int64_t>((rows + per_block - 1) / per_block, 1, most_blocks), row_block};
}

ReduceCut cut_reduction(const OperandShape& src, const OperandShape& dst, uint32_t axes, int64_t processors) {
  ReduceCut cut;
  cut.kept = axes_of(src, dst, axes, false);
  cut.reduced = axes_of(src, dst, axes, true);
  cut.plan = plan_reduce(cut.kept, cut.reduced, processors);
  return cut;
}

ReduceArguments first_step(const ReduceCut& cut) {
  ReduceArguments reduce{};
  reduce.parts = cut.plan.parts;
  reduce.part_length = cut.plan.part_length;
  reduce.finish_count = cut.reduced.count;
  reduce.kept = cut.kept;
  reduce.reduced = cut.reduced;
  return reduce;
}

uint64_t parts_bytes(const ReduceCut& cut, int64_t size) {
  return cut.plan.parts == 1 ? 0 : static_cast<uint64_t>(cut.kept.count * cut.plan.parts * size);
}

ep_status run_steps(ep_stream* stream, const CUfunction* functions, Team team, ReduceArguments first,
                    CUdeviceptr workspace, ep_error** error) {
  if (first.parts == 1) return run_step(stream, functions, team, first, error);
  const ReduceArguments second = second_step(first, workspace);
  first.dst = workspace;
  if (const ep_status status = run_step(stream, functions, team, first, error); status != EP_STATUS_OK) return status;
  return run_step(stream, functions, first.parts <= 4 * row_warp ? Team::WARP : Team::BLOCK, second, error);
}

}  // namespace tenon::provider::cuda
