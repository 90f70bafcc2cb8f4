#include "core/graph/execute/check_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "core/graph/execute/liveness.h"
#include "core/graph/execute/regions.h"
#include "core/graph/execute/schedule.h"
#include "core/graph/execute/steps.h"
#include "core/graph/fusion.h"
#include "core/ops/ops.h"
#include "core/primitive/compiled_module.h"
#include "loader/log/log.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

constexpr double kPerOp = 32;  // roundings by which an op may change its result: exp doubles errors of its argument
// fraction of integers computed from floats that may differ, because a rounding can cross a step
constexpr double kMostFlipped = 0.01;

struct Checks {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, KernelCheck> all;
};

Checks& checks() {
  static auto* made = new Checks;
  return *made;
}

// A program with the launch of `step` only.
Executable alone(const Executable& program, const Step& step) {
  Executable made;
  made.labels = program.labels;
  made.values.resize(1);
  Step copy = step;
  for (uint32_t& input : copy.inputs) {
    Slot slot = program.values[input];
    slot.constant = Tensor();
    slot.meta.strides = contiguous_strides(slot.meta.dims);
    made.inputs.push_back(input = add_value(&made, std::move(slot)));
  }
  for (uint32_t& output : copy.outputs) {
    Slot slot = program.values[output];
    slot.meta.strides = contiguous_strides(slot.meta.dims);
    made.outputs.push_back(output = add_value(&made, std::move(slot)));
  }
  made.over.resize(made.outputs.size(), kNoInput);
  made.steps.push_back(std::move(copy));
  find_last_uses(&made);
  made.schedule = make_schedule(made, Roots(made));
  return made;
}

// The most numbers that one result of `region` is computed from, and the number of computing steps.
struct Extent {
  double longest = 1;
  double ops = 0;
  bool floats = false;
};

Extent extent_of(const Executable& region) {
  Extent extent;
  for (const Step& step : region.steps) {
    for (const uint32_t output : step.outputs) {
      extent.floats = extent.floats || is_floating(region.values[output].meta.dtype);
    }
    if (is_view(step) || step.inputs.empty() || step.outputs.empty()) continue;
    ++extent.ops;
    const Dims &from = region.values[step.inputs[0]].meta.dims, &to = region.values[step.outputs[0]].meta.dims;
    const auto all = static_cast<double>(element_count(from));
    const auto left = static_cast<double>(std::max<int64_t>(element_count(to), 1));
    if (all > left) {
      extent.longest = std::max(extent.longest, all / left);
    } else if (step.op->form != OpForm::elementwise) {
      for (const int64_t dim : from) extent.longest = std::max(extent.longest, static_cast<double>(dim));
    }
  }
  return extent;
}

double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::ldexp(1.0, -52);
    case DType::f16: return std::ldexp(1.0, -10);
    case DType::bf16: return std::ldexp(1.0, -7);
    default: return std::ldexp(1.0, -23);
  }
}

struct Difference {
  double most = 0;  // infinite if only one of two numbers is finite
  double bound = 0;
  double ratio() const {
    return most <= bound ? (bound == 0 ? 0 : most / bound) : bound == 0 ? HUGE_VAL : most / bound;
  }
};

Difference difference_of(const Tensor& kernel, const Tensor& ops, const Extent& extent) {
  const std::vector<double> a = cast(kernel, DType::f64).to_host<double>(), b = cast(ops, DType::f64).to_host<double>();
  const bool floating = is_floating(kernel.dtype());
  Difference found;
  double greatest = 0;
  size_t flipped = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) {
      if (std::isfinite(b[i])) greatest = std::max(greatest, std::fabs(b[i]));
      continue;
    }
    ++flipped;
    greatest = std::max(greatest, std::isfinite(b[i]) ? std::fabs(b[i]) : 0);
    const double distance = std::fabs(a[i] - b[i]);
    found.most = std::max(found.most, std::isnan(distance) ? HUGE_VAL : distance);
  }
  if (floating) {
    found.bound = rounding_of(kernel.dtype()) * (kPerOp * extent.ops + extent.longest) * greatest;
  } else if (extent.floats && static_cast<double>(flipped) <= 1 + kMostFlipped * static_cast<double>(b.size())) {
    found.bound = found.most;
  }
  return found;
}

void note(const Step& step, const std::string& label, const Difference& found) {
  KernelCheck row{step.fused->module->name, step.fused->ops, label, 1, found.ratio(), found.most, found.bound};
  bool is_news = false;
  {
    const std::lock_guard lock(checks().mutex);
    KernelCheck& known = checks().all[{row.kernel, row.ops}];
    is_news = row.worst > 1 && known.worst <= 1;
    row.launches = known.launches + 1;
    if (known.launches == 0 || row.worst > known.worst) known = row;
    known.launches = row.launches;
  }
  if (!is_news) return;
  loader::log(
      loader::LogTopic::compile, loader::LogLevel::warning,
      fmt::format("TENON_CHECK: {} ({}), {}: its results differ by {} from those of its ops, where {} is allowed.",
                  row.kernel, row.ops, label, found.most, found.bound));
}

}  // namespace

std::vector<KernelCheck> kernel_checks() {
  std::vector<KernelCheck> rows;
  {
    const std::lock_guard lock(checks().mutex);
    for (const auto& [name, row] : checks().all) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.worst > b.worst; });
  return rows;
}

bool checks_kernels() { return loader::settings().check == loader::Check::compile; }

TensorList run_checked(const Executable& program, const Step& step, std::span<const Tensor* const> inputs) {
  TensorList given;
  for (const Tensor* input : inputs) given.push_back(contiguous(*input));
  const TensorList results = run_by_schedule(alone(program, step), given);
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : given) pointers.push_back(&input);
  const TensorList expected = run_regions(*step.regions, pointers);
  const Extent extent = extent_of(step.regions->late->prepared().program);
  Difference worst;
  for (size_t i = 0; i < results.size(); ++i) {
    const Difference found = difference_of(results[i], expected[i], extent);
    if (found.ratio() >= worst.ratio()) worst = found;
  }
  note(step, (*program.labels)[step.label], worst);
  return results;
}

}  // namespace tenon::graph
