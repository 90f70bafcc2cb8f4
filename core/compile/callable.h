// Callable: a function and its recordings. Internal.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <vector>

#include "core/compile/recorded_function.h"
#include "core/graph/backward_program.h"
#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/recent.h"
#include "core/graph/signature.h"

namespace tenon::compilation {

using graph::kMostExecutables;
using graph::kMostRecordings;

// The options for making programs from recordings.
struct Making {
  explicit Making(const CompileOptions& options);

  graph::PassOptions passes;
  graph::PrepareOptions prepare;
};

// Backward, prepared for some sizes and for the set of results that have incoming gradients.
struct BackwardProgram {
  graph::Executable program;
  std::vector<std::optional<size_t>> outputs;  // as in PartOfBackward
};

// A recording, prepared for some sizes.
struct Programs {
  graph::Executable forward;
  std::mutex mutex;
  std::map<std::vector<bool>, std::shared_ptr<const BackwardProgram>>
      backward;  // mutex; by the results that have incoming gradients
};

// The dims of one argument in the recording, and the position in CallShape::sizes of its dims in a call.
struct ArgumentDims {
  SymDims dims;
  size_t begin = 0;
};

// Backward of one recording. Results hold it, so it must hold no captured tensor: a captured tensor that is written
// leads to results, which would be a cycle.
class Backward {
 public:
  Backward(std::shared_ptr<const BackwardPart> part, std::vector<ArgumentDims> dims, Making making)
      : part_(std::move(part)), dims_(std::move(dims)), making_(std::move(making)) {}

  const BackwardPart& part() const { return *part_; }
  // The program for incoming gradients of those BackwardPart::results for which `comes` is true. Errors: those of
  // graph::prepare.
  std::shared_ptr<const BackwardProgram> program(Programs* programs, const CallShape& shape,
                                                 const std::vector<bool>& comes);

 private:
  const std::shared_ptr<const BackwardPart> part_;
  const std::vector<ArgumentDims> dims_;
  const Making making_;
  std::mutex mutex_;
  std::map<std::vector<bool>, graph::PartOfBackward> parts_;  // mutex; keyed like Programs::backward
};

class Callable;

// Computes gradients as a function of arguments and incoming gradients.
struct GradientFunction {
  std::shared_ptr<Callable> callable;  // returns the gradients that exist, in the order of BackwardPart::targets
  std::mutex mutex;
  std::vector<bool> comes_to;  // mutex; by target, true if it gets a gradient; known after the callable was recorded
};

// A recording and the programs that were prepared from it.
class Entry {
 public:
  Entry(RecordedFunction recording, const Making& making);

  const RecordedFunction& recording() const { return recording_; }
  bool serves(const CallShape& shape, const TensorList& inputs) const;
  // Errors: those of graph::prepare.
  std::shared_ptr<Programs> programs(const CallShape& shape);
  const std::shared_ptr<Backward>& backward() const { return backward_; }  // null: no result wants a gradient
  size_t prepared() const;
  CompileMemory memory() const;
  // Returns the function that make() gives for `comes`; calls make() at most once per `comes`.
  template <class F>
  std::shared_ptr<GradientFunction> gradient(const std::vector<bool>& comes, const F& make) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<GradientFunction>& known = gradients_[comes];
    if (known == nullptr) known = make();
    return known;
  }

  std::atomic<bool> checked{false};  // a second recording was equal
  Status differs;  // error for all later calls if the second recording differed; guarded by Callable::recording_

 private:
  RecordedFunction recording_;
  const Making making_;
  const std::vector<ArgumentDims> dims_;
  const std::shared_ptr<Backward> backward_;
  mutable std::mutex mutex_;
  graph::Recent<std::vector<int64_t>, std::shared_ptr<Programs>> programs_{kMostExecutables};  // mutex; by sizes
  std::map<std::vector<bool>, std::shared_ptr<GradientFunction>> gradients_;  // mutex; keyed like Programs::backward
};

// The forward call whose gradients are differentiated again.
struct Replay {
  RandomRange drawn;                                // where its random numbers begin
  std::vector<std::pair<Tensor, uint64_t>> before;  // tensors that it may have read, each with its version
};

class Callable : public std::enable_shared_from_this<Callable> {
 public:
  Callable(Function function, CompileOptions options, Writes writes = Writes::kept)
      : function_(std::move(function)), options_(std::move(options)), writes_(writes), parts_(options_) {}

  // If `replay` is not null, the function runs as it ran in that call, to compute its gradients.
  TensorList call(const TensorList& inputs, const Replay* replay = nullptr);
  // The gradients of the targets of the backward of `entry`, a recording of this function, for the arguments `inputs`
  // and for `gradients`, one per result for which `comes` is true. The gradients can be differentiated again, because
  // their computation is compiled too. An undefined tensor means that the target gets no gradient.
  TensorList gradients(const std::shared_ptr<Entry>& entry, const std::vector<bool>& comes, const TensorList& inputs,
                       const TensorList& gradients, const Replay& replay);
  const std::string& name() const { return options_.name; }
  CompileStats stats() const;
  std::vector<CompileMemory> memory() const;

 private:
  std::shared_ptr<Entry> find(const CallShape& shape, const TensorList& inputs) const;
  // Records the call, or records it again and compares, and then runs the program. If it cannot be one program, runs it
  // in parts or eagerly.
  TensorList learn(const CallShape& shape, const TensorList& inputs, const Replay* replay);
  // Records again, for the comparison. Returns the results if this call continued eagerly.
  std::optional<TensorList> check(const std::shared_ptr<Entry>& entry, const CallShape& shape,
                                  const TensorList& inputs);
  TensorList run_entry(const std::shared_ptr<Entry>& entry, const CallShape& shape, const TensorList& inputs,
                       const Replay* replay);
  std::shared_ptr<GradientFunction> gradient_function(Entry* entry, const std::vector<bool>& comes);
  // Throws instead of an eager call under Writes::dropped, which would write the function's tensors again.
  [[noreturn]] void refuse_eager(std::string_view why) const;
  void tell(const TensorList& inputs);
  Parts* parts() { return options_.whole ? nullptr : &parts_; }

  Function function_;
  CompileOptions options_;
  const Writes writes_;
  Parts parts_;
  std::mutex recording_;  // one thread records at a time
  mutable std::shared_mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;  // mutex
  bool told_ = false;  // guarded by recording_: the log line about too many recordings was written
  std::atomic<size_t> runs_{0}, eager_{0};
};

// Throws invalid_argument: the compiled function `name` was destroyed, or its recording was.
[[noreturn]] void refuse_gone(const std::string& name);
template <class T>
std::shared_ptr<T> locked(const std::weak_ptr<T>& weak, const std::string& name) {
  if (std::shared_ptr<T> alive = weak.lock()) return alive;
  refuse_gone(name);
}

// Runs the program of `entry`, which belongs to `owner`: reads its arguments, writes captured tensors and arguments,
// and returns the results.
TensorList run(const std::shared_ptr<Entry>& entry, const std::shared_ptr<Callable>& owner, const CallShape& shape,
               const TensorList& inputs, const Replay* replay);

}  // namespace tenon::compilation
