#include "providers/vulkan/kernels/pipeline.h"

#include "providers/vulkan/driver/result.h"
#include "providers/vulkan/kernels/modules.h"
#include "providers/vulkan/kernels/specialize.h"

namespace tenon::provider::vulkan {
Pipeline::~Pipeline() { context_->api.vkDestroyPipeline(context_->device, handle_, nullptr); }

Pipelines::~Pipelines() {
  slots_.clear();
  if (layout_ != VK_NULL_HANDLE) context_->api.vkDestroyPipelineLayout(context_->device, layout_, nullptr);
}

ep_status Pipelines::create(ep_error** error) {
  VkPushConstantRange range{};
  range.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  range.size = push_bytes;
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  store_.open();
  const VkResult result = context_->api.vkCreatePipelineLayout(context_->device, &info, nullptr, &layout_);
  return result == VK_SUCCESS ? EP_STATUS_OK : context_->failed(error, "vkCreatePipelineLayout", result);
}

Refusal Pipelines::failed(const char* call, VkResult result) {
  const ep_status status = context_->failed(nullptr, call, result);  // marks the device as lost if it is
  return Refusal::failure(status, "%s answered %s (%d)", call, result_name(result), static_cast<int>(result));
}

Refusal Pipelines::make_module(std::span<const uint32_t> words, VkShaderModule* out_module) {
  VkShaderModuleCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  info.codeSize = words.size() * sizeof(uint32_t);
  info.pCode = words.data();
  const VkResult result = context_->api.vkCreateShaderModule(context_->device, &info, nullptr, out_module);
  return result == VK_SUCCESS ? Refusal() : failed("vkCreateShaderModule", result);
}

Refusal Pipelines::get(const std::string& module, const Constants& constants, std::shared_ptr<Pipeline>* out_pipeline) {
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Slot>& known = slots_[{module, constants}];
    if (known == nullptr) known = std::make_shared<Slot>();
    slot = known;
  }
  std::lock_guard lock(slot->mutex);
  if (slot->pipeline == nullptr) {
    if (const Refusal why = compile(module, constants, &slot->pipeline)) return why;
  }
  *out_pipeline = slot->pipeline;
  return {};
}

Refusal Pipelines::compile(const std::string& module, const Constants& constants,
                           std::shared_ptr<Pipeline>* out_pipeline) {
  const std::span<const uint32_t> whole = module_words(module);
  if (whole.empty()) return Refusal::failure(EP_STATUS_INTERNAL, "there is no such shader");
  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < constants.size(); ++i) entries.push_back({i, i * 4, 4});
  VkSpecializationInfo specialization{};
  specialization.mapEntryCount = static_cast<uint32_t>(entries.size());
  specialization.pMapEntries = entries.data();
  specialization.dataSize = constants.size() * 4;
  specialization.pData = constants.data();
  return make(specialize(whole, constants), &specialization, out_pipeline);
}

Refusal Pipelines::make(std::span<const uint32_t> words, const VkSpecializationInfo* constants,
                        std::shared_ptr<Pipeline>* out_pipeline) {
  const PhysicalFacts& facts = context_->physical->facts;
  const FloatModes modes{facts.keeps_nan, facts.rounds_even, facts.keeps_denormals};
  VkShaderModule code = VK_NULL_HANDLE;
  if (const Refusal why = make_module(ask_of_floats({words.begin(), words.end()}, modes), &code)) return why;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = code;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = constants;
  info.layout = layout_;
  if (wants_to_stop(context_->host)) {
    context_->api.vkDestroyShaderModule(context_->device, code, nullptr);
    return Refusal::failure(EP_STATUS_CANCELLED, "the host asked to stop before the driver compiled");
  }
  VkPipeline handle = VK_NULL_HANDLE;
  const VkResult result =
      context_->api.vkCreateComputePipelines(context_->device, store_.handle(), 1, &info, nullptr, &handle);
  context_->api.vkDestroyShaderModule(context_->device, code, nullptr);
  if (result != VK_SUCCESS) return failed("vkCreateComputePipelines", result);
  *out_pipeline = std::make_shared<Pipeline>(context_, handle);
  store_.note_made();
  return {};
}

void Pipelines::trim() {
  std::lock_guard lock(mutex_);
  // A pipeline that only the map holds is not being compiled.
  std::erase_if(slots_, [](const auto& entry) {
    const std::shared_ptr<Slot>& slot = entry.second;
    if (slot.use_count() != 1) return false;
    std::lock_guard held(slot->mutex);
    return slot->pipeline == nullptr || slot->pipeline.use_count() == 1;
  });
}

}  // namespace tenon::provider::vulkan
