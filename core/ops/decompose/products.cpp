// Writes a convolution with a bias as one without and an addition, and any record with epilogues as one with an
// epilogue less and an op.
#include "core/ops/decompose/decompose.h"
#include "core/ops/decompose/result.h"
#include "core/ops/rules.h"
#include "core/ops/rules/epilogue.h"
#include "primitives/text/format.h"

namespace tenon::ops {
namespace {

// `epilogue` of `call` as an op on `x`.
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

}  // namespace

bool has_decomposition(const OpCall& call) { return call.op->decompose != nullptr || !call.epilogues.empty(); }

void decompose(const OpCall& call) {
  if (call.epilogues.empty()) return call.op->decompose(call);
  without_last_epilogue(call);
}

void decompose_conv(const OpCall& call) {
  const Tensor bias = optional(call, 2);
  if (!bias.defined()) {
    throw Error(Code::unsupported, fmt::format("{}: a bare product is not made of simpler primitives.", call.op->name));
  }
  Dims dims = Dims::filled(input(call, 0).rank() - 1, 1);
  dims[0] = bias.elements();
  const Tensor bare =
      functors::apply(static_cast<OpId>(call.op->id), {&input(call, 0), &input(call, 1), nullptr}, call.attributes);
  store(call, add(bare, reshape(bias, dims)));
}

}  // namespace tenon::ops
