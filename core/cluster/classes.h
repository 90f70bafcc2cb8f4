// Classes: which values and which calls of a program are alike, so that one choice serves them all. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/cluster/program.h"
#include "core/cluster/ways.h"

namespace tenon::cluster {

struct Classes {
  std::vector<uint32_t> values;   // by ValueId, the class
  std::vector<uint32_t> calls;    // by call, the class
  std::vector<ValueId> value_of;  // by class, its first member
  std::vector<size_t> call_of;
};

// Classes of calls that have the same record, and whose surroundings look the same up to `depth` calls away; of values
// in the same way. `depth` < 0: each is a class of its own. A value and its home (Program) are one class.
Classes classes_of(const Program& program, const std::map<ValueId, NdSbp>& given, int32_t depth);

// Equal for calls with the same record, arguments and results: they have the same ways.
std::vector<uint64_t> records_of(const Program& program);

}  // namespace tenon::cluster
