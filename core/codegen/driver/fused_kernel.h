// FusedKernel: what a region has become on a device: its artifact, and a compiled module for each bucket of sizes that
// was asked for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/codegen/artifact/artifact.h"
#include "core/codegen/driver/tuning.h"
#include "core/codegen/tune/tune.h"
#include "core/graph/fusion.h"
#include "core/primitive/compiled_module.h"

namespace tenon::codegen {

// Threads: any number.
class FusedKernel final : public graph::FusedRegion, public std::enable_shared_from_this<FusedKernel> {
 public:
  // Lowers, schedules and prints `region`. A region that has no kernel keeps the reason.
  FusedKernel(const graph::Graph& region, DeviceState* device);
  FusedKernel(const FusedKernel&) = delete;
  FusedKernel& operator=(const FusedKernel&) = delete;

  std::shared_ptr<const graph::FusedLaunch> launch(const graph::Graph& region, symbolic::Values* sizes,
                                                   const std::shared_ptr<graph::AwaitedKernels>& awaited,
                                                   std::string* why_not) override;

  // Tunes each bucket that was launched, as tune_kernels says, and gives what came of it.
  std::vector<TunedKernel> tune_buckets(double seconds);
  size_t launched_buckets();
  const DeviceState* device() const { return device_; }
  const std::string& name() const { return artifact_.name; }

 private:
  enum class State : uint8_t { idle, waits, compiles, done };

  // A text of the artifact, on the way to its module. `done` without a module: `why_not` says why.
  struct Bucket {
    State state = State::idle;
    std::shared_ptr<const CompiledModule> module;
    std::string why_not;
    std::vector<std::shared_ptr<graph::AwaitedKernels>> awaited;
    std::optional<std::vector<int64_t>> launched;  // for these parameters, the last time
    std::shared_ptr<const Variant> tuned;          // in place of that of the artifact
    bool asked_to_tune = false;
  };
  class Job;

  void make(const graph::Graph& region);
  // Compiles the text of a bucket, unless somebody does or did. Throws: cancelled, if the calling thread is.
  void compile(size_t bucket);
  // The groups of a launch. False: there is none, with the reason.
  bool lay_out(const Variant& variant, const std::vector<int64_t>& parameters, graph::FusedLaunch* launch,
               std::string* why_not) const;
  void wait(size_t bucket, std::unique_lock<std::mutex>* lock);
  void compile_later(size_t bucket, const std::shared_ptr<graph::AwaitedKernels>& awaited);
  // Has the text for `parameters` compiled: in this call, or beside. Gives the bucket to launch, whose text may be one
  // for more sizes: while its own waits, or if its own is refused.
  size_t compile_now(const std::vector<int64_t>& parameters);
  size_t compile_later(const std::vector<int64_t>& parameters, const std::shared_ptr<graph::AwaitedKernels>& awaited);
  bool is_there(size_t bucket);
  bool is_refused(size_t bucket);
  // The end of a compilation, which gave `module` or failed for the reason `failed`.
  void end(size_t bucket, std::shared_ptr<const CompiledModule> module, const Status& failed);
  void tell(size_t bucket, const Status& failed) const;
  // Tunes a bucket beside, the first time that it is launched, if TENON_TUNE says so and nobody has tuned it. Holds the
  // lock.
  void tune_later(size_t bucket);
  TuneRequest tune_request(size_t bucket, const std::vector<int64_t>& parameters) const;
  void tune_now(size_t bucket, const std::vector<int64_t>& parameters);

  DeviceState* const device_;
  std::string why_not_;  // there is no artifact
  std::string ops_;
  std::string dumped_;  // the folder with its stages; empty: none
  Dialect dialect_;
  std::optional<Kernel> plain_;    // without loops, if kernels are tuned
  std::vector<uint32_t> symbols_;  // of the region's arena, by parameter
  Artifact artifact_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bucket> buckets_;  // mutex; by variant
};

}  // namespace tenon::codegen
