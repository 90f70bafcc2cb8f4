// FusedKernel: the compiled form of a region on one device: its artifact, and a compiled module for each bucket of
// sizes that was requested.
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

// Threads: any number may call it.
class FusedKernel final : public graph::FusedRegion, public std::enable_shared_from_this<FusedKernel> {
 public:
  // Lowers, schedules and prints `region`. If the region has no kernel, the reason is kept.
  FusedKernel(const graph::Graph& region, DeviceState* device);
  FusedKernel(const FusedKernel&) = delete;
  FusedKernel& operator=(const FusedKernel&) = delete;

  std::shared_ptr<const graph::FusedLaunch> launch(const graph::Graph& region, symbolic::Values* sizes,
                                                   const std::shared_ptr<graph::AwaitedKernels>& awaited,
                                                   std::string* why_not) override;

  // Tunes each bucket that was launched, as described at tune_kernels, and returns the results.
  std::vector<TunedKernel> tune_buckets(double seconds);
  size_t launched_buckets();
  const DeviceState* device() const { return device_; }
  const std::string& name() const { return artifact_.name; }

 private:
  enum class State : uint8_t { idle, waits, compiles, done };

  // One text of the artifact and its module. If `state` is done and there is no module, `why_not` has the reason.
  struct Bucket {
    State state = State::idle;
    std::shared_ptr<const CompiledModule> module;
    std::string why_not;
    std::vector<std::shared_ptr<graph::AwaitedKernels>> awaited;
    std::optional<std::vector<int64_t>> launched;  // parameters of the latest launch
    std::shared_ptr<const Variant> tuned;          // replaces the artifact's variant
    bool asked_to_tune = false;
  };
  class Job;

  void make(const graph::Graph& region);
  // Compiles the text of a bucket, unless another thread compiles it or has compiled it. Throws: cancelled if the
  // calling thread is cancelled.
  void compile(size_t bucket);
  // Computes the groups of a launch. False, with the reason, if the launch is not possible.
  bool lay_out(const Variant& variant, const std::vector<int64_t>& parameters, graph::FusedLaunch* launch,
               std::string* why_not) const;
  void wait(size_t bucket, std::unique_lock<std::mutex>* lock);
  void compile_later(size_t bucket, const std::shared_ptr<graph::AwaitedKernels>& awaited);
  // Compiles the text for `parameters`: in this call (compile_now) or in the background (compile_later). Both return
  // the bucket to launch. It may be a more general one while its own text is compiled, or if its own text is refused.
  size_t compile_now(const std::vector<int64_t>& parameters);
  size_t compile_later(const std::vector<int64_t>& parameters, const std::shared_ptr<graph::AwaitedKernels>& awaited);
  bool is_there(size_t bucket);
  bool is_refused(size_t bucket);
  // Records the end of a compilation: `module`, or the failure `failed`.
  void end(size_t bucket, std::shared_ptr<const CompiledModule> module, const Status& failed);
  void tell(size_t bucket, const Status& failed) const;
  // Queues the tuning of a bucket at its first launch, if TENON_TUNE asks for it and the bucket is not tuned. The
  // caller holds the lock.
  void tune_later(size_t bucket);
  TuneRequest tune_request(size_t bucket, const std::vector<int64_t>& parameters) const;
  void tune_now(size_t bucket, const std::vector<int64_t>& parameters);

  DeviceState* const device_;
  std::string why_not_;  // if no artifact could be made: the reason
  std::string ops_;
  std::string dumped_;  // folder of the dumped stages; empty if not dumped
  Dialect dialect_;
  std::optional<Kernel> plain_;    // the kernel without loops, if kernels are tuned
  std::vector<uint32_t> symbols_;  // symbols of the region's arena, by parameter
  Artifact artifact_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bucket> buckets_;  // guarded by mutex; by variant
};

}  // namespace tenon::codegen
