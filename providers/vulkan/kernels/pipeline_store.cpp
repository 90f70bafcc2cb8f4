#include "providers/vulkan/kernels/pipeline_store.h"

#include <bit>
#include <cstddef>
#include <string>
#include <vector>

namespace tenon::provider::vulkan {
namespace {

constexpr size_t header_bytes = sizeof(VkPipelineCacheHeaderVersionOne);

std::string key_of(const Context& context) { return "pipelines of " + context.physical->fingerprint; }

// A host of an earlier minor version has no blobs.
bool keeps_blobs(const ep_host* host) {
  return host->struct_size >= offsetof(ep_host, blob_put) + sizeof host->blob_put;
}

std::vector<char> blob_of(const Context& context) {
  std::vector<char> blob;
  const std::string key = key_of(context);
  const auto take = [](void* out, const void* data, uint64_t size) {
    const auto* bytes = static_cast<const char*>(data);
    static_cast<std::vector<char>*>(out)->assign(bytes, bytes + size);
  };
  static_cast<void>(context.host->blob_get(context.host, {key.data(), key.size()}, take, &blob));
  return blob;
}

}  // namespace

PipelineStore::~PipelineStore() {
  if (handle_ == VK_NULL_HANDLE) return;
  if (made_ != given_ && !context_->lost) give_to_host();
  context_->api.vkDestroyPipelineCache(context_->device, handle_, nullptr);
}

void PipelineStore::open() {
  std::vector<char> blob;
  if (keeps_blobs(context_->host)) blob = blob_of(*context_);
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = blob.size();
  info.pInitialData = blob.data();
  if (context_->api.vkCreatePipelineCache(context_->device, &info, nullptr, &handle_) == VK_SUCCESS) return;
  handle_ = VK_NULL_HANDLE;
}

void PipelineStore::note_made() {
  const uint64_t made = made_.fetch_add(1) + 1;
  if (handle_ != VK_NULL_HANDLE && std::has_single_bit(made)) give_to_host();
}

// A cache with only a header means that the driver keeps nothing.
void PipelineStore::give_to_host() {
  if (!keeps_blobs(context_->host)) return;
  const uint64_t made = made_;
  size_t size = 0;
  const DeviceApi& api = context_->api;
  if (api.vkGetPipelineCacheData(context_->device, handle_, &size, nullptr) != VK_SUCCESS) return;
  std::vector<char> data(size);
  if (api.vkGetPipelineCacheData(context_->device, handle_, &size, data.data()) != VK_SUCCESS) return;
  if (size <= header_bytes) return;
  const std::string key = key_of(*context_);
  context_->host->blob_put(context_->host, {key.data(), key.size()}, data.data(), size);
  given_ = made;
}

}  // namespace tenon::provider::vulkan
