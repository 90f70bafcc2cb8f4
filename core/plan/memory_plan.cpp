#include "core/plan/memory_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/plan/intervals.h"
#include "primitives/text/format.h"

namespace tenon::plan {
namespace {

constexpr uint64_t kBudget = 1'000'000;  // comparisons of all algorithms together: about ten milliseconds at worst
constexpr int kRounds = 40;              // most rounds of promote()

// The values with their groups merged: each entry gets one location.
struct Merged {
  std::vector<Interval> intervals;
  std::vector<uint32_t> of;  // by value: its interval, or kNone for a value of 0 bytes
};

void join(Interval* location, const Value& value) {
  location->bytes = std::max(location->bytes, value.bytes);
  location->alignment = std::max(location->alignment, value.alignment);
  location->first = std::min(location->first, value.first);
  location->last = std::max(location->last, value.last);
}

Merged merge_groups(std::span<const Value> values) {
  Merged merged;
  std::unordered_map<uint32_t, uint32_t> groups;
  for (const Value& value : values) {
    if (value.bytes == 0) {
      merged.of.push_back(kNone);
      continue;
    }
    const auto fresh = static_cast<uint32_t>(merged.intervals.size());
    const uint32_t at = value.group == kNone ? fresh : groups.try_emplace(value.group, fresh).first->second;
    merged.of.push_back(at);
    if (at == fresh) {
      merged.intervals.push_back({value.bytes, value.alignment, value.first, value.last});
    } else {
      join(&merged.intervals[at], value);
    }
  }
  return merged;
}

// Renumbers the steps so that only those at which an interval begins remain: two overlapping intervals overlap at such
// a step.
void shorten_time(std::vector<Interval>* intervals) {
  std::vector<uint32_t> steps;
  for (const Interval& one : *intervals) steps.push_back(one.first);
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  for (Interval& one : *intervals) {
    one.first = static_cast<uint32_t>(std::lower_bound(steps.begin(), steps.end(), one.first) - steps.begin());
    one.last = static_cast<uint32_t>(std::upper_bound(steps.begin(), steps.end(), one.last) - steps.begin()) - 1;
  }
}

uint64_t largest_sum(std::span<const Interval> intervals) {
  uint32_t steps = 0;
  for (const Interval& one : intervals) steps = std::max(steps, one.last + 1);
  std::vector<uint64_t> changes(steps + 1);  // modulo 2^64
  for (const Interval& one : intervals) {
    changes[one.first] += one.bytes;
    changes[one.last + 1] -= one.bytes;
  }
  uint64_t largest = 0;
  for (uint64_t sum = 0; const uint64_t change : changes) largest = std::max(largest, sum += change);
  return largest;
}

struct Candidate {
  std::vector<uint64_t> offsets;
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  bool better_than(const Candidate& other) const {
    return std::pair(blocks, bytes) < std::pair(other.blocks, other.bytes);
  }
};

std::vector<uint64_t> block_sizes(std::span<const Interval> intervals, std::span<const uint64_t> offsets,
                                  uint64_t stride) {
  std::vector<uint64_t> sizes;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const uint64_t block = offsets[i] / stride;
    if (sizes.size() <= block) sizes.resize(block + 1);
    sizes[block] = std::max(sizes[block], offsets[i] % stride + intervals[i].bytes);
  }
  return sizes;
}

Candidate weigh(std::span<const Interval> intervals, std::vector<uint64_t> offsets, uint64_t stride) {
  const std::vector<uint64_t> sizes = block_sizes(intervals, offsets, stride);
  return {std::move(offsets), sizes.size(), std::accumulate(sizes.begin(), sizes.end(), uint64_t{0})};
}

// The intervals ordered by falling `weight`, then by time.
template <class Weight>
std::vector<uint32_t> heaviest_first(std::span<const Interval> intervals, Weight weight) {
  std::vector<uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const auto wa = weight(intervals[a]), wb = weight(intervals[b]);
    return wa != wb ? wa > wb : intervals[a].first < intervals[b].first;
  });
  return order;
}

// Places repeatedly, each time in the previous order, except that intervals above the lower bound (or in the last
// block) come first. In a model of many equal layers that is one value of each layer.
Candidate promote(std::span<const Interval> intervals, uint64_t stride, uint64_t lower_bound,
                  std::vector<uint32_t> order, Candidate best, Budget* budget) {
  std::vector<uint64_t> offsets = best.offsets;
  for (int round = 0; round < kRounds && !order.empty(); ++round) {
    if (best.blocks == 1 && best.bytes <= lower_bound) break;
    const uint64_t limit = best.blocks == 1 ? lower_bound : (best.blocks - 1) * stride;
    std::stable_partition(order.begin(), order.end(),
                          [&](uint32_t index) { return offsets[index] + intervals[index].bytes > limit; });
    auto placed = place_in_order(intervals, order, stride, budget);
    if (!placed) break;
    offsets = *placed;
    if (Candidate candidate = weigh(intervals, std::move(*placed), stride); candidate.better_than(best)) {
      best = std::move(candidate);
    }
  }
  return best;
}

