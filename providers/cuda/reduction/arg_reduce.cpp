// arg_reduce along one axis, in one launch or two.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/reduction/reduction.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t found_bytes = 16;  // bytes of Found, a value and its position

class ArgReducePrimitive final : public ep_primitive {
 public:
  // `functions` has one kernel per team.
  ArgReducePrimitive(const ep_device& on, const ep_primitive_desc& desc, const CUfunction* functions)
      : desc_(desc), dynamic_(is_dynamic(desc)), processors_(on.facts.processors) {
    std::copy_n(functions, 3, functions_);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const ReduceCut cut = cut_of(launch.shapes);
    ReduceArguments first = first_step(cut);
    first.src = address_of(launch.operands[1]);
    first.dst = address_of(launch.operands[0]);
    first.src_dtype = desc_.operands[1].dtype;
    const ep_arg_reduce_attributes& attributes = desc_.attributes.arg_reduce;
    first.op = (attributes.op == EP_REDUCE_max ? 1 : 0) + (attributes.last != 0 ? 2 : 0);
    return run_steps(stream, functions_, cut.plan.team, first, address_of(launch.workspace), error);
  }

  uint64_t workspace(const ep_shape* shapes) const override { return parts_bytes(cut_of(shapes), found_bytes); }
  bool has_workspace() const override { return dynamic_ || workspace(nullptr) != 0; }

 private:
  // Cuts along one axis only, so that a row is read in the order of positions.
  ReduceCut cut_of(const ep_shape* shapes) const {
    return cut_reduction(shape_of(desc_.operands[1], shapes, 1), shape_of(desc_.operands[0], shapes, 0),
                         1U << desc_.attributes.arg_reduce.axis, processors_);
  }

  ep_primitive_desc desc_;
  bool dynamic_;
  int64_t processors_;
  CUfunction functions_[3] = {};
};

}  // namespace

Refusal ArgReduce::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const ep_arg_reduce_attributes& attributes = desc.attributes.arg_reduce;
  const ep_operand_desc& src = desc.operands[1];
  if (attributes.op != EP_REDUCE_max && attributes.op != EP_REDUCE_min) return Refusal::because("op %d", attributes.op);
  if (class_of(src.dtype) == 0) return Refusal::because("no kernel compares %s", dtype_name(src.dtype));
  if (desc.operands[0].dtype != EP_DTYPE_i64)
    return Refusal::because("positions of %s", dtype_name(desc.operands[0].dtype));
  if (is_scalar(src) || is_scalar(desc.operands[0]) || desc.operands[0].rank != src.rank)
    return Refusal::because("ranks differ");
  if (attributes.axis < 0 || attributes.axis >= src.rank)
    return Refusal::because("axis %d of rank %d", attributes.axis, src.rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal ArgReduce::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  CUfunction functions[3] = {};
  for (const Team team : {Team::SOLO, Team::WARP, Team::BLOCK}) {
    const std::string name =
        fmt::format("arg_reduce_{}_{}", class_name(class_of(desc.operands[1].dtype)), team_name(team));
    CUfunction& function = functions[static_cast<size_t>(team)];
    if (Refusal refusal = find_kernel(device, Family::ARG_REDUCE, name.c_str(), &function)) return refusal;
  }
  *out = make_primitive<ArgReducePrimitive>(device, device, desc, functions);
  return {};
}

}  // namespace tenon::provider::cuda
