// The rule of random: numbers counted in row-major order.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/axis.h"

namespace tenon::ops {

template <class Call>
Status infer_random(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<RandomAttributes>();
  const auto sizes = sizes_of(call, attributes.dims);
  outputs->dtype = attributes.dtype;
  outputs->dims = BasicDims<typename Call::Size>(std::span<const typename Call::Size>(sizes));
  if constexpr (std::is_same_v<Call, OpCall>) return infer::checked(call.op->name, outputs->dims).status();
  return {};
}

Status lower_random(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const TensorMeta& output = outputs[0];
  const bool dense = output.strides == contiguous_strides(output.dims);
  lowering->desc.attributes.random.distribution = call.attributes_as<RandomAttributes>().distribution;
  lowering->scalar_dtypes[0] = lowering->scalar_dtypes[1] = DType::u64;
  lowering->output(EP_ROLE_DST, 0, output.dtype, dense ? Dims{element_count(output.dims)} : output.dims,
                   dense ? Dims{1} : output.strides);
  return {};
}

template Status infer_random(const OpCall&, TensorMeta*);
template Status infer_random(const SymCall&, SymMeta*);

}  // namespace tenon::ops
