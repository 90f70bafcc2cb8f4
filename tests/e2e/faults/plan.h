// Plan: chooses the next function to fail and how, and counts how often each failed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "primitives/text/format.h"
#include "tests/fakes/faulty/faulty.h"

namespace tenon::testing {

using fakes::Slot;
using fakes::slot_count;
using fakes::Trouble;
using fakes::trouble_count;

struct Strike {
  Slot slot;
  Trouble trouble;
  int64_t nth;
};

class Plan {
 public:
  Plan(std::vector<Slot> slots, uint64_t seed) : slots_(std::move(slots)), random_(seed) { reach_.fill(8); }

  void only(std::string_view slot, std::string_view trouble) {
    slot_ = slot;
    trouble_ = trouble;
  }

  // The pair of function and trouble that occurred least so far.
  Strike next() {
    std::vector<Strike> fewest;
    uint64_t least = ~uint64_t{0};
    for (Slot slot : slots_) {
      for (size_t kind = 0; kind < trouble_count; ++kind) {
        const auto trouble = static_cast<Trouble>(kind);
        const bool wanted = (slot_.empty() || slot_ == loader::slot_name(slot)) &&
                            (trouble_.empty() || trouble_ == fakes::trouble_names[kind]);
        if (!wanted || !fakes::can_strike(slot, trouble)) continue;
        const uint64_t count = tried_[index(slot)][kind];
        if (count > least) continue;
        if (count < least) fewest.clear();
        least = count;
        fewest.push_back({slot, trouble, 0});
      }
    }
    Strike strike = fewest[random_() % fewest.size()];
    strike.nth = static_cast<int64_t>(random_() % static_cast<uint64_t>(reach_[index(strike.slot)]));
    return strike;
  }

  // `calls` is the number of calls of the function since it was armed.
  void done(const Strike& strike, bool struck, int64_t calls) {
    int64_t& reach = reach_[index(strike.slot)];
    reach = std::max<int64_t>(1, struck ? std::max(reach, std::min<int64_t>(calls, 400)) : std::min(reach / 2, calls));
    const size_t kind = static_cast<size_t>(strike.trouble);
    tried_[index(strike.slot)][kind] += struck || ++misses_[index(strike.slot)][kind] % 4 == 0;
    struck_[index(strike.slot)][kind] += struck;
  }

  // Adds the counts that an earlier process wrote to `path`. A process can open at most 65,535 devices, so several
  // processes run one after the other.
  void load(const std::string& path) {
    std::ifstream file(path);
    for (std::string word; file >> word;) {
      for (Slot slot : slots_) {
        if (word != loader::slot_name(slot)) continue;
        file >> calls_before_[index(slot)];
        for (uint64_t& count : struck_[index(slot)]) file >> count;
        tried_[index(slot)] = struck_[index(slot)];
      }
    }
  }

  // Prints the counts of all processes as a table, and writes them to `path` unless it is empty.
  void report(const char* title, const fakes::Faulty& faulty, const std::string& path) const {
    std::string table;
    uint64_t all = 0;
    for (Slot slot : slots_) {
      const uint64_t calls = calls_before_[index(slot)] + faulty.calls(slot);
      all += calls;
      table += fmt::format("{:<20}{:>12}", loader::slot_name(slot), calls);
      for (uint64_t count : struck_[index(slot)]) table += fmt::format("{:>9}", count);
      table += '\n';
    }
    std::printf("%s: %llu calls\n%-20s%12s", title, static_cast<unsigned long long>(all), "function", "calls");
    for (std::string_view name : fakes::trouble_names) std::printf("%9s", name.data());
    std::printf("\n%s", table.c_str());
    if (!path.empty()) std::ofstream(path) << table;
  }

 private:
  static size_t index(Slot slot) { return static_cast<size_t>(slot); }
  using Counts = std::array<std::array<uint64_t, trouble_count>, slot_count>;

  std::vector<Slot> slots_;
  std::mt19937_64 random_;
  std::string_view slot_, trouble_;
  std::array<int64_t, slot_count> reach_;  // the approximate number of calls of each function in one round
  Counts tried_{}, struck_{}, misses_{};
  std::array<uint64_t, slot_count> calls_before_{};
};

}  // namespace tenon::testing
