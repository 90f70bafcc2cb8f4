// ai.onnx.ml: support vector machines. The device computes scores as products. The host computes class probabilities
// with libsvm's method (Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling",
// 2004), since its number of steps depends on data.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/translate/ml.h"

namespace tenon::onnx {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

int64_t length(std::span<const float> values) { return static_cast<int64_t>(values.size()); }

// The kernel function of each row of x and each of `count` support vectors: [rows, count].
Tensor kernels(NodeContext& n, const Tensor& x, int64_t count) {
  const std::span<const float> vectors = n.float_list("support_vectors");
  if (count * x.dim(1) != length(vectors)) {
    n.invalid(fmt::format("{} numbers do not make {} support vectors of {} features", vectors.size(), count, x.dim(1)));
  }
  const std::span<const float> parameters = n.float_list("kernel_params");
  Floats given(parameters.begin(), parameters.end());
  if (!given.empty() && given.size() != 3) n.invalid(fmt::format("it has {} kernel_params, not 3", given.size()));
  given.resize(3, 0.0f);
  const Scalar gamma(given[0]), start(given[1]), degree(given[2]);
  const Tensor list = kept_tensor(n, "support_vectors", {count, x.dim(1)});
  const std::string type = n.text("kernel_type", "LINEAR");
  if (type == "RBF") return exp(sum(square(unsqueeze(x, 1) - list), -1) * Scalar(-given[0]));
  const Tensor product = matmul(x, t(list));
  if (type == "LINEAR") return product;
  if (type == "POLY") return pow(product * gamma + start, degree);
  if (type == "SIGMOID") return tanh(product * gamma + start);
  n.unsupported(fmt::format("its kernel_type is {}; LINEAR, POLY, RBF and SIGMOID are known", type));
}

TensorList svm_regressor(NodeContext& n) {
  const Tensor x = feature_matrix(n);
  const std::span<const float> coefficients = n.float_list("coefficients"), rho = n.float_list("rho");
  const int64_t supports = n.integer("n_supports", 0);
  const int64_t wanted = supports > 0 ? supports : x.dim(1);
  if (supports < 0 || length(coefficients) != wanted || rho.empty()) {
    n.invalid(fmt::format("{} coefficients and {} numbers of rho do not fit {} support vectors", coefficients.size(),
                          rho.size(), supports));
  }
  const Tensor terms = supports > 0 ? kernels(n, x, supports) : x;
  const Tensor y = matmul(terms, kept_tensor(n, "coefficients", {wanted, 1})) + Scalar(rho[0]);
  if (n.flag("one_class", false)) return {where(y > 0, full_like(y, Scalar(1)), full_like(y, Scalar(-1)))};
  return {post_transformed(n, y, n.text("post_transform", "NONE"))};
}

// The support vectors of each class and their weights for each pair of classes.
class Classifier {
 public:
  Classifier(NodeContext& n, int64_t classes)
      : n_(n),
        classes_(classes),
        per_class_(n.integer_list("vectors_per_class")),
        coefficients_(n.float_list("coefficients")),
        rho_(n.float_list("rho")) {
    for (const int64_t each : per_class_) {
      if (each < 0 || each > INT32_MAX) n.invalid(fmt::format("a class cannot have {} support vectors", each));
    }
    count_ = std::accumulate(per_class_.begin(), per_class_.end(), int64_t{0});
    if (rho_.empty()) n.invalid("it has no rho");
    if (count_ == 0) return;
    const int64_t most = std::max<int64_t>(classes - 1, 1);
    if (static_cast<int64_t>(per_class_.size()) != classes || length(coefficients_) != most * count_ ||
        length(rho_) != pairs()) {
      n.invalid(fmt::format("{} coefficients, {} numbers of rho and {} support vectors do not fit {} classes",
                            coefficients_.size(), rho_.size(), count_, classes));
    }
  }

  bool has_vectors() const { return count_ > 0; }
  int64_t pairs() const { return classes_ * (classes_ - 1) / 2; }
  bool all_positive() const {
    return std::all_of(coefficients_.begin(), coefficients_.end(), [](float each) { return each >= 0; });
  }

