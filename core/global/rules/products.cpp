// Rules of products, convolutions, pooling, attention and recurrent layers.
#include "core/global/rules/spread.h"
#include "core/ops/attributes.h"
#include "core/ops/sbp_rules.h"

namespace tenon::global {
namespace {

// True if every rank gets at least one of `size` elements: some primitives refuse empty parts.
bool serves_all(const CallFacts& facts, int64_t size) { return size >= facts.ranks; }
// True if all ranks get the same number of elements.
bool is_even(const CallFacts& facts, int64_t size) { return size % facts.ranks == 0; }

// Splits images and channels, since each plane is independent. Serves all kinds of pooling, forward and backward.
void add_planes(const CallFacts& facts, Signatures* signatures) {
  for (int32_t axis = 0; axis < 2; ++axis) {
    if (!serves_all(facts, facts.dims(0)[axis])) continue;
    Signature signature = signatures->blank();
    for (Sbp& input : signature.inputs) input = Sbp::split(axis);
    for (Sbp& output : signature.outputs) output = Sbp::split(axis);
    signatures->add(std::move(signature));
  }
}

}  // namespace

// Rows, columns and the matrices of a batch split the result; a split of the contracted axis gives a partial sum.
void sbp_matmul(const CallFacts& facts, Signatures* signatures) {
  const Dims &a = facts.dims(0), &b = facts.dims(1), &c = facts.outputs[0].dims;
  const bool row = a.rank() == 1, column = b.rank() == 1;   // vectors
  const int32_t matrix = (row ? 0 : 1) + (column ? 0 : 1);  // number of matrix axes of the result
  if (!row) signatures->add({Sbp::split(a.rank() - 2), {}}, {Sbp::split(c.rank() - matrix)});
  if (!column) signatures->add({{}, Sbp::split(b.rank() - 1)}, {Sbp::split(c.rank() - 1)});
  signatures->add({Sbp::split(a.rank() - 1), Sbp::split(column ? 0 : b.rank() - 2)}, {Sbp::partial()});
  const int32_t batch = c.rank() - matrix;
  const auto batch_split = [&](const Dims& dims, int32_t axis) {
    const int32_t own = axis - (batch - (dims.rank() - 2));
    return own >= 0 && dims[own] == c[axis] ? Sbp::split(own) : Sbp::broadcast();
  };
  for (int32_t axis = 0; axis < batch; ++axis) {
    signatures->add({batch_split(a, axis), batch_split(b, axis)}, {Sbp::split(axis)});
  }
  signatures->add({Sbp::partial(), {}}, {Sbp::partial()});
  signatures->add({{}, Sbp::partial()}, {Sbp::partial()});
}

// Inputs: input, weight, bias.
void sbp_convolution(const CallFacts& facts, Signatures* signatures) {
  const auto& window = facts.attributes<ConvolutionAttributes>().window;
  if (serves_all(facts, facts.dims(0)[0])) signatures->add({Sbp::split(0)}, {Sbp::split(0)});
  if (window.groups != 1) return;
  const int32_t made =
      window.transposed != 0 ? 1 : 0;  // the axis of the weight that becomes the channels of the result
  if (serves_all(facts, facts.dims(1)[made])) {
    signatures->add({{}, Sbp::split(made), facts.has(2) ? Sbp::split(0) : Sbp()}, {Sbp::split(1)});
  }
  if (!facts.has(2) && serves_all(facts, facts.dims(1)[1 - made])) {
    signatures->add({Sbp::split(1), Sbp::split(1 - made)}, {Sbp::partial()});
  }
}

// Inputs: input and the gradient. The result is the gradient of the weight.
void sbp_convolution_weight(const CallFacts& facts, Signatures* signatures) {
  const Sbp images = Sbp::split(0), channels = Sbp::split(1);
  if (serves_all(facts, facts.dims(0)[0])) signatures->add({images, images}, {Sbp::partial()});
  if (facts.attributes<ConvolutionWeightAttributes>().window.groups != 1) return;
  if (serves_all(facts, facts.dims(1)[1])) signatures->add({{}, channels}, {Sbp::split(0)});
  if (serves_all(facts, facts.dims(0)[1])) signatures->add({channels, {}}, {Sbp::split(1)});
}

void sbp_pooling(const CallFacts& facts, Signatures* signatures) { add_planes(facts, signatures); }
void sbp_pooling_backward(const CallFacts& facts, Signatures* signatures) { add_planes(facts, signatures); }

// Inputs: query [batch, heads, rows, width], key, value, bias that broadcasts to the scores, lengths of the keys.
void sbp_attention(const CallFacts& facts, Signatures* signatures) {
  const auto& at = facts.attributes<AttentionAttributes>().attention;
  const Dims& query = facts.dims(0);
  Dims scores = query;
  scores[3] = facts.dims(1)[2];
  for (int32_t axis = 0; axis < 3; ++axis) {
    const bool heads = axis == 1, rows = axis == 2;
    if (!serves_all(facts, query[axis])) continue;
    if (heads && !(is_even(facts, query[1]) && is_even(facts, facts.dims(1)[1]))) continue;
    if (rows && (at.before >= 0 || at.after >= 0)) continue;  // the keys that a row sees depend on the row's number
    const Sbp split = Sbp::split(axis), keys = rows ? Sbp() : split;
    Signature signature = signatures->blank();
    signature.inputs[0] = split;
    signature.inputs[1] = signature.inputs[2] = keys;
    if (facts.has(3)) signature.inputs[3] = aligned(facts.dims(3), scores, axis);
    if (facts.has(4) && axis == 0) signature.inputs[4] = split;
    for (Sbp& output : signature.outputs) output = split;
    signatures->add(std::move(signature));
  }
}

// Inputs: input [batch, heads, rows, width], cosines, sines, positions [batch, rows]. With positions, cosines and sines
// are a table that all ranks read.
void sbp_rotary(const CallFacts& facts, Signatures* signatures) {
  Dims all = facts.dims(0);
  const bool table = facts.has(3);
  all[3] = facts.dims(1)[facts.rank(1) - 1];
  for (int32_t axis = 0; axis < 3; ++axis) {
    const Sbp split = Sbp::split(axis);
    const Sbp positions = table && axis != 1 ? Sbp::split(axis == 0 ? 0 : 1) : Sbp();
    signatures->add({split, table ? Sbp() : aligned(facts.dims(1), all, axis),
                     table ? Sbp() : aligned(facts.dims(2), all, axis), positions},
                    {split});
  }
}

// Inputs: input [steps, batch, width], weights and biases, states [batch, width], lengths [batch]. Results: the states
// of all steps, and the states after the last one.
void sbp_recurrent(const CallFacts& facts, Signatures* signatures) {
  if (!serves_all(facts, facts.dims(0)[1])) return;
  const bool lstm = facts.outputs.size() == 3;
  Signature signature = signatures->blank();
  signature.inputs[0] = Sbp::split(1);
  const auto split = [&](size_t input) {
    if (facts.has(input)) signature.inputs[input] = Sbp::split(0);
  };
  split(5);
  split(lstm ? 8 : 6);
  if (lstm) split(6);
  for (Sbp& output : signature.outputs) output = Sbp::split(0);
  signature.outputs[0] = Sbp::split(1);
  signatures->add(std::move(signature));
}

// Inputs: input, its scale and zero point, other, ... The rows of input can be split if its scale is one number.
void sbp_quantized_matmul(const CallFacts& facts, Signatures* signatures) {
  const bool one = (!facts.has(1) || facts.call.inputs[1]->elements() == 1) &&
                   (!facts.has(2) || facts.call.inputs[2]->elements() == 1);
  if (!one || facts.rank(0) < 2 || facts.rank(3) != 2) return;
  for (int32_t axis = 0; axis < facts.rank(0) - 1; ++axis) signatures->add({Sbp::split(axis)}, {Sbp::split(axis)});
}

void sbp_quantized_convolution(const CallFacts& facts, Signatures* signatures) {
  if (serves_all(facts, facts.dims(0)[0])) signatures->add({Sbp::split(0)}, {Sbp::split(0)});
}

}  // namespace tenon::global
