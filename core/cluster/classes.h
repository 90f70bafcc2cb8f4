// Classes: groups values and calls of a program that are alike, so that one choice serves each group. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/cluster/program.h"
#include "core/cluster/ways.h"

namespace tenon::cluster {

struct Classes {
  std::vector<uint32_t> values;   // class by ValueId
  std::vector<uint32_t> calls;    // class by call
  std::vector<ValueId> value_of;  // by class: its first member
  std::vector<size_t> call_of;
};

// Two calls are in one class if they have the same record and their surroundings are the same up to `depth` calls away;
// likewise for values. `depth` < 0: each is a class of its own. A value and its home (Program) share a class.
Classes classes_of(const Program& program, const std::map<ValueId, NdSbp>& given, int32_t depth);

// Equal for calls with the same record, arguments and results; such calls have the same ways to compute them.
std::vector<uint64_t> records_of(const Program& program);

}  // namespace tenon::cluster
