// ExecutionReport: where each op ran, and why no higher rung of the ladder was used. Counters are always on, per
// thread; an ExecutionScope lists every op of its thread in order, which a model's report prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"

namespace tenon {

// The rungs of the fallback ladder, best first. `compiled` means kernels that the device compiled from text: several
// ops of a program at once, or an op without a primitive on the device.
enum class Rung : uint8_t { native, decomposed, compiled, host };
TENON_API std::string_view rung_name(Rung rung);

// The op name, in an ExecutionScope, of a copy that the program did not request: the device takes the input only dense,
// or an output overlaps it. The op cast makes the copy; its reason says why the cast did not run natively, if it did
// not.
inline constexpr std::string_view kDenseCopy = "copy (dense)";
// The op name of a conversion between row-major elements and a layout of the device's own; its reason gives the layout
// and the direction.
inline constexpr std::string_view kLayoutCopy = "copy (layout)";

struct ExecutionEntry {
  std::string op;              // "softmax", kDenseCopy, kLayoutCopy, or "graph of 12 nodes" that a device ran as one
  std::string device;          // "cuda:0": the device of the call
  std::string implementation;  // for a native rung: "onednn", "simd", "plain"
  Rung rung = Rung::native;
  std::string reason;         // why each higher rung was refused, and which inputs were made contiguous
  uint64_t launches = 0;      // number of runs
  uint64_t bytes_copied = 0;  // for copies between devices, by the host rung, or to make inputs contiguous
  std::string tier = {};      // for a native rung: the accuracy tier of the results: "full", "portable", "relaxed"
};

// All entries since the process started, with their counts over all threads. An entry is one (op, device,
// implementation, rung, reason, tier).
TENON_API std::vector<ExecutionEntry> execution_report();

// While this object lives, each op that its thread runs appends one entry (launches = 1). Views and bookkeeping on the
// host are not listed. Parts of a decomposed op are listed before the op itself.
class TENON_API ExecutionScope {
 public:
  ExecutionScope();
  ~ExecutionScope();
  ExecutionScope(const ExecutionScope&) = delete;
  ExecutionScope& operator=(const ExecutionScope&) = delete;

  std::vector<ExecutionEntry> take();

 private:
  std::vector<ExecutionEntry> entries_;
  ExecutionScope* previous_;
  friend void note_execution(ExecutionEntry entry);
};

// Adds the counts of `entry` to the report. Takes a lock: use it for work that is larger than an op. Internal.
void count_execution(const ExecutionEntry& entry);
// Appends to the calling thread's innermost scope, if there is one. Internal.
void note_execution(ExecutionEntry entry);

}  // namespace tenon
