// Callable: a function with what was recorded of it. Internal.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "core/compile/recording.h"
#include "core/compile/split.h"
#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/signature.h"

namespace tenon::lazy {

using graph::kMostRecordings;
constexpr size_t kMostExecutables = 256;  // of one recording, for as many sizes; the oldest goes

// How programs are made from recordings.
struct Making {
  explicit Making(const CompileOptions& options);

  graph::PassOptions passes;
  graph::PrepareOptions prepare;
};

// Backward, ready for some sizes and for the results whose gradients come.
struct BackwardProgram {
  graph::Executable program;
  std::vector<std::optional<size_t>> outputs;  // as PartOfBackward has them
};

// A recording, ready for some sizes.
struct Programs {
  graph::Executable forward;
  std::mutex mutex;
  std::map<std::vector<bool>, std::shared_ptr<const BackwardProgram>>
      backward;  // mutex; by the results whose gradients come
};

// The dims of one argument of a function in its recording, and where CallShape::sizes has those of a call.
struct ArgumentDims {
  SymDims dims;
  size_t begin = 0;
};

// Backward of one recording. Results hold it, so it holds no captured tensor: state that is written leads to results.
class Backward {
 public:
  Backward(std::shared_ptr<const BackwardPart> part, std::vector<ArgumentDims> dims, Making making)
      : part_(std::move(part)), dims_(std::move(dims)), making_(std::move(making)) {}

  const BackwardPart& part() const { return *part_; }
  // The program where gradients come for those results of BackwardPart::results for which `comes` says so. Errors:
  // those of graph::prepare.
  std::shared_ptr<const BackwardProgram> program(Programs* programs, const CallShape& shape,
                                                 const std::vector<bool>& comes);

 private:
  const std::shared_ptr<const BackwardPart> part_;
  const std::vector<ArgumentDims> dims_;
  const Making making_;
  std::mutex mutex_;
  std::map<std::vector<bool>, PartOfBackward> parts_;  // mutex; as Programs::backward
};

class Callable;

// Computes gradients as a function of arguments and gradients.
struct GradientFunction {
  std::shared_ptr<Callable> callable;  // gives those that come, in the order of BackwardPart::targets
  std::mutex mutex;
  std::vector<bool> comes_to;  // mutex; by target; known once the callable was recorded
};

// A recording and what was prepared from it.
class Entry {
 public:
  Entry(Recording recording, const Making& making);

  const Recording& recording() const { return recording_; }
  bool serves(const CallShape& shape, const TensorList& inputs) const;
  // Errors: those of graph::prepare.
  std::shared_ptr<Programs> programs(const CallShape& shape);
  const std::shared_ptr<Backward>& backward() const { return backward_; }  // null: no result wants a gradient
  size_t prepared() const;
  CompileMemory memory() const;
  // What make() gives for `comes`, or gave before.
  template <class F>
  std::shared_ptr<GradientFunction> gradient(const std::vector<bool>& comes, const F& make) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<GradientFunction>& known = gradients_[comes];
    if (known == nullptr) known = make();
    return known;
  }

  std::atomic<bool> checked{false};  // a second recording was the same
  Status differs;                    // not ok: it was not, and whoever comes gets this error; Callable::recording_

 private:
  Recording recording_;
  const Making making_;
  const std::vector<ArgumentDims> dims_;
  const std::shared_ptr<Backward> backward_;
  mutable std::mutex mutex_;
  std::map<std::vector<int64_t>, std::shared_ptr<Programs>> programs_;        // mutex
  std::vector<std::vector<int64_t>> order_;                                   // mutex; the oldest first
  std::map<std::vector<bool>, std::shared_ptr<GradientFunction>> gradients_;  // mutex; as Programs::backward
};

// The call of forward that a gradient of gradients belongs to.
struct Replay {
  RandomRange drawn;                                // where its random numbers began
  std::vector<std::pair<Tensor, uint64_t>> before;  // what it may have read, with the version that each had
};

class Callable : public std::enable_shared_from_this<Callable> {
 public:
  Callable(Function function, CompileOptions options, Writes writes = Writes::kept)
      : function_(std::move(function)), options_(std::move(options)), writes_(writes), parts_(options_) {}

  // `replay`: the function runs as it ran there, for its gradients; null: by itself.
  TensorList call(const TensorList& inputs, const Replay* replay = nullptr);
  // The gradients that come to the targets of the backward of `entry`, a recording of this function, for the arguments
  // `inputs` and for `gradients` of those results for which `comes` says so. They have gradients of their own: what
  // computes them is compiled too. An undefined tensor: nothing comes to that target.
  TensorList gradients(const std::shared_ptr<Entry>& entry, const std::vector<bool>& comes, const TensorList& inputs,
                       const TensorList& gradients, const Replay& replay);
  const std::string& name() const { return options_.name; }
  CompileStats stats() const;
  std::vector<CompileMemory> memory() const;

 private:
  std::shared_ptr<Entry> find(const CallShape& shape, const TensorList& inputs) const;
  // Records the call, or records it again and compares, and runs what was recorded; or runs it in parts, or eagerly.
  TensorList learn(const CallShape& shape, const TensorList& inputs, const Replay* replay);
  // Records again, for the comparison. The results, if this call went on eagerly.
  std::optional<TensorList> check(const std::shared_ptr<Entry>& entry, const CallShape& shape,
                                  const TensorList& inputs);
  TensorList run_entry(const std::shared_ptr<Entry>& entry, const CallShape& shape, const TensorList& inputs,
                       const Replay* replay);
  std::shared_ptr<GradientFunction> gradient_function(Entry* entry, const std::vector<bool>& comes);
  TensorList call_eagerly(const TensorList& inputs);
  void tell(const TensorList& inputs);
  Parts* parts() { return options_.whole ? nullptr : &parts_; }

  Function function_;
  CompileOptions options_;
  const Writes writes_;
  Parts parts_;
  std::mutex recording_;  // one thread records at a time
  mutable std::shared_mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;  // mutex
  bool told_ = false;                            // recording_: that there are too many
  std::atomic<size_t> runs_{0}, eager_{0};
};

// Errors: invalid_argument (the compiled function `name`, or the recording of it, was destroyed).
[[noreturn]] void refuse_gone(const std::string& name);
template <class T>
std::shared_ptr<T> locked(const std::weak_ptr<T>& weak, const std::string& name) {
  if (std::shared_ptr<T> alive = weak.lock()) return alive;
  refuse_gone(name);
}

// Runs the program of `entry`, one of `owner`: reads its arguments, writes what it writes, gives the results.
TensorList run(const std::shared_ptr<Entry>& entry, const std::shared_ptr<Callable>& owner, const CallShape& shape,
               const TensorList& inputs, const Replay* replay);

}  // namespace tenon::lazy