  // A score per class, linear in the features.
  Tensor linear(const Tensor& x) const {
    if (length(coefficients_) != classes_ * x.dim(1)) {
      n_.invalid(fmt::format("{} coefficients do not fit {} classes of {} features", coefficients_.size(), classes_,
                             x.dim(1)));
    }
    return matmul(x, t(kept_tensor(n_, "coefficients", {classes_, x.dim(1)}))) + Scalar(rho_[0]);
  }

  // Positive where the first class of a pair wins: [rows, pairs].
  Tensor duels(const Tensor& x) const {
    const Tensor terms = kernels(n_, x, count_);
    return matmul(terms, table("duels", count_, pairs(), [&](Floats* weights) { weigh(weights); })) +
           kept_tensor(n_, "rho", {pairs()});
  }

  // The number of duels that each class wins.
  Tensor votes(const Tensor& duels) const {
    const auto mark = [&](bool first) {
      return table(first ? "first" : "second", pairs(), classes_, [&](Floats* wins) {
        for_pairs([&](int64_t pair, int64_t i, int64_t j) {
          (*wins)[static_cast<size_t>(pair * classes_ + (first ? i : j))] = 1;
        });
      });
    };
    const Tensor won = cast(duels > 0, DType::f32);
    return matmul(won, mark(true)) + matmul(Scalar(1) - won, mark(false));
  }

  bool has_probabilities() const { return has_vectors() && !n_.float_list("prob_a").empty(); }

  Tensor probabilities(const Tensor& duels) const {
    const std::span<const float> a = n_.float_list("prob_a"), b = n_.float_list("prob_b");
    if (length(a) != pairs() || length(b) != pairs()) {
      n_.invalid(fmt::format("{} numbers of prob_a and {} of prob_b do not fit {} pairs of classes", a.size(), b.size(),
                             pairs()));
    }
    if (!NodeContext::is_known(duels)) throw UnknownValue(-1);
    const auto scores = cast(contiguous(duels.to(Device::host())), DType::f64).to_host<double>();
    const auto rows = static_cast<size_t>(duels.dim(0)), width = static_cast<size_t>(classes_);
    Doubles result;
    for (size_t row = 0; row < rows; ++row) {
      Doubles pairwise(width * width, 0.0);
      for_pairs([&](int64_t pair, int64_t i, int64_t j) {
        const auto at = static_cast<size_t>(pair);
        const double power = scores[row * static_cast<size_t>(pairs()) + at] * a[at] + b[at];
        const double chance = std::clamp(1 / (1 + std::exp(power)), 1e-7, 1 - 1e-7);
        pairwise[static_cast<size_t>(i) * width + static_cast<size_t>(j)] = chance;
        pairwise[static_cast<size_t>(j) * width + static_cast<size_t>(i)] = 1 - chance;
      });
      const Doubles each = coupled(pairwise, width);
      result.insert(result.end(), each.begin(), each.end());
    }
    const Tensor all = Tensor::copy_from_host(result.data(), {duels.dim(0), classes_}, DType::f64, Device::host());
    return cast(all, DType::f32).to(n_.device());
  }

 private:
  template <class Visit>
  void for_pairs(Visit visit) const {
    int64_t pair = 0;
    for (int64_t i = 0; i < classes_; ++i) {
      for (int64_t j = i + 1; j < classes_; ++j) visit(pair++, i, j);
    }
  }

  // The matrix [rows, columns] that `fill` writes into zeros, kept for later runs.
  Tensor table(std::string_view name, int64_t rows, int64_t columns, const auto& fill) const {
    return n_.kept<Tensor>(name, [&] {
      Floats numbers(static_cast<size_t>(rows * columns), 0.0f);
      fill(&numbers);
      return Tensor::copy_from_host(numbers.data(), {rows, columns}, DType::f32, n_.device());
    });
  }

