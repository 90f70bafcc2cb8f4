// reduce over any set of axes, in one launch, or in two: values of parts, then their combination.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/reduction/reduction.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cuda {
namespace {

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
    const ReduceCut cut = cut_of(launch.shapes);
    ReduceArguments first = first_step(cut);
    first.src = address_of(launch.operands[1]);
    first.dst = address_of(launch.operands[0]);
    first.src_dtype = desc_.operands[1].dtype;
    first.dst_dtype = desc_.operands[0].dtype;
    first.op = desc_.attributes.reduce.op;
    first.vector = may_be_vector(first) ? 1 : 0;
    return run_steps(stream, functions_, cut.plan.team, first, address_of(launch.workspace), error);
  }

  uint64_t workspace(const ep_shape* shapes) const override { return parts_bytes(cut_of(shapes), dtype_size(class_)); }
  bool has_workspace() const override { return dynamic_ || workspace(nullptr) != 0; }

 private:
  ReduceCut cut_of(const ep_shape* shapes) const {
    return cut_reduction(shape_of(desc_.operands[1], shapes, 1), shape_of(desc_.operands[0], shapes, 0),
                         desc_.attributes.reduce.axes, processors_);
  }

  bool may_be_vector(const ReduceArguments& reduce) const {
    return class_ == EP_DTYPE_f32 && reduce.reduced.rank == 1 && reduce.reduced.src[0] == 1 &&
           (reduce.parts == 1 || reduce.part_length % map_chunk == 0) &&
           rows_are_aligned(reduce.src, dtype_size(reduce.src_dtype), reduce.kept, reduce.kept.src);
  }

  ep_primitive_desc desc_;
  bool dynamic_;
  int32_t class_;
  int64_t processors_;
  CUfunction functions_[3] = {};
};

}  // namespace

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
    return Refusal::because("axes 0x%x are not axes of rank %d", attributes.axes, src.rank);
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
