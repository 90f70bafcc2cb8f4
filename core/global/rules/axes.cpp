// Rules of ops that work along one or several axes and treat each line of elements independently.
#include "core/global/rules/spread.h"
#include "core/ops/attributes.h"
#include "core/ops/sbp_rules.h"

namespace tenon::global {
namespace {

// The position of `axis` after the axes of the mask are removed, or reduced to one element.
int32_t left_of(uint32_t reduced, bool keeps, int32_t axis) {
  if (keeps) return axis;
  int32_t before = 0;
  for (int32_t each = 0; each < axis; ++each) before += (reduced >> each & 1) != 0 ? 1 : 0;
  return axis - before;
}

void add_kept_axes(const CallFacts& facts, uint32_t reduced, bool keeps, Signatures* signatures) {
  add_moved(facts, signatures, [&](int32_t axis) -> std::optional<int32_t> {
    if ((reduced >> axis & 1) != 0) return std::nullopt;
    return left_of(reduced, keeps, axis);
  });
}

void add_summed_axes(const CallFacts& facts, Signatures* signatures) {
  const auto& at = facts.attributes<ReduceAttributes>();
  for (int32_t axis = 0; axis < facts.rank(0); ++axis) {
    if ((at.axes >> axis & 1) != 0) signatures->add({Sbp::split(axis)}, {Sbp::partial()});
  }
}

}  // namespace

void sbp_reduce(const CallFacts& facts, Signatures* signatures) {
  const auto& at = facts.attributes<ReduceAttributes>();
  add_kept_axes(facts, at.axes, at.keep_dims != 0, signatures);
}

// A sum of a function of each element.
void sbp_sum_of_parts(const CallFacts& facts, Signatures* signatures) {
  sbp_reduce(facts, signatures);
  add_summed_axes(facts, signatures);
}

void sbp_sum(const CallFacts& facts, Signatures* signatures) {
  sbp_sum_of_parts(facts, signatures);
  add_partial(signatures);
}

void sbp_arg_reduce(const CallFacts& facts, Signatures* signatures) {
  const auto& at = facts.attributes<ArgReduceAttributes>();
  add_kept_axes(facts, 1u << at.axis, at.keep_dims != 0, signatures);
}

void sbp_scan(const CallFacts& facts, Signatures* signatures) {
  add_same_axis(facts, facts.attributes<ScanAttributes>().scan.axis, signatures);
}

void sbp_sort(const CallFacts& facts, Signatures* signatures) {
  add_same_axis(facts, facts.attributes<SortAttributes>().sort.axis, signatures);
}

void sbp_top_k(const CallFacts& facts, Signatures* signatures) {
  add_same_axis(facts, facts.attributes<TopKAttributes>().top_k.axis, signatures);
}

void sbp_softmax(const CallFacts& facts, Signatures* signatures) {
  add_same_axis(facts, facts.attributes<SoftmaxAttributes>().axis, signatures);
}

// Along one axis; the last axis holds the pairs of complex numbers.
void sbp_fourier(const CallFacts& facts, Signatures* signatures) {
  const auto& transform = facts.attributes<FourierAttributes>().transform;
  const int32_t axes = facts.rank(0) - (transform.form == EP_FFT_REAL_TO_HALF ? 0 : 1);
  for (int32_t axis = 0; axis < axes; ++axis) {
    if (axis != transform.axis) signatures->add({Sbp::split(axis)}, {Sbp::split(axis)});
  }
  add_partial(signatures);
}

void sbp_one_hot(const CallFacts& facts, Signatures* signatures) {
  const int32_t made = facts.attributes<DepthAttributes>().axis;
  add_moved(facts, signatures, [&](int32_t axis) { return std::optional(axis < made ? axis : axis + 1); });
}

// Matrices in the last two axes.
void sbp_linear_algebra(const CallFacts& facts, Signatures* signatures) {
  for (int32_t axis = 0; axis < facts.rank(0) - 2; ++axis) {
    Signature signature = signatures->blank();
    for (Sbp& input : signature.inputs) input = Sbp::split(axis);
    for (Sbp& output : signature.outputs) output = Sbp::split(axis);
    signatures->add(std::move(signature));
  }
}

// Over the axes from the attribute's axis on. The statistics have one element along these.
void sbp_norm(const CallFacts& facts, Signatures* signatures) {
  const int32_t first = facts.attributes<AxisAttributes>().axis;
  add_moved(facts, signatures,
            [&](int32_t axis) { return axis < first ? std::optional(axis) : std::optional<int32_t>(); });
}

// Inputs: the gradient, input, mean, 1/std, weight. The gradients of weight and bias are sums over all rows.
void sbp_layer_norm_backward(const CallFacts& facts, Signatures* signatures) {
  const int32_t first = facts.attributes<AxisAttributes>().axis;
  for (int32_t axis = 0; axis < first; ++axis) {
    const Sbp split = Sbp::split(axis);
    signatures->add({split, split, split, split}, {split, Sbp::partial(), Sbp::partial()});
  }
}

// Inputs: input, and lists along the axis of the channels.
void sbp_batch_norm(const CallFacts& facts, Signatures* signatures) {
  const int32_t channels = facts.attributes<AxisAttributes>().axis;
  for (int32_t axis = 0; axis < facts.rank(0); ++axis) {
    Signature signature = signatures->blank();
    for (size_t i = 1; i < signature.inputs.size(); ++i) {
      if (axis == channels && facts.has(i)) signature.inputs[i] = Sbp::split(0);
    }
    signature.inputs[0] = signature.outputs[0] = Sbp::split(axis);
    signatures->add(std::move(signature));
  }
}

// Forward and backward treat channels independently. Tensors of rank 1 are lists along the channels.
void sbp_batch_norm_training(const CallFacts& facts, Signatures* signatures) {
  const int32_t channels = facts.attributes<AxisAttributes>().axis;
  Signature signature = signatures->blank();
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (facts.has(i)) signature.inputs[i] = Sbp::split(facts.rank(i) == 1 ? 0 : channels);
  }
  signature.outputs = {Sbp::split(channels), Sbp::split(0), Sbp::split(0)};
  signatures->add(std::move(signature));
}

void sbp_group_norm(const CallFacts&, Signatures* signatures) { signatures->add({Sbp::split(0)}, {Sbp::split(0)}); }

}  // namespace tenon::global