  // Fills in the weight of each support vector in each duel: [vectors, pairs].
  void weigh(Floats* weights) const {
    for_pairs([&](int64_t pair, int64_t i, int64_t j) {
      for (const auto& [of, row] : {std::pair(i, j - 1), std::pair(j, i)}) {
        const int64_t first = std::accumulate(per_class_.begin(), per_class_.begin() + of, int64_t{0});
        for (int64_t k = first; k < first + per_class_[static_cast<size_t>(of)]; ++k) {
          (*weights)[static_cast<size_t>(k * pairs() + pair)] = coefficients_[static_cast<size_t>(row * count_ + k)];
        }
      }
    });
  }

  // The class probabilities that best fit the pairwise ones, with libsvm's steps and end condition.
  static Doubles coupled(const Doubles& pairwise, size_t count) {
    Doubles q(count * count, 0.0), p(count, 1.0 / static_cast<double>(count)), qp(count);
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j) {
        if (i == j) continue;
        q[i * count + i] += pairwise[j * count + i] * pairwise[j * count + i];
        q[i * count + j] = -pairwise[j * count + i] * pairwise[i * count + j];
      }
    }
    for (size_t step = 0; step < std::max<size_t>(100, count); ++step) {
      double pqp = 0, error = 0;
      for (size_t i = 0; i < count; ++i) {
        qp[i] = std::inner_product(p.begin(), p.end(), q.begin() + static_cast<std::ptrdiff_t>(i * count), 0.0);
        pqp += p[i] * qp[i];
      }
      for (size_t i = 0; i < count; ++i) error = std::max(error, std::fabs(qp[i] - pqp));
      if (error < 0.005 / static_cast<double>(count)) break;
      for (size_t i = 0; i < count; ++i) {
        const double change = (pqp - qp[i]) / q[i * count + i];
        p[i] += change;
        pqp = (pqp + change * (change * q[i * count + i] + 2 * qp[i])) / ((1 + change) * (1 + change));
        for (size_t j = 0; j < count; ++j) {
          qp[j] = (qp[j] + change * q[i * count + j]) / (1 + change);
          p[j] /= 1 + change;
        }
      }
    }
    return p;
  }

  NodeContext& n_;
  int64_t classes_, count_ = 0;
  std::span<const int64_t> per_class_;
  std::span<const float> coefficients_, rho_;
};

ValueList svm_classifier(NodeContext& n) {
  const Tensor x = feature_matrix(n);
  const ClassLabels labels(n);
  const Classifier classifier(n, labels.count());
  const std::string transform = n.text("post_transform", "NONE");
  if (labels.count() < 2) n.unsupported("it has one class label; two or more are known");
  if (!classifier.has_vectors()) {
    const Tensor scores = classifier.linear(x);
    if (labels.count() != 2 && n.float_list("rho").size() == 1) {
      n.unsupported(fmt::format("it has {} classes without support vectors, but one number of rho", labels.count()));
    }
    return {labels.of(n, argmax(scores, 1)), post_transformed(n, scores, transform)};
  }
  const Tensor duels = classifier.duels(x);
  const Tensor winners = argmax(classifier.votes(duels), 1);
  if (classifier.has_probabilities()) {
    const Tensor chances = classifier.probabilities(duels);
    return {labels.of(n, winners), post_transformed(n, chances, transform)};
  }
  // With two classes and no negative coefficient, every row belongs to the second class, as in ONNX Runtime.
  const bool second = labels.count() == 2 && classifier.all_positive();
  const Tensor places = second ? full_like(winners, Scalar(1)) : winners;
  const Tensor scores = labels.count() == 2 ? concat({neg(duels), duels}, 1) : duels;
  return {labels.of(n, places), post_transformed(n, scores, transform)};
}

constexpr Translator kSvmRows[] = {
    {.domain = kMlDomain, .op_type = "SVMClassifier", .since = 1, .translate_values = svm_classifier},
    {.domain = kMlDomain, .op_type = "SVMRegressor", .since = 1, .translate = svm_regressor},
};

}  // namespace

std::span<const Translator> svm_translators() { return kSvmRows; }

}  // namespace tenon::onnx
