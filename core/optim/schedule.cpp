// Learning rate schedules. The curves come from torch.optim.lr_scheduler, in closed form.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/optim/optim.h"
#include "primitives/text/format.h"

namespace tenon::optim {
namespace {

void require_steps(std::string_view name, int64_t steps) {
  if (steps < 1)
    throw Error(Subject{name}, Code::invalid_argument, fmt::format("it needs at least 1 step, not {}.", steps));
}

// Half a cosine from `high` at part 0 to `low` at part 1.
double half_cosine(double high, double low, double part) {
  return low + (high - low) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

}  // namespace

Curve constant_factor(double factor, int64_t steps) {
  return [=](int64_t n, double base) { return n < steps ? base * factor : base; };
}

Curve linear_factor(double first, double last, int64_t steps) {
  require_steps("linear_factor", steps);
  return [=](int64_t n, double base) {
    const double part = static_cast<double>(std::min(n, steps)) / static_cast<double>(steps);
    return base * (first + (last - first) * part);
  };
}

Curve exponential(double gamma) {
  return [=](int64_t n, double base) { return base * std::pow(gamma, static_cast<double>(n)); };
}

Curve step_decay(int64_t every, double gamma) {
  require_steps("step_decay", every);
  return [=](int64_t n, double base) { return base * std::pow(gamma, static_cast<double>(n / every)); };
}

Curve multi_step(std::vector<int64_t> at, double gamma) {
  std::sort(at.begin(), at.end());
  return [at = std::move(at), gamma](int64_t n, double base) {
    const auto passed = std::upper_bound(at.begin(), at.end(), n) - at.begin();
    return base * std::pow(gamma, static_cast<double>(passed));
  };
}

Curve polynomial(int64_t steps, double power) {
  require_steps("polynomial", steps);
  return [=](int64_t n, double base) {
    return base * std::pow(1 - static_cast<double>(std::min(n, steps)) / static_cast<double>(steps), power);
  };
}

Curve cosine(int64_t steps, double least) {
  require_steps("cosine", steps);
  return [=](int64_t n, double base) {
    return half_cosine(base, least, static_cast<double>(n) / static_cast<double>(steps));
  };
}

Curve cosine_restarts(int64_t first, int64_t factor, double least) {
  require_steps("cosine_restarts", first);
  require_steps("cosine_restarts", factor);
  return [=](int64_t n, double base) {
    int64_t length = first;
    int64_t at = n;
    if (factor == 1) at %= first;
    while (at >= length) {
      at -= length;
      length *= factor;
    }
    return half_cosine(base, least, static_cast<double>(at) / static_cast<double>(length));
  };
}

Curve one_cycle(double most, int64_t steps, double rise, double divisor, double last_divisor) {
  require_steps("one_cycle", steps - 1);
  const double first = most / divisor, last = first / last_divisor;
  const double top = rise * static_cast<double>(steps) - 1;
  const double end = static_cast<double>(steps) - 1;
  return [=](int64_t n, double) {
    const double at = std::min(static_cast<double>(n), end);
    return at <= top ? half_cosine(first, most, at / top) : half_cosine(most, last, (at - top) / (end - top));
  };
}

Curve sequence(std::vector<Curve> curves, std::vector<int64_t> at) {
  if (curves.empty() || at.size() + 1 != curves.size() || !std::is_sorted(at.begin(), at.end())) {
    throw Error(
        Subject{"sequence"}, Code::invalid_argument,
        fmt::format("{} curves are given with {} steps at which the next one begins; there must be one step fewer "
                    "than curves, in ascending order.",
                    curves.size(), at.size()));
  }
  return [curves = std::move(curves), at = std::move(at)](int64_t n, double base) {
    const auto which = static_cast<size_t>(std::upper_bound(at.begin(), at.end(), n) - at.begin());
    return curves[which](which == 0 ? n : n - at[which - 1], base);
  };
}

Schedule::Schedule(Optimizer& optimizer, Curve curve) : optimizer_(optimizer), curve_(std::move(curve)) {
  for (size_t group = 0; group < optimizer.group_count(); ++group) bases_.push_back(optimizer.lr(group));
  go_to(0);
}

void Schedule::go_to(int64_t steps) {
  steps_ = steps;
  for (size_t group = 0; group < bases_.size(); ++group) optimizer_.set_lr(group, curve_(steps, bases_[group]));
}

ReduceOnPlateau::ReduceOnPlateau(Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(optimizer), options_(options) {
  if (!(options.factor > 0 && options.factor < 1)) {
    throw Error(Code::invalid_argument,
                fmt::format("ReduceOnPlateau: the factor must be between 0 and 1, not {}.", options.factor));
  }
}

void ReduceOnPlateau::step(double measure) {
  const double part = options_.greater_is_better ? 1 + options_.threshold : 1 - options_.threshold;
  const bool better = !best_ || (options_.greater_is_better ? measure > *best_ * part : measure < *best_ * part);
  if (better) best_ = measure;
  bad_steps_ = better ? 0 : bad_steps_ + 1;
  if (cooling_ > 0) {
    --cooling_;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= options_.patience) return;
  for (size_t group = 0; group < optimizer_.group_count(); ++group) {
    const double before = optimizer_.lr(group), after = std::max(before * options_.factor, options_.least);
    if (before - after > options_.least_change) optimizer_.set_lr(group, after);
  }
  cooling_ = options_.cooldown;
  bad_steps_ = 0;
}

}  // namespace tenon::optim
