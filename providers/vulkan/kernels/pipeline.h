// Pipelines: compute pipelines of one device, made from a module and the values of its specialization constants. A
// primitive holds those it needs; those nobody holds are kept, since they depend on op and types but never on shapes
// and are few, until the host trims the device.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "providers/vulkan/queue/context.h"

namespace tenon::provider::vulkan {

// Values of specialization constants; constant i of the shader is values[i].
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
  explicit Pipelines(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  ep_status create(ep_error** error);
  // All kernels have one layout: 128 bytes of push constants, no descriptors.
  VkPipelineLayout layout() const { return layout_; }

  // Thread-safe. The first call for a module and constants compiles; others for the same wait, for another they do not.
  ep_status get(const std::string& module, const Constants& constants, std::shared_ptr<Pipeline>* out_pipeline,
                ep_error** error);
  // Drops the pipelines nobody holds.
  void trim();

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<Pipeline> pipeline;
  };

  ep_status compile(const std::string& module, const Constants& constants, std::shared_ptr<Pipeline>* out_pipeline,
                    ep_error** error);
  ep_status make_module(const std::string& name, const Constants& constants, VkShaderModule* out_module,
                        ep_error** error);

  std::shared_ptr<Context> context_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  std::map<std::pair<std::string, Constants>, std::shared_ptr<Slot>> slots_;
};

}  // namespace tenon::provider::vulkan
