// Pipelines: the compute pipelines of one device. A pipeline is made from a module and values for its specialization
// constants. Primitives hold their pipelines. A pipeline that no primitive holds stays until the host trims the device:
// pipelines depend on op and types but never on shapes, so there are few.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "providers/vulkan/kernels/pipeline_store.h"
#include "providers/vulkan/queue/context.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::vulkan {

inline constexpr uint32_t push_bytes = 128;  // bytes of push constants: the least limit of Vulkan devices

// Values of specialization constants: values[i] is constant i of the shader.
using Constants = std::vector<uint32_t>;

class Pipeline {
 public:
  Pipeline(std::shared_ptr<Context> context, VkPipeline handle) : context_(std::move(context)), handle_(handle) {}
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  VkPipeline handle() const { return handle_; }

 private:
  std::shared_ptr<Context> context_;
  VkPipeline handle_;
};

class Pipelines {
 public:
  explicit Pipelines(std::shared_ptr<Context> context) : context_(std::move(context)), store_(context_.get()) {}
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  ep_status create(ep_error** error);
  // All kernels share one layout: 128 bytes of push constants and no descriptors.
  VkPipelineLayout layout() const { return layout_; }

  // Gets a pipeline and compiles it at the first call. A call for the same pipeline waits for its compilation; a call
  // for another pipeline does not. After a failure the next call tries again. Threads: any.
  Refusal get(const std::string& module, const Constants& constants, std::shared_ptr<Pipeline>* out_pipeline);
  // Makes a separate pipeline from the SPIR-V `words`, whose entry is "main".
  Refusal make(std::span<const uint32_t> words, const VkSpecializationInfo* constants,
               std::shared_ptr<Pipeline>* out_pipeline);
  // Drops the pipelines that no primitive holds.
  void trim();

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<Pipeline> pipeline;
  };

  Refusal compile(const std::string& module, const Constants& constants, std::shared_ptr<Pipeline>* out_pipeline);
  Refusal make_module(std::span<const uint32_t> words, VkShaderModule* out_module);
  Refusal failed(const char* call, VkResult result);

  std::shared_ptr<Context> context_;
  PipelineStore store_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  std::map<std::pair<std::string, Constants>, std::shared_ptr<Slot>> slots_;
};

}  // namespace tenon::provider::vulkan
