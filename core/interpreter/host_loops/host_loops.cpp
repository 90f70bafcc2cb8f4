#include "core/interpreter/host_loops/host_loops.h"

#include <algorithm>
#include <array>

#include "core/interpreter/host_loops/parts.h"
#include "core/ops/op_rows.h"

namespace tenon {
namespace {

struct Row {
  OpId op;
  HostLoop loop;
};
constexpr Row kRows[] = {
#define HOST_LOOP(op) {OpId::op, host_loops::run_##op},
#include "core/interpreter/host_loops/loops.def"
#undef HOST_LOOP
};

constexpr size_t kIds = 1 + static_cast<size_t>(std::max_element(std::begin(kRows), std::end(kRows), [](Row a, Row b) {
                                                  return a.op < b.op;
                                                })->op);
constexpr auto kLoops = [] {
  std::array<HostLoop, kIds> loops{};
  for (const Row& row : kRows) loops[static_cast<size_t>(row.op)] = row.loop;
  return loops;
}();

}  // namespace

HostLoop host_loop(const OpInfo& op) { return op.id < kIds ? kLoops[op.id] : nullptr; }

}  // namespace tenon
