#include "core/compile/ended.h"

#include "core/ops/op_call.h"
#include "core/tensor/recording.h"
#include "primitives/text/format.h"

namespace tenon::compilation {
namespace {

const graph::RecordedTensor& recorded(const Tensor& value) {
  return static_cast<const graph::RecordedTensor&>(*value.impl()->stand_in);
}

Tensor apply_view(const graph::ViewStep& step, const Tensor& tensor) {
  Tensor result;
  const Tensor* inputs[] = {&tensor};
  OpCall call;
  call.op = step.op;
  call.inputs = inputs;
  call.attributes = step.attributes.data();
  call.outputs = {&result, 1};
  eager_interpreter().apply(call);
  return result;
}

}  // namespace

const std::shared_ptr<graph::Base>& base_of(const Tensor& value) { return recorded(value).base; }

void Ended::add(std::shared_ptr<graph::Base> base, Tensor tensor) {
  const graph::Base* key = base.get();
  tensors_.emplace(key, Known{std::move(base), std::move(tensor)});
}

Tensor Ended::tensor_of(const Tensor& value) const {
  const auto found = tensors_.find(base_of(value).get());
  if (found == tensors_.end()) {
    throw Error(Code::invalid_argument, fmt::format("a tensor of shape {} is {}, and cannot be used here.",
                                                    value.impl()->dims, origin_of(value)));
  }
  Tensor tensor = found->second.tensor;
  for (const graph::ViewStep* step : recorded(value).chain.steps()) tensor = apply_view(*step, tensor);
  return tensor;
}

}  // namespace tenon::compilation
