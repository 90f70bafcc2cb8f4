// ExecutionReport: where each op ran, and why on no higher rung of the ladder. Counters are always on, per thread; an
// ExecutionScope lists every op of its thread in order, which is what a model's report prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"

namespace tenon {

// The rungs of the fallback ladder, best first. `compiled` is what kernels compute that the device has compiled from
// text: several ops of a program at once, or an op that the device has no primitive for.
enum class Rung : uint8_t { native, decomposed, compiled, host };
TENON_API std::string_view rung_name(Rung rung);

// The op name in an ExecutionScope of a copy that no program asked for: of an input that the device takes dense only,
// or that an output overlaps. The op cast makes it; its reason says why the cast did not run natively, if it did not.
inline constexpr std::string_view kDenseCopy = "copy (dense)";
// The op name of a conversion between row-major elements and a layout of the device's own; its reason names the layout,
// and says to or from.
inline constexpr std::string_view kLayoutCopy = "copy (layout)";

struct ExecutionEntry {
  std::string op;              // "softmax", kDenseCopy, kLayoutCopy, or "graph of 12 nodes" that a device ran as one
  std::string device;          // "cuda:0": where the op was asked for
  std::string implementation;  // of a native rung: "onednn", "simd", "plain"
  Rung rung = Rung::native;
  std::string reason;         // why each higher rung was refused, and which inputs were copied to be contiguous
  uint64_t launches = 0;      // times it ran
  uint64_t bytes_copied = 0;  // between devices, by the host rung, or to make inputs contiguous
  std::string tier = {};      // of a native rung: the tier of accuracy of the results: "full", "relaxed", "fast"
};

// Every (op, device, implementation, rung, reason, tier) since the process started, with its counts, over all threads.
TENON_API std::vector<ExecutionEntry> execution_report();

// While it lives, each op its thread runs appends one entry (launches = 1). Views and host-side bookkeeping do not
// show. Parts of a decomposed op are listed before the op itself.
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

// Adds the counts of `entry` to those of its kind. Takes a lock: for work that is larger than an op. Internal.
void count_execution(const ExecutionEntry& entry);
// Appends to the calling thread's innermost scope, if there is one. Internal.
void note_execution(ExecutionEntry entry);

}  // namespace tenon
