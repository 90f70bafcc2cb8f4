// The checker of memory plans. It does not depend on how a plan was made.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/plan/memory_plan.h"
#include "primitives/text/format.h"

namespace tenon::plan {
namespace {

Status wrong(std::string sentence) {
  return Status(Code::internal, "The memory plan is wrong: " + std::move(sentence));
}

Status check_location(size_t i, const Value& value, const Pool& pool, const MemoryPlan& plan) {
  const Location& location = plan.locations[i];
  if (value.bytes == 0) return Status();
  if (location.block >= plan.blocks.size()) {
    return wrong(fmt::format("value {} is in block {} of {}.", i, location.block, plan.blocks.size()));
  }
  const uint64_t size = plan.blocks[location.block];
  if (size > pool.largest_allocation || value.bytes > size || location.offset > size - value.bytes) {
    return wrong(fmt::format("value {} lies at {} of {} and has {} bytes; a block has {} at most.", i, location.offset,
                             size, value.bytes, pool.largest_allocation));
  }
  if (location.offset % value.alignment != 0) {
    return wrong(
        fmt::format("value {} lies at {}, which is not a multiple of {}.", i, location.offset, value.alignment));
  }
  return Status();
}

Status check_groups(std::span<const Value> values, const MemoryPlan& plan) {
  std::map<uint32_t, size_t> firsts;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].group == kNone || values[i].bytes == 0) continue;
    const size_t first = firsts.try_emplace(values[i].group, i).first->second;
    const Location &a = plan.locations[first], &b = plan.locations[i];
    if (a.block == b.block && a.offset == b.offset) continue;
    return wrong(fmt::format("values {} and {} of group {} lie at {} of block {} and at {} of block {}.", first, i,
                             values[i].group, a.offset, a.block, b.offset, b.block));
  }
  return Status();
}

// The bytes of the values that live at one step, by block and offset. Values of one group count once.
class Living {
 public:
  Living(std::span<const Value> values, const Pool& pool, const MemoryPlan& plan)
      : values_(values), pool_(pool), plan_(plan) {}

  Status begin(uint32_t index) {
    const auto key = key_of(index);
    const auto at = living_.try_emplace(key).first;
    for (const uint32_t other : at->second) {
      if (!share(index, other)) return overlap(index, other);
    }
    at->second.push_back(index);
    if (at != living_.begin()) TENON_RETURN_IF_ERROR(compare(std::prev(at)->second, at->second));
    if (std::next(at) != living_.end()) TENON_RETURN_IF_ERROR(compare(at->second, std::next(at)->second));
    return Status();
  }

  void end(uint32_t index) {
    const auto at = living_.find(key_of(index));
    std::erase(at->second, index);
    if (at->second.empty()) living_.erase(at);
  }

 private:
  using Key = std::pair<uint32_t, uint64_t>;

  Key key_of(uint32_t index) const { return {plan_.locations[index].block, plan_.locations[index].offset}; }

  bool share(uint32_t a, uint32_t b) const { return values_[a].group != kNone && values_[a].group == values_[b].group; }

  Status compare(std::span<const uint32_t> lower, std::span<const uint32_t> upper) const {
    for (const uint32_t a : lower) {
      for (const uint32_t b : upper) {
        if (plan_.locations[a].block != plan_.locations[b].block) continue;
        if (pool_.exclusive || plan_.locations[a].offset + values_[a].bytes > plan_.locations[b].offset)
          return overlap(a, b);
      }
    }
    return Status();
  }

  Status overlap(uint32_t a, uint32_t b) const {
    return wrong(fmt::format("values {} ({} bytes at {}) and {} ({} bytes at {}) share bytes of block {} at step {}.",
                             std::min(a, b), values_[std::min(a, b)].bytes, plan_.locations[std::min(a, b)].offset,
                             std::max(a, b), values_[std::max(a, b)].bytes, plan_.locations[std::max(a, b)].offset,
                             plan_.locations[a].block, std::max(values_[a].first, values_[b].first)));
  }

  std::span<const Value> values_;
  const Pool& pool_;
  const MemoryPlan& plan_;
  std::map<Key, std::vector<uint32_t>> living_;
};

// The values that have bytes, each with the lifetime of its group, which keeps the location from its first step to its
// last.
std::vector<Value> with_whole_lives(std::span<const Value> values) {
  std::vector<Value> stretched(values.begin(), values.end());
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> lives;
  for (const Value& value : values) {
    if (value.group == kNone || value.bytes == 0) continue;
    auto [at, fresh] = lives.try_emplace(value.group, value.first, value.last);
    at->second = {std::min(at->second.first, value.first), std::max(at->second.second, value.last)};
  }
  for (Value& value : stretched) {
    if (value.group == kNone || value.bytes == 0) continue;
    std::tie(value.first, value.last) = lives[value.group];
  }
  return stretched;
}

}  // namespace

Status check_plan(std::span<const Value> given, const Pool& pool, const MemoryPlan& plan) {
  if (plan.locations.size() != given.size()) {
    return wrong(
        fmt::format("it has locations for {} values, but the program has {}.", plan.locations.size(), given.size()));
  }
  for (size_t i = 0; i < given.size(); ++i) TENON_RETURN_IF_ERROR(check_location(i, given[i], pool, plan));
  TENON_RETURN_IF_ERROR(check_groups(given, plan));
  const std::vector<Value> values = with_whole_lives(given);
  std::vector<uint32_t> begins;
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (values[i].bytes != 0) begins.push_back(i);
  }
  std::vector<uint32_t> ends = begins;
  std::stable_sort(begins.begin(), begins.end(),
                   [&](uint32_t a, uint32_t b) { return values[a].first < values[b].first; });
  std::stable_sort(ends.begin(), ends.end(), [&](uint32_t a, uint32_t b) { return values[a].last < values[b].last; });
  Living living(values, pool, plan);
  size_t ended = 0;
  for (const uint32_t index : begins) {
    for (; values[ends[ended]].last < values[index].first; ++ended) living.end(ends[ended]);
    TENON_RETURN_IF_ERROR(living.begin(index));
  }
  return Status();
}

}  // namespace tenon::plan
