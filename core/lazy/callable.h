// Callable: a function with what was recorded of it. Internal.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/graph/signature.h"
#include "core/lazy/recording.h"
#include "core/lazy/split.h"

namespace tenon::lazy {

using graph::kMostRecordings;
constexpr size_t kMostExecutables = 256;  // of one recording, for as many sizes; the oldest goes

// Backward, ready for some sizes and for the results whose gradients come.
struct BackwardProgram {
  graph::Executable program;
  std::vector<std::optional<size_t>> outputs;  // as PartOfBackward has them
};

// A recording, ready for some sizes.
struct Programs {
  graph::Executable forward;
  std::mutex mutex;
  std::map<std::vector<bool>, BackwardProgram> backward;  // mutex; by the results whose gradients come
};

// A recording and what was prepared from it.
class Entry {
 public:
  // `exact`: its programs have the bits of eager runs.
  Entry(Recording recording, bool exact) : recording_(std::move(recording)), exact_(exact) {}

  const Recording& recording() const { return recording_; }
  bool serves(const CallShape& shape, const TensorList& inputs) const;
  // Errors: those of graph::prepare.
  std::shared_ptr<Programs> programs(const CallShape& shape);
  // The second half where gradients come for those results of BackwardPart::results for which `comes` says so. Valid
  // as long as `programs` is. Errors: as above.
  const BackwardProgram& backward(Programs* programs, const CallShape& shape, const std::vector<bool>& comes);
  size_t prepared() const;

  std::atomic<bool> checked{false};  // a second recording was the same
  Status differs;                    // not ok: it was not, and whoever comes gets this error; Callable::recording_

 private:
  symbolic::Values values(const graph::Graph& graph, const CallShape& shape) const;

  Recording recording_;
  const bool exact_;
  mutable std::mutex mutex_;
  std::map<std::vector<int64_t>, std::shared_ptr<Programs>> programs_;  // mutex
  std::vector<std::vector<int64_t>> order_;                             // mutex; the oldest first
  std::map<std::vector<bool>, PartOfBackward> backward_;                // mutex; as Programs::backward
};

class Callable {
 public:
  Callable(Function function, CompileOptions options)
      : function_(std::move(function)), options_(std::move(options)), parts_(options_) {}

  TensorList call(const TensorList& inputs);
  CompileStats stats() const;

 private:
  std::shared_ptr<Entry> find(const CallShape& shape, const TensorList& inputs) const;
  // Records the call, or records it again and compares, and runs what was recorded; or runs it in parts, or eagerly.
  TensorList learn(const CallShape& shape, const TensorList& inputs);
  // Records again, for the comparison. The results, if this call went on eagerly.
  std::optional<TensorList> check(const std::shared_ptr<Entry>& entry, const CallShape& shape,
                                  const TensorList& inputs);
  TensorList run_entry(const std::shared_ptr<Entry>& entry, const CallShape& shape, const TensorList& inputs);
  TensorList call_eagerly(const TensorList& inputs);
  void tell(const TensorList& inputs);
  Parts* parts() { return options_.whole ? nullptr : &parts_; }

  Function function_;
  CompileOptions options_;
  Parts parts_;
  std::mutex recording_;  // one thread records at a time
  mutable std::shared_mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;  // mutex
  bool told_ = false;                            // recording_: that there are too many
  std::atomic<size_t> runs_{0}, eager_{0};
};

// Runs the program: reads its arguments, writes what it writes, gives the results.
TensorList run(const std::shared_ptr<Entry>& entry, const CompileOptions& options, const CallShape& shape,
               const TensorList& inputs);

}  // namespace tenon::lazy
