// Rules of ops whose results have the elements of their arguments at the same positions.
#include <cmath>

#include "core/global/rules/spread.h"
#include "core/ops/attributes.h"
#include "core/ops/sbp_rules.h"

namespace tenon::global {

void add_same_axis(const CallFacts& facts, int32_t except, Signatures* signatures) {
  for (int32_t axis = 0; axis < facts.rank(0); ++axis) {
    if (axis == except) continue;
    Signature signature = signatures->blank();
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      if (facts.has(i)) signature.inputs[i] = Sbp::split(axis);
    }
    for (Sbp& output : signature.outputs) output = Sbp::split(axis);
    signatures->add(std::move(signature));
  }
}

void add_partial(Signatures* signatures) {
  Signature signature = signatures->blank();
  for (Sbp& input : signature.inputs) input = Sbp::partial();
  for (Sbp& output : signature.outputs) output = Sbp::partial();
  signatures->add(std::move(signature));
}

void sbp_elementwise(const CallFacts& facts, Signatures* signatures) {
  const Dims& dims = facts.outputs[0].dims;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    Signature signature = signatures->blank();
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      if (facts.has(i)) signature.inputs[i] = aligned(facts.dims(i), dims, axis);
    }
    signature.outputs[0] = Sbp::split(axis);
    signatures->add(std::move(signature));
  }
}

namespace {

// A cast that rounds is not linear.
bool keeps_values(const CallFacts& facts) {
  const DType from = facts.call.inputs[0]->dtype(), to = facts.outputs[0].dtype;
  return from == to || (is_floating(from) && is_floating(to) && dtype_size(to) > dtype_size(from));
}

bool all_given(const CallFacts& facts) {
  for (size_t i = 0; i < facts.call.inputs.size(); ++i) {
    if (!facts.has(i)) return false;
  }
  return true;
}

// One argument is a partial sum, and the others are whole.
void add_partial_in(size_t input, Signatures* signatures) {
  Signature signature = signatures->blank();
  signature.inputs[input] = signature.outputs[0] = Sbp::partial();
  signatures->add(std::move(signature));
}

}  // namespace

// Linear in all arguments together.
void sbp_linear(const CallFacts& facts, Signatures* signatures) {
  sbp_elementwise(facts, signatures);
  if (all_given(facts) && keeps_values(facts)) add_partial(signatures);
}

// A tensor times a number. A product of tensors is linear too, but 0 times infinity would differ in a partial sum.
void sbp_scaled(const CallFacts& facts, Signatures* signatures) {
  sbp_elementwise(facts, signatures);
  for (size_t i : {0, 1}) {
    if (!facts.has(1 - i) && std::isfinite(facts.call.scalars[1 - i].to_double())) add_partial_in(i, signatures);
  }
}

// A tensor divided by a number.
void sbp_divided(const CallFacts& facts, Signatures* signatures) {
  sbp_elementwise(facts, signatures);
  if (facts.has(1) || !is_floating(facts.outputs[0].dtype)) return;
  const double divisor = facts.call.scalars[1].to_double();
  if (std::isfinite(divisor) && divisor != 0) add_partial_in(0, signatures);
}

// where(condition, x, y): linear in x and y together. If one of them is a number, it must be 0.
void sbp_linear_choice(const CallFacts& facts, Signatures* signatures) {
  sbp_elementwise(facts, signatures);
  Signature signature = signatures->blank();
  for (size_t i : {1, 2}) {
    if (facts.has(i)) {
      signature.inputs[i] = Sbp::partial();
    } else if (facts.call.scalars[i].to_double() != 0) {
      return;
    }
  }
  signature.outputs[0] = Sbp::partial();
  signatures->add(std::move(signature));
}

// A copy.
void sbp_same(const CallFacts& facts, Signatures* signatures) {
  add_same_axis(facts, -1, signatures);
  add_partial(signatures);
}

// A tensor that is overwritten with a number.
void sbp_fill(const CallFacts& facts, Signatures* signatures) {
  for (int32_t axis = 0; axis < facts.outputs[0].dims.rank(); ++axis) signatures->add({}, {Sbp::split(axis)});
}

// Scales may be one number, a list along an axis, or one per block of an axis.
void sbp_quantisation(const CallFacts& facts, Signatures* signatures) {
  const auto& at = facts.attributes<QuantisationAttributes>();
  const int32_t scale_rank = facts.rank(1);
  for (int32_t axis = 0; axis < facts.rank(0); ++axis) {
    Sbp scale;
    if (scale_rank > 0) {
      const bool blocks = at.block != 0;
      if (blocks && axis == at.axis) continue;
      if (blocks) scale = Sbp::split(axis);
      if (!blocks && axis == at.axis) scale = Sbp::split(0);
    }
    signatures->add({Sbp::split(axis), scale, scale}, {Sbp::split(axis)});
  }
}

// Inputs 0 and 3 broadcast; each has a scale and a zero point of one number.
void sbp_quantized_binary(const CallFacts& facts, Signatures* signatures) {
  for (size_t i = 0; i < facts.call.inputs.size(); ++i) {
    if (i != 0 && i != 3 && facts.has(i) && facts.call.inputs[i]->elements() != 1) return;
  }
  const Dims& dims = facts.outputs[0].dims;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    signatures->add({aligned(facts.dims(0), dims, axis), {}, {}, aligned(facts.dims(3), dims, axis)},
                    {Sbp::split(axis)});
  }
}

}  // namespace tenon::global
