// reduce over any set of axes, in one launch, or in two: values of parts first, then their combination.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/reduction/reduction.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t short_row = 8;         // elements one thread reduces alone
constexpr int64_t warp_row = 2048;       // elements a warp reduces
constexpr int64_t least_part = 4096;     // elements of a part that a block reduces
constexpr int64_t least_solo_part = 64;  // elements of a part that a thread reduces
constexpr int64_t most_parts = 1024;
constexpr int64_t blocks_per_processor = 8;

constexpr const char* reduce_name(int32_t op) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id:                                                      \
    return #name;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return "unknown";
  }
}

class ReducePrimitive final : public ep_primitive {
 public:
  // `functions` has one kernel per team.
  ReducePrimitive(const ep_device& on, const ep_primitive_desc& desc, const CUfunction* functions)
      : desc_(desc),
        dynamic_(is_dynamic(desc)),
        class_(class_of(desc.operands[0].dtype)),
        processors_(on.facts.processors) {
    std::copy_n(functions, 3, functions_);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const Cut cut = cut_of(launch.shapes);
    ReduceArguments first = arguments(cut);
    first.src = address_of(launch.operands[1]);
    first.dst = address_of(launch.operands[0]);
    first.vector = may_be_vector(first) ? 1 : 0;
    if (cut.plan.parts == 1) return run(stream, cut.plan.team, first, error);
    const ReduceArguments second = combining(first, address_of(launch.workspace));
    first.dst = second.src;
    if (const ep_status status = run(stream, cut.plan.team, first, error); status != EP_STATUS_OK) return status;
    return run(stream, first.parts <= 4 * row_warp ? Team::WARP : Team::BLOCK, second, error);
  }

  uint64_t workspace(const ep_shape* shapes) const override {
    const Cut cut = cut_of(shapes);
    if (cut.plan.parts == 1) return 0;
    return static_cast<uint64_t>(cut.kept.count * cut.plan.parts * dtype_size(class_));
  }
  bool has_workspace() const override { return dynamic_ || workspace(nullptr) != 0; }

 private:
  struct Cut {
    AxisSet kept;
    AxisSet reduced;
    ReducePlan plan;
  };

  Cut cut_of(const ep_shape* shapes) const {
    const OperandShape dst = shape_of(desc_.operands[0], shapes, 0);
    const OperandShape src = shape_of(desc_.operands[1], shapes, 1);
    const uint32_t mask = desc_.attributes.reduce.axes;
    Cut cut;
    cut.kept = axes_of(src, dst, mask, false);
    cut.reduced = axes_of(src, dst, mask, true);
    cut.plan = plan_reduce(cut.kept, cut.reduced, processors_);
    return cut;
  }

  ReduceArguments arguments(const Cut& cut) const {
    ReduceArguments reduce{};
    reduce.src_dtype = desc_.operands[1].dtype;
    reduce.dst_dtype = desc_.operands[0].dtype;
    reduce.op = desc_.attributes.reduce.op;
    reduce.parts = cut.plan.parts;
    reduce.part_length = cut.plan.part_length;
    reduce.finish_count = cut.reduced.count;
    reduce.kept = cut.kept;
    reduce.reduced = cut.reduced;
    return reduce;
  }

  // The launch that combines the values of the parts of `first`. The values lie at `parts`, one after the other.
  static ReduceArguments combining(const ReduceArguments& first, uint64_t parts) {
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

  bool may_be_vector(const ReduceArguments& reduce) const {
    return class_ == EP_DTYPE_f32 && reduce.reduced.rank == 1 && reduce.reduced.src[0] == 1 &&
           (reduce.parts == 1 || reduce.part_length % map_chunk == 0) &&
           rows_are_aligned(reduce.src, dtype_size(reduce.src_dtype), reduce.kept, reduce.kept.src);
  }

  ep_status run(ep_stream* stream, Team team, const ReduceArguments& reduce, ep_error** error) const {
    const int64_t per_block = teams_per_block(team);
    const int64_t jobs = reduce.kept.count * reduce.parts;
    const Geometry geometry = {std::min((jobs + per_block - 1) / per_block, most_blocks), row_block};
    return launch_kernel(stream, functions_[static_cast<size_t>(team)], geometry, &reduce, error);
  }

  ep_primitive_desc desc_;
  bool dynamic_;
  int32_t class_;
  int64_t processors_;
  CUfunction functions_[3] = {};
};

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

Refusal Reduce::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const ep_reduce_attributes& attributes = desc.attributes.reduce;
  const ep_operand_desc& src = desc.operands[1];
  const scalar::RowFacts facts = scalar::reduce_facts(attributes.op);
  if (class_of(src.dtype) == 0) return Refusal::because("no kernel computes with %s", dtype_name(src.dtype));
  if (!facts.known || !scalar::defined_on(facts.domain, src.dtype)) {
    return Refusal::because("reduction %d (%s) is not defined on %s", attributes.op, reduce_name(attributes.op),
                            dtype_name(src.dtype));
  }
  if (desc.operands[0].dtype != src.dtype)
    return Refusal::because("the result is %s", dtype_name(desc.operands[0].dtype));
  if (is_scalar(src) || is_scalar(desc.operands[0]) || desc.operands[0].rank != src.rank)
    return Refusal::because("ranks differ");
  if (attributes.axes == 0 || (attributes.axes >> src.rank) != 0)
    return Refusal::because("axes 0x%x of rank %d", attributes.axes, src.rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Reduce::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const int32_t dtype_class = class_of(desc.operands[0].dtype);
  CUfunction functions[3] = {};
  for (const Team team : {Team::SOLO, Team::WARP, Team::BLOCK}) {
    const std::string name =
        dtype_class == EP_DTYPE_f32
            ? fmt::format("reduce_{}_f32_{}", reduce_name(desc.attributes.reduce.op), team_name(team))
            : fmt::format("reduce_{}_{}", class_name(dtype_class), team_name(team));
    const Refusal refusal = find_kernel(device, Family::REDUCE, name.c_str(), &functions[static_cast<size_t>(team)]);
    if (refusal) return refusal;
  }
  *out = make_primitive<ReducePrimitive>(device, device, desc, functions);
  return {};
}

}  // namespace tenon::provider::cuda
