#include "core/plan/intervals.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace tenon::plan {
namespace {

uint64_t round_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

// Free ranges of bytes, merged within a block. Each has a multiple of `unit` bytes.
class FreeRanges {
 public:
  FreeRanges(uint64_t stride, uint64_t unit) : stride_(stride), unit_(unit) {}

  uint64_t take(uint64_t bytes) {
    const uint64_t wanted = round_up(bytes, unit_);
    auto found = by_size_.lower_bound({wanted, 0});
    if (found == by_size_.end()) {
      add(blocks_++ * stride_, stride_);
      found = by_size_.lower_bound({wanted, 0});
    }
    const auto [size, offset] = *found;
    remove(offset, size);
    if (size != wanted) add(offset + wanted, size - wanted);
    return offset;
  }

  void give(uint64_t offset, uint64_t bytes) {
    uint64_t size = round_up(bytes, unit_);
    if (const auto after = by_offset_.find(offset + size); after != by_offset_.end() && after->first % stride_ != 0) {
      const uint64_t more = after->second;
      remove(offset + size, more);
      size += more;
    }
    if (auto before = by_offset_.lower_bound(offset); before != by_offset_.begin() && offset % stride_ != 0) {
      --before;
      const auto [start, length] = *before;
      if (start + length == offset) {
        remove(start, length);
        offset = start;
        size += length;
      }
    }
    add(offset, size);
  }

 private:
  void add(uint64_t offset, uint64_t size) {
    by_offset_[offset] = size;
    by_size_.insert({size, offset});
  }
  void remove(uint64_t offset, uint64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  const uint64_t stride_, unit_;
  uint64_t blocks_ = 0;
  std::map<uint64_t, uint64_t> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
};

std::vector<uint32_t> numbers(size_t count) {
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

// The placed intervals, indexed to find those that live at a given time. An interval of 2^l to 2^(l+1) - 1 steps is in
// the level-l list of its first step >> l. So each query reads a few lists per level.
class Timeline {
 public:
  explicit Timeline(std::span<const Interval> intervals) : intervals_(intervals), next_(intervals.size(), -1) {
    uint32_t steps = 1;
    for (const Interval& one : intervals) steps = std::max(steps, one.last + 1);
    const auto levels = static_cast<size_t>(std::bit_width(steps));
    for (size_t level = 0; level < levels; ++level) heads_[level].assign((steps >> level) + 1, -1);
  }

  void add(uint32_t index) {
    const Interval& one = intervals_[index];
    const auto level = static_cast<size_t>(std::bit_width(one.last - one.first + 1)) - 1;
    int32_t& head = heads_[level][one.first >> level];
    next_[index] = head;
    head = static_cast<int32_t>(index);
    ++counts_[level];
  }

  // Calls visit(index) for each interval that overlaps `one` in time. False: the budget ran out.
  template <class Visit>
  bool overlapping(const Interval& one, Budget* budget, Visit visit) const {
    for (size_t level = 0; level < 32; ++level) {
      if (counts_[level] == 0) continue;
      const uint64_t longest = (uint64_t{2} << level) - 1;
      const uint64_t from = one.first < longest ? 0 : (one.first - longest + 1) >> level;
      const uint64_t to = one.last >> level;
      uint64_t looks = to - from + 1;
      for (uint64_t list = from; list <= to; ++list) {
        for (int32_t i = heads_[level][list]; i >= 0; i = next_[static_cast<size_t>(i)]) {
          ++looks;
          const Interval& other = intervals_[static_cast<size_t>(i)];
          if (other.first <= one.last && one.first <= other.last) visit(static_cast<uint32_t>(i));
        }
      }
      if (!budget->spend(looks)) return false;
    }
    return true;
  }

 private:
  std::span<const Interval> intervals_;
  std::vector<int32_t> heads_[32];
  std::vector<int32_t> next_;
  uint32_t counts_[32] = {};
};

struct Range {
  uint64_t begin, end;
};

// The lowest offset at which `one` overlaps none of `taken`, which are sorted by their beginnings.
uint64_t lowest_gap(const Interval& one, std::span<const Range> taken, uint64_t stride) {
  const auto fitting = [&](uint64_t from) {
    const uint64_t at = round_up(from, one.alignment);
    const uint64_t block = at / stride;
    return (at + one.bytes - 1) / stride == block ? at : (block + 1) * stride;
  };
  uint64_t at = 0;
  for (const Range& range : taken) {
    if (at + one.bytes <= range.begin) break;
    if (range.end > at) at = fitting(range.end);
  }
  return at;
}

}  // namespace

std::vector<uint64_t> place_in_time(std::span<const Interval> intervals, uint64_t stride) {
  uint64_t unit = 1;
  for (const Interval& one : intervals) unit = std::max(unit, one.alignment);
  FreeRanges ranges(stride, unit);
  std::vector<uint32_t> begins = numbers(intervals.size());
  std::vector<uint32_t> ends = begins;
  std::stable_sort(begins.begin(), begins.end(), [&](uint32_t a, uint32_t b) {
    if (intervals[a].first != intervals[b].first) return intervals[a].first < intervals[b].first;
    return intervals[a].bytes > intervals[b].bytes;
  });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](uint32_t a, uint32_t b) { return intervals[a].last < intervals[b].last; });
  std::vector<uint64_t> offsets(intervals.size());
  size_t ended = 0;
  for (const uint32_t index : begins) {
    for (; intervals[ends[ended]].last < intervals[index].first; ++ended) {
      ranges.give(offsets[ends[ended]], intervals[ends[ended]].bytes);
    }
    offsets[index] = ranges.take(intervals[index].bytes);
  }
  return offsets;
}

std::optional<std::vector<uint64_t>> place_in_order(std::span<const Interval> intervals,
                                                    std::span<const uint32_t> order, uint64_t stride, Budget* budget) {
  Timeline timeline(intervals);
  std::vector<uint64_t> offsets(intervals.size());
  std::vector<Range> taken;
  for (const uint32_t index : order) {
    taken.clear();
    const bool enough = timeline.overlapping(intervals[index], budget, [&](uint32_t other) {
      taken.push_back({offsets[other], offsets[other] + intervals[other].bytes});
    });
    if (!enough) return std::nullopt;
    std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    offsets[index] = lowest_gap(intervals[index], taken, stride);
    timeline.add(index);
  }
  return offsets;
}

std::vector<uint32_t> place_alone(std::span<const Interval> intervals) {
  std::vector<uint32_t> order = numbers(intervals.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return intervals[a].bytes > intervals[b].bytes; });
  std::vector<std::map<uint32_t, uint32_t>> blocks;  // per block: from a step on, the last step that is taken
  std::vector<uint32_t> result(intervals.size());
  for (const uint32_t index : order) {
    const Interval& one = intervals[index];
    const auto is_free = [&](const std::map<uint32_t, uint32_t>& lives) {
      const auto after = lives.upper_bound(one.last);
      return after == lives.begin() || std::prev(after)->second < one.first;
    };
    auto block = std::find_if(blocks.begin(), blocks.end(), is_free);
    if (block == blocks.end()) block = blocks.emplace(blocks.end());
    (*block)[one.first] = one.last;
    result[index] = static_cast<uint32_t>(block - blocks.begin());
  }
  return result;
}

}  // namespace tenon::plan
