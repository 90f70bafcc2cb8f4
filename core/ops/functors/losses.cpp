// Losses, as in PyTorch's torch.nn.functional.
#include <cmath>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/positions.h"
#include "core/ops/operators.h"
#include "core/ops/sizes.h"

namespace tenon::functors {
namespace {

enum class Reduction : uint8_t { none, mean, sum };

Reduction reduction_of(std::string_view op, std::string_view word) {
  if (word == "mean") return Reduction::mean;
  if (word == "sum") return Reduction::sum;
  if (word == "none") return Reduction::none;
  refuse(op, "reduction is '{}'; it may be 'none', 'mean' or 'sum'.", word);
}

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::mean ? tenon::mean(losses) : tenon::sum(losses);
}

// True if the reduction of terms may be computed as a sum divided by their number.
bool sums_first(const Tensor& terms, Reduction how) {
  return how != Reduction::none && !is_open(terms) && is_floating(terms.dtype());
}
// The reduction of terms, one per element of `terms`, whose sum is `sum`.
Tensor from_sum(const Tensor& sum, const Tensor& terms, Reduction how) {
  return how == Reduction::sum ? sum : sum / static_cast<double>(terms.elements());
}

// huber of a difference that has no other user: reuses its memory, unless a gradient or a recorded program keeps it.
Tensor huber_of(Tensor difference, double delta) {
  const bool stays = !is_floating(difference.dtype()) || wants_gradient(difference) ||
                     !current_interpreter().host_value_known(difference);
  return stays ? tenon::huber(difference, delta) : tenon::huber_(difference, delta);
}

void require_pair(std::string_view op, const Tensor& input, const Tensor& target) {
  require_defined(op, "input", input);
  require_defined(op, "target", target);
}

void require_one_shape(std::string_view op, const Tensor& input, const Tensor& target) {
  require_pair(op, input, target);
  const Dims& given = input.dims();  // read first, so that a recording notes its guards in a fixed order
  if (!(given == target.dims())) {
    refuse(op, "input has shape {} and target {}; they must be equal.", given, target.dims());
  }
}

Tensor weighted(const Tensor& losses, const Tensor& weight) { return weight.defined() ? losses * weight : losses; }

// `target` as classes of `log_probabilities` [n, c, d..] or [c].
struct Classes {
  Tensor index;  // ignored classes are 0
  Tensor kept;   // true where a target counts
};

Classes classes_of(std::string_view op, const Tensor& target, int64_t ignore_index) {
  if (!is_integer(target.dtype())) {
    refuse(op, "target must be classes, which are integers, not {}.", dtype_name(target.dtype()));
  }
  const Tensor index = tenon::cast(as_index(op, "target", target), DType::i64);
  const Tensor kept = tenon::ne(index, Scalar(ignore_index));
  return {tenon::where(kept, index, Scalar(0)), kept};
}

// The terms of the targets. log_probabilities has its classes on `axis`; the result has the shape of the target.
Tensor of_classes(const Tensor& log_probabilities, int32_t axis, const Classes& classes) {
  return tenon::squeeze(tenon::gather(log_probabilities, axis, tenon::unsqueeze(classes.index, axis)), axis);
}

int32_t class_axis(std::string_view op, const Tensor& input) {
  require_defined(op, "input", input);
  if (input.rank() == 0) refuse(op, "input of rank 0 has no axis of classes.");
  return input.rank() == 1 ? 0 : 1;
}

void require_targets(std::string_view op, const Tensor& input, int32_t axis, const Tensor& target) {
  Dims wanted = input.dims();
  wanted.erase(axis);
  if (!(target.dims() == wanted)) {
    refuse(op, "target has shape {}; of input {} it must have shape {}.", target.dims(), input.dims(), wanted);
  }
}

// The weighted mean of terms whose sum is `sum`. If all weights are 0 it is NaN, and gives no gradient.
Tensor weighed_mean(const Tensor& sum, const Tensor& weights) {
  const Tensor whole = tenon::sum(weights);
  if (!wants_gradient(sum)) return sum / whole;
  const Tensor none = tenon::eq(whole, 0);
  return tenon::where(none, Scalar(std::nan("")), sum / tenon::where(none, Scalar(1), whole));
}

// The weight of each target.
Tensor weights_of(const Tensor& weight, const Classes& classes, DType dtype) {
  const Tensor kept = tenon::cast(classes.kept, dtype);
  return weight.defined() ? tenon::gather_slices(weight, 0, classes.index) * kept : kept;
}

Tensor likelihood(std::string_view op, const Tensor& log_probabilities, const Tensor& target, const Tensor& weight,
                  int64_t ignore_index, std::string_view word) {
  const Reduction reduction = reduction_of(op, word);
  const int32_t axis = class_axis(op, log_probabilities);
  require_defined(op, "target", target);
  require_targets(op, log_probabilities, axis, target);
  const Classes classes = classes_of(op, target, ignore_index);
  const Tensor weights = weights_of(weight, classes, log_probabilities.dtype());
  const Tensor losses = -of_classes(log_probabilities, axis, classes) * weights;
  return reduction == Reduction::mean ? weighed_mean(tenon::sum(losses), weights) : reduced(losses, reduction);
}

// Smoothed targets: each target spreads a share `smoothing` of 1 over all classes.
Tensor smoothed(const Tensor& logs, int32_t axis, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                Reduction reduction, double smoothing) {
  const Classes classes = classes_of("cross_entropy", target, ignore_index);
  const Tensor weights = weights_of(weight, classes, logs.dtype());
  Tensor spread = logs;
  if (weight.defined()) {
    Dims along = Dims::filled(logs.rank(), 1);
    along[axis] = logs.dim(axis);
    spread = logs * tenon::reshape(weight, along);
  }
  const Tensor kept = tenon::cast(classes.kept, logs.dtype());
  const Tensor plain = -of_classes(logs, axis, classes) * weights;
  const Tensor even = -tenon::sum(spread, axis) * kept;
  const double part = smoothing / static_cast<double>(logs.dim(axis));
  if (reduction == Reduction::mean) {
    return weighed_mean(tenon::sum(plain) * (1 - smoothing) + tenon::sum(even) * part, weights);
  }
  return reduced(plain * (1 - smoothing) + even * part, reduction);
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, std::string_view reduction) {
  require_pair("mse_loss", input, target);
  const Reduction how = reduction_of("mse_loss", reduction);
  const Tensor difference = input - target;
  if (sums_first(difference, how)) return from_sum(tenon::sum_square(difference), difference, how);
  return reduced(tenon::square(difference), how);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, std::string_view reduction) {
  require_pair("l1_loss", input, target);
  const Reduction how = reduction_of("l1_loss", reduction);
  const Tensor difference = input - target;
  if (sums_first(difference, how)) return from_sum(tenon::l1_norm(difference), difference, how);
  return reduced(tenon::abs(difference), how);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, std::string_view reduction, double beta) {
  require_pair("smooth_l1_loss", input, target);
  if (!(beta >= 0)) refuse("smooth_l1_loss", "beta is {}; it must be at least 0.", beta);
  if (beta == 0) return tenon::l1_loss(input, target, reduction);
  const Reduction how = reduction_of("smooth_l1_loss", reduction);
  const Tensor loss = reduced(huber_of(input - target, beta), how);
  return beta == 1 ? loss : loss * (1 / beta);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, std::string_view reduction, double delta) {
  require_pair("huber_loss", input, target);
  if (!(delta > 0)) refuse("huber_loss", "delta is {}; it must be above 0.", delta);
  return reduced(huber_of(input - target, delta), reduction_of("huber_loss", reduction));
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                std::string_view reduction) {
  return likelihood("nll_loss", input, target, weight, ignore_index, reduction);
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                     std::string_view reduction, double label_smoothing) {
  constexpr std::string_view op = "cross_entropy";
  const int32_t axis = class_axis(op, input);
  require_defined(op, "target", target);
  if (!(label_smoothing >= 0 && label_smoothing <= 1)) {
    refuse(op, "label_smoothing is {}; it must be within 0 and 1.", label_smoothing);
  }
  const Tensor logs = tenon::log_softmax(input, axis);
  if (is_floating(target.dtype())) {
    const Dims& given = input.dims();
    if (!(given == target.dims())) {
      refuse(op,
             "target has dtype {} and shape {}; floats are probabilities of the shape of input, {}, and classes are "
             "integers, such as i64.",
             dtype_name(target.dtype()), target.dims(), given);
    }
    Tensor shares = target;
    if (label_smoothing > 0) {
      shares = target * (1 - label_smoothing) + label_smoothing / static_cast<double>(input.dim(axis));
    }
    if (weight.defined()) {
      Dims along = Dims::filled(input.rank(), 1);
      along[axis] = input.dim(axis);
      shares = shares * tenon::reshape(weight, along);
    }
    const Tensor losses = -tenon::sum(logs * shares, axis);
    const Reduction how = reduction_of(op, reduction);
    return how == Reduction::mean ? tenon::sum(losses) / static_cast<double>(std::max<int64_t>(losses.elements(), 1))
                                  : reduced(losses, how);
  }
  if (label_smoothing == 0) return likelihood(op, logs, target, weight, ignore_index, reduction);
  require_targets(op, input, axis, target);
  return smoothed(logs, axis, target, weight, ignore_index, reduction_of(op, reduction), label_smoothing);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                            std::string_view reduction) {
  require_one_shape("binary_cross_entropy", input, target);
  // As in PyTorch: logarithms are at least -100, so that no loss is infinite.
  const Tensor yes = tenon::maximum(tenon::log(input), -100.0);
  const Tensor no = tenon::maximum(tenon::log(1 - input), -100.0);
  return reduced(weighted((target - 1) * no - target * yes, weight), reduction_of("binary_cross_entropy", reduction));
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight,
                                        std::string_view reduction, const Tensor& pos_weight) {
  constexpr std::string_view op = "binary_cross_entropy_with_logits";
  require_one_shape(op, input, target);
  // log(1 - sigmoid(x)) is log(sigmoid(x)) - x.
  const Tensor yes = tenon::logsigmoid(input);
  const Tensor share = pos_weight.defined() ? yes * ((pos_weight - 1) * target + 1) : yes;
  return reduced(weighted((1 - target) * input - share, weight), reduction_of(op, reduction));
}

Tensor kl_div(const Tensor& input, const Tensor& target, std::string_view reduction, bool log_target) {
  require_pair("kl_div", input, target);
  const Tensor losses =
      log_target ? tenon::exp(target) * (target - input) : tenon::xlogy(target, target) - target * input;
  if (reduction == "batchmean") {
    if (losses.rank() == 0) refuse("kl_div", "reduction 'batchmean' needs a batch axis.");
    return tenon::sum(losses) / static_cast<double>(losses.dim(0));
  }
  return reduced(losses, reduction_of("kl_div", reduction));
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        std::string_view reduction) {
  require_pair("poisson_nll_loss", input, target);
  Tensor losses = log_input ? tenon::exp(input) - target * input : input - target * tenon::log(input + eps);
  if (full) {
    const Tensor safe = tenon::maximum(target, 1.0);
    const Tensor stirling = safe * tenon::log(safe) - safe + tenon::log(safe * 6.283185307179586) * 0.5;
    losses = losses + tenon::where(tenon::gt(target, 1.0), stirling, Scalar(0.0));
  }
  return reduced(losses, reduction_of("poisson_nll_loss", reduction));
}

namespace {

// The variances for gaussian_nll_loss: one for each row of `input`, without the last axis, or any shape that broadcasts
// to `input`.
Tensor per_element(const Tensor& input, const Tensor& var) {
  const SymDims all = sizes(input), given = sizes(var);
  if (var.rank() == 0 || same_sizes(all, given)) return var;
  SymDims rows = all;
  if (input.rank() > 0) rows.erase(input.rank() - 1);
  if (input.rank() > 0 && same_sizes(rows, given)) return tenon::unsqueeze(var, -1);
  bool fits = given.rank() <= all.rank();
  for (int32_t axis = 1; fits && axis <= given.rank(); ++axis) {
    const SymDim dim = given[given.rank() - axis];
    fits = dim == 1 || dim == all[all.rank() - axis];
  }
  if (fits) return var;
  refuse("gaussian_nll_loss",
         "var has shape {}; for input of shape {} it must broadcast to this shape, or have the shape "
         "of its rows.",
         given, all);
}

}  // namespace

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full, double eps,
                         std::string_view reduction) {
  require_pair("gaussian_nll_loss", input, target);
  require_defined("gaussian_nll_loss", "var", var);
  const Tensor spread = at_least(per_element(input, var), eps);
  Tensor losses = (tenon::log(spread) + tenon::square(input - target) / spread) * 0.5;
  if (full) losses = losses + 0.9189385332046727;
  return reduced(losses, reduction_of("gaussian_nll_loss", reduction));
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, std::string_view reduction) {
  require_pair("soft_margin_loss", input, target);
  return reduced(tenon::softplus(-target * input), reduction_of("soft_margin_loss", reduction));
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin, std::string_view reduction) {
  require_pair("hinge_embedding_loss", input, target);
  const Tensor apart = tenon::where(tenon::ne(target, 1), tenon::relu(margin - input), Scalar(0.0));
  const Tensor alike = tenon::where(tenon::ne(target, -1), input, Scalar(0.0));
  return reduced(apart + alike, reduction_of("hinge_embedding_loss", reduction));
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           std::string_view reduction) {
  require_defined("margin_ranking_loss", "input1", input1);
  require_defined("margin_ranking_loss", "input2", input2);
  require_defined("margin_ranking_loss", "target", target);
  return reduced(tenon::relu(target * (input2 - input1) + margin), reduction_of("margin_ranking_loss", reduction));
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             std::string_view reduction) {
  require_defined("cosine_embedding_loss", "target", target);
  const int64_t last = input1.rank() - 1;
  const Tensor products = tenon::sum(input1 * input2, last);
  constexpr double kLeast = 1e-12;
  const Tensor lengths = tenon::sqrt((tenon::sum(tenon::square(input1), last) + kLeast) *
                                     (tenon::sum(tenon::square(input2), last) + kLeast));
  const Tensor cosine = products / lengths;
  const Tensor zero = tenon::zeros_like(cosine);
  const Tensor alike = tenon::where(tenon::eq(target, 1), 1 - cosine, zero);
  const Tensor apart = tenon::where(tenon::eq(target, -1), tenon::relu(cosine - margin), zero);
  return reduced(alike + apart, reduction_of("cosine_embedding_loss", reduction));
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, std::string_view reduction) {
  const Tensor near = tenon::pairwise_distance(anchor, positive, p, eps);
  Tensor far = tenon::pairwise_distance(anchor, negative, p, eps);
  if (swap) far = tenon::minimum(far, tenon::pairwise_distance(positive, negative, p, eps));
  return reduced(tenon::relu(near - far + margin), reduction_of("triplet_margin_loss", reduction));
}

}  // namespace tenon::functors
