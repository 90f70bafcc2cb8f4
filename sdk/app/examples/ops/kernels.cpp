// Ops that are one primitive of the device (ep_api/primitives.def in the installed headers).
#include <curves/attributes.h>
#include <curves/gradients.h>
#include <curves/rules.h>

namespace curves {
namespace ops {

// The descriptor of the primitive: its attributes, then its operands, outputs first.
Status lower_row_softmax(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  if (input.rank() == 0) return Status(Code::invalid_argument, "curves::row_softmax: input has no axis.");
  lowering->desc.attributes.softmax.axis = input.rank() - 1;
  lowering->desc.attributes.softmax.log = static_cast<int32_t>(call.attributes_as<RowSoftmaxAttributes>().log);
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), input.dims(), input.strides());
  return {};
}

// Computes the op from simpler ops, for a device without the primitive.
void decompose_row_softmax(const OpCall& call) {
  const Tensor& input = *call.inputs[0];
  const Tensor shifted = input - tenon::amax(input, {-1}, true);
  const Tensor total = tenon::sum(tenon::exp(shifted), -1, true);
  const bool log = call.attributes_as<RowSoftmaxAttributes>().log != 0;
  call.outputs[0] = log ? shifted - tenon::log(total) : tenon::exp(shifted) / total;
}

}  // namespace ops

namespace gradients {

void row_softmax(const autograd::OpGradient& b) {
  const Tensor result = b.result();
  if (b.attributes<RowSoftmaxAttributes>().log != 0) {
    b.give(0, b.grad() - tenon::exp(result) * tenon::sum(b.grad(), -1, true));
  } else {
    b.give(0, result * (b.grad() - tenon::sum(b.grad() * result, -1, true)));
  }
}

}  // namespace gradients
}  // namespace curves
