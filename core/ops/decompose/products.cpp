// Decomposes a convolution with a bias into one without and an addition, a record with epilogues into one with an
// epilogue less and an op, and a sum over nothing into a fill.
#include <limits>

#include "core/ops/decompose/decompose.h"
#include "core/ops/decompose/result.h"
#include "core/ops/rules.h"
#include "core/ops/rules/epilogue.h"
#include "primitives/text/format.h"

namespace tenon::ops {
namespace {

// Applies `epilogue` of `call` to `x`, as an op.
Tensor applied(const OpCall& call, const Epilogue& epilogue, const Tensor& x) {
  const auto slot = static_cast<size_t>(epilogue.scalar);
  const Scalar scalars[] = {slot < call.scalars.size() ? call.scalars[slot] : Scalar(),
                            slot + 1 < call.scalars.size() ? call.scalars[slot + 1] : Scalar()};
  if (epilogue.op->kind == EP_PRIMITIVE_unary) return elementwise::unary_slow(*epilogue.op, 0, nullptr, x, scalars);
  if (epilogue.input < 0) return elementwise::binary_slow(*epilogue.op, 0, nullptr, x, scalars[0]);
  return elementwise::binary_slow(*epilogue.op, 0, nullptr, x, input(call, static_cast<size_t>(epilogue.input)));
}

void without_last_epilogue(const OpCall& call) {
  const Epilogue& last = call.epilogues.back();
  OpCall shorter = call;
  shorter.epilogues = call.epilogues.first(call.epilogues.size() - 1);
  if (last.input >= 0) shorter.inputs = call.inputs.first(static_cast<size_t>(last.input));
  if (shorter.epilogues.empty()) shorter.scalars = {};
  Tensor result;
  shorter.outputs = {&result, 1};
  current_interpreter().apply(shorter);
  store(call, applied(call, last, result));
}

// The result of a reduction over no elements. max and min have none and were refused earlier. A matmul is a sum.
Scalar value_of_none(const OpInfo& op) {
  if (op.kind != EP_PRIMITIVE_reduce) return Scalar(0);
  switch (op.scalar_op) {
    case EP_REDUCE_prod: return Scalar(1);
    case EP_REDUCE_all: return Scalar(true);
    case EP_REDUCE_any: return Scalar(false);
    case EP_REDUCE_mean: return Scalar(std::numeric_limits<double>::quiet_NaN());
    case EP_REDUCE_log_sum: return Scalar(-std::numeric_limits<double>::infinity());
    default: return Scalar(0);
  }
}

void fill_with_nothing(const OpCall& call) {
  TensorMeta meta;
  throw_if_error(call.op->infer(call, &meta));
  store(call, full(meta.dims, value_of_none(*call.op), meta.dtype, input(call, 0).device()));
}

}  // namespace

bool is_of_nothing(const OpCall& call) {
  if (call.op->form != OpForm::kernel) return false;
  if (call.op->kind != EP_PRIMITIVE_reduce && call.op->kind != EP_PRIMITIVE_matmul) return false;
  return element_count(call.inputs[0]->impl()->dims) == 0;
}

bool has_decomposition(const OpCall& call) { return call.op->decompose != nullptr || !call.epilogues.empty(); }

void decompose(const OpCall& call) {
  if (!call.epilogues.empty()) return without_last_epilogue(call);
  if (is_of_nothing(call)) return fill_with_nothing(call);
  call.op->decompose(call);
}

void decompose_conv(const OpCall& call) {
  const Tensor bias = optional(call, 2);
  if (!bias.defined()) {
    throw Error(Subject{call.op->name}, Code::unsupported,
                "a product without a bias cannot be made of simpler primitives.");
  }
  Dims dims = Dims::filled(input(call, 0).rank() - 1, 1);
  dims[0] = bias.elements();
  const Tensor bare =
      functors::apply(static_cast<OpId>(call.op->id), {&input(call, 0), &input(call, 1), nullptr}, call.attributes);
  store(call, add(bare, reshape(bias, dims)));
}

}  // namespace tenon::ops
