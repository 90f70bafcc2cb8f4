// Schedule: how the steps of an executable run. Consecutive launches of one device are one instruction (core/vm,
// Segment); every other step runs by itself. Values between launches are kept in the blocks of a memory plan
// (core/plan), results in memory of their own. Internal to core/graph/execute.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/graph/execute/replay.h"
#include "core/graph/execute/roots.h"
#include "core/interpreter/constant.h"
#include "core/interpreter/launch_counts.h"
#include "core/vm/segment.h"

namespace tenon::graph {

// The place of a value during a run.
struct Home {
  enum class Of : uint8_t {
    nothing,   // the value is not read
    tensor,    // an input, or the result of a step that runs by itself; `index` counts these
    constant,  // Slot::constant
    block,     // at `offset` bytes in block `index`
    output,    // the memory of result `index` of the program
  };

  Of of = Of::nothing;
  uint32_t index = 0;
  uint64_t offset = 0;
  friend bool operator==(const Home&, const Home&) = default;
};

// Memory that one segment uses. Its position in the list is the index of the segment's binding.
struct SegmentBinding {
  Home home;  // offset 0
  bool write = false;
  bool whole = false;  // true if nothing has written the value earlier in this run
};

constexpr uint32_t kEveryPiece = UINT32_MAX;

struct Piece {
  uint32_t first = 0, count = 1;               // steps
  std::shared_ptr<const vm::Segment> segment;  // null: one step that runs by itself
  std::vector<SegmentBinding> bindings;
  std::vector<StepExecution> executions;  // the launches of one run of the segment
  std::shared_ptr<LaunchCounts> counts;   // for `executions`
  std::shared_ptr<Replay> replay;         // null: the device has no command lists
  std::vector<uint32_t> drops;            // tensors (Home) that no later piece reads
};

struct Block {
  DeviceState* device = nullptr;
  uint64_t bytes = 0;
  uint32_t piece = kEveryPiece;  // the only piece that uses it
};

struct Schedule {
  explicit Schedule(Roots roots) : roots(std::move(roots)) {}

  Roots roots;
  std::vector<Home> homes;                // indexed by root
  uint32_t tensors = 0;                   // the inputs of the program are first
  std::vector<uint32_t> written_over;     // by result: the input that it may overwrite, or kNoInput
  std::vector<uint32_t> in_place;         // by result: the input in whose memory it is computed, or kNoInput
  std::vector<int32_t> input_alignments;  // in bytes
  std::vector<Block> blocks;
  std::vector<Piece> pieces;
  std::vector<std::shared_ptr<Constant>> constants;  // packed constants
  std::vector<Storage*> constant_storages;           // sorted; the storages that a run reads
  PlannedMemory memory;
};

// Makes the schedule of `program`, whose rungs are chosen and whose values have these roots. Packs constants.
std::shared_ptr<const Schedule> make_schedule(const Executable& program, Roots roots);

}  // namespace tenon::graph