// Tries orders until a plan reaches the lower bound, then improves the best order.
Candidate plan_in_ranges(std::span<const Interval> intervals, uint64_t stride, uint64_t lower_bound) {
  Candidate best = weigh(intervals, place_in_time(intervals, stride), stride);
  Budget budget{kBudget};
  std::vector<uint32_t> best_order;
  const auto done = [&] { return best.blocks == 1 && best.bytes <= lower_bound; };
  const auto attempt = [&](const std::vector<uint32_t>& order) {
    auto offsets = place_in_order(intervals, order, stride, &budget);
    if (!offsets) return;
    Candidate candidate = weigh(intervals, std::move(*offsets), stride);
    if (!best_order.empty() && !candidate.better_than(best)) return;
    best_order = order;
    if (candidate.better_than(best)) best = std::move(candidate);
  };
  const auto length = [](const Interval& one) { return uint64_t{one.last} - one.first + 1; };
  if (!done()) attempt(heaviest_first(intervals, [](const Interval& one) { return one.bytes; }));
  if (!done())
    attempt(heaviest_first(intervals, [&](const Interval& one) {
      return static_cast<double>(one.bytes) * static_cast<double>(length(one));
    }));
  if (!done()) attempt(heaviest_first(intervals, length));
  return promote(intervals, stride, lower_bound, std::move(best_order), std::move(best), &budget);
}

Status check_values(std::span<const Value> values, const Pool& pool) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& value = values[i];
    if (!std::has_single_bit(value.alignment) || value.last < value.first) {
      return Status(
          Code::invalid_argument,
          fmt::format("Value {} has alignment {} and lives from step {} to step {}; an alignment is a power of "
                      "two, and a life ends no earlier than it begins.",
                      i, value.alignment, value.first, value.last));
    }
    if (value.bytes > pool.largest_allocation || value.bytes > std::numeric_limits<int64_t>::max()) {
      return Status(Code::invalid_argument, fmt::format("Value {} has {} bytes, but a block has {} bytes at most.", i,
                                                        value.bytes, pool.largest_allocation));
    }
  }
  return Status();
}

// The most bytes of a block: a multiple of every alignment, unless one block is smaller than that.
uint64_t stride_of(std::span<const Interval> intervals, const Pool& pool) {
  constexpr uint64_t kEndless = uint64_t{1} << 62;
  uint64_t unit = 1;
  for (const Interval& one : intervals) unit = std::max(unit, one.alignment);
  return std::min(pool.largest_allocation, kEndless) / unit * unit;
}

Result<MemoryPlan> plan_merged(const Merged& merged, const Pool& pool) {
  MemoryPlan plan;
  plan.lower_bound = largest_sum(merged.intervals);
  std::vector<Location> locations(merged.intervals.size());
  if (pool.exclusive) {
    const std::vector<uint32_t> blocks = place_alone(merged.intervals);
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (plan.blocks.size() <= blocks[i]) plan.blocks.resize(blocks[i] + 1);
      plan.blocks[blocks[i]] = std::max(plan.blocks[blocks[i]], merged.intervals[i].bytes);
      locations[i] = {blocks[i], 0};
    }
  } else if (!merged.intervals.empty()) {
    const uint64_t stride = stride_of(merged.intervals, pool);
    for (const Interval& one : merged.intervals) {
      if (one.bytes > stride) {
        return Status(Code::invalid_argument,
                      fmt::format("A value of {} bytes fits no block: these have {} bytes at most, a multiple of the "
                                  "greatest alignment.",
                                  one.bytes, stride));
      }
    }
    const Candidate best = plan_in_ranges(merged.intervals, stride, plan.lower_bound);
    plan.blocks = block_sizes(merged.intervals, best.offsets, stride);
    for (size_t i = 0; i < locations.size(); ++i) {
      locations[i] = {static_cast<uint32_t>(best.offsets[i] / stride), best.offsets[i] % stride};
    }
  }
  for (const uint32_t at : merged.of) plan.locations.push_back(at == kNone ? Location{} : locations[at]);
  return plan;
}

}  // namespace

uint64_t MemoryPlan::peak() const { return std::accumulate(blocks.begin(), blocks.end(), uint64_t{0}); }

Result<MemoryPlan> plan_memory(std::span<const Value> values, const Pool& pool) {
  TENON_RETURN_IF_ERROR(check_values(values, pool));
  Merged merged = merge_groups(values);
  shorten_time(&merged.intervals);
  Result<MemoryPlan> plan = plan_merged(merged, pool);
#ifndef NDEBUG
  if (plan.ok()) TENON_RETURN_IF_ERROR(check_plan(values, pool, plan.value()));
#endif
  return plan;
}

}  // namespace tenon::plan
