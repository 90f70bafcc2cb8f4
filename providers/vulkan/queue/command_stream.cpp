#include "providers/vulkan/queue/command_stream.h"

#include <algorithm>
#include <cstring>

#include "providers/vulkan/queue/command_list.h"

namespace tenon::provider::vulkan {
namespace {

constexpr uint32_t look_every = 64;  // operations after which an idle device gets the open batch
constexpr uint64_t most_in_flight = UINT64_C(64)
                                    << 20;  // limit of staged bytes; beyond it, a transfer waits for the oldest batch
constexpr uint64_t longest_farewell =
    UINT64_C(5'000'000'000);  // ns to wait for running work when the stream is destroyed
constexpr VkPipelineStageFlags device_stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags device_writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags device_accesses = device_writes | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

}  // namespace

void StreamSet::add(const std::shared_ptr<CommandStream>& stream) {
  std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](const std::weak_ptr<CommandStream>& one) { return one.expired(); });
  streams_.push_back(stream);
}

void StreamSet::finish_downloads() {
  if (pending_downloads.load(std::memory_order_acquire) == 0) return;
  std::vector<std::shared_ptr<CommandStream>> streams;
  {
    std::lock_guard lock(mutex_);
    for (const std::weak_ptr<CommandStream>& one : streams_) {
      if (std::shared_ptr<CommandStream> stream = one.lock()) streams.push_back(std::move(stream));
    }
  }
  for (const std::shared_ptr<CommandStream>& stream : streams) (void)stream->retire(nullptr);
}

CommandStream::CommandStream(std::shared_ptr<Context> context, std::shared_ptr<Staging> staging,
                             std::shared_ptr<StreamSet> set, VkPipelineLayout layout)
    : context_(std::move(context)), staging_(std::move(staging)), set_(std::move(set)), layout_(layout) {
  queue_ = &context_->queues[context_->next_queue.fetch_add(1) % context_->queue_count];
}

// The host has synchronised the stream, or the device is lost. Work that is left is not waited for.
CommandStream::~CommandStream() {
  // If a submission failed for lack of memory, earlier submissions may still run.
  if (!in_flight_.empty() && submitted_ > settled_) (void)await(submitted_, longest_farewell);
  if (open_ != nullptr) in_flight_.push_back(std::move(open_));
  for (const std::unique_ptr<Batch>& batch : in_flight_) {
    set_->pending_downloads.fetch_sub(static_cast<int64_t>(batch->downloads.size()));
    batch->downloads.clear();
  }
  settle(UINT64_MAX);
  for (const std::unique_ptr<Batch>& batch : idle_) {
    context_->api.vkDestroyCommandPool(context_->device, batch->pool, nullptr);
  }
  if (semaphore_ != VK_NULL_HANDLE) context_->api.vkDestroySemaphore(context_->device, semaphore_, nullptr);
}

ep_status CommandStream::create(bool timed, ep_error** error) {
  if (timed) timestamps_ = std::make_shared<Timestamps>(context_);
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  const VkResult result = context_->api.vkCreateSemaphore(context_->device, &info, nullptr, &semaphore_);
  return result == VK_SUCCESS ? EP_STATUS_OK : context_->failed(error, "vkCreateSemaphore", result);
}

// --- batches ---

ep_status make_commands(Context& context, VkCommandPoolCreateFlags flags, VkCommandPool* out_pool,
                        VkCommandBuffer* out_commands, ep_error** error) {
  const DeviceApi& api = context.api;
  VkCommandPoolCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  create.flags = flags;
  create.queueFamilyIndex = context.queue_family;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkResult result = api.vkCreateCommandPool(context.device, &create, nullptr, &pool);
  if (result != VK_SUCCESS) return context.failed(error, "vkCreateCommandPool", result);
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  result = api.vkAllocateCommandBuffers(context.device, &info, out_commands);
  if (result != VK_SUCCESS) {
    api.vkDestroyCommandPool(context.device, pool, nullptr);
    return context.failed(error, "vkAllocateCommandBuffers", result);
  }
  *out_pool = pool;
  return EP_STATUS_OK;
}

ep_status CommandStream::begin_commands(VkCommandBuffer commands, VkCommandBufferUsageFlags usage, ep_error** error) {
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = usage;
  const VkResult result = context_->api.vkBeginCommandBuffer(commands, &info);
  return result == VK_SUCCESS ? EP_STATUS_OK : context_->failed(error, "vkBeginCommandBuffer", result);
}

ep_status CommandStream::take_batch(std::unique_ptr<Batch>* out_batch, ep_error** error) {
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  if (idle_.empty() && !in_flight_.empty()) {
    uint64_t completed = 0;
    if (const ep_status status = read_completed(&completed, error); status != EP_STATUS_OK) return status;
    settle(completed);
  }
  if (!idle_.empty()) {
    *out_batch = std::move(idle_.back());
    idle_.pop_back();
    return EP_STATUS_OK;
  }
  auto batch = std::make_unique<Batch>();
  const ep_status status =
      make_commands(*context_, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT, &batch->pool, &batch->commands, error);
  if (status == EP_STATUS_OK) *out_batch = std::move(batch);
  return status;
}

// Opens a batch unless one is open.
ep_status CommandStream::open_batch(ep_error** error) {
  if (open_ != nullptr) return EP_STATUS_OK;
  std::unique_ptr<Batch> batch;
  if (const ep_status status = take_batch(&batch, error); status != EP_STATUS_OK) return status;
  const ep_status status = begin_commands(batch->commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, error);
  if (status != EP_STATUS_OK) {
    idle_.push_back(std::move(batch));
    return status;
  }
  batch->value = submitted_ + 1;
  open_ = std::move(batch);
  return EP_STATUS_OK;
}

void CommandStream::barrier(VkPipelineStageFlags dst_stage, VkAccessFlags dst_access) {
  if (!context_->barriers) return;
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  // The application may submit any kind of work to an adopted queue.
  const bool any = context_->adopted;
  memory.srcAccessMask = any ? VkAccessFlags{VK_ACCESS_MEMORY_WRITE_BIT} : device_writes;
  memory.dstAccessMask = dst_access;
  const VkPipelineStageFlags src_stage = any ? VkPipelineStageFlags{VK_PIPELINE_STAGE_ALL_COMMANDS_BIT} : device_stages;
  context_->api.vkCmdPipelineBarrier(open_->commands, src_stage, dst_stage, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

VkResult CommandStream::queue_submit(Batch& batch) {
  std::vector<VkSemaphore> semaphores;
  std::vector<uint64_t> values;
  std::vector<VkPipelineStageFlags> stages;
  for (const Wait& wait : batch.waits) {
    semaphores.push_back(wait.stream->semaphore_);
    values.push_back(wait.value);
    stages.push_back(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  }
  for (const Foreign& wait : batch.foreign_waits) {
    semaphores.push_back(wait.semaphore);
    values.push_back(wait.value);
    stages.push_back(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  }
  std::vector<VkSemaphore> signals = {semaphore_};
  std::vector<uint64_t> signal_values = {batch.value};
  for (const Foreign& signal : batch.foreign_signals) {
    signals.push_back(signal.semaphore);
    signal_values.push_back(signal.value);
  }
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.waitSemaphoreValueCount = static_cast<uint32_t>(values.size());
  timeline.pWaitSemaphoreValues = values.data();
  timeline.signalSemaphoreValueCount = static_cast<uint32_t>(signal_values.size());
  timeline.pSignalSemaphoreValues = signal_values.data();
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.waitSemaphoreCount = static_cast<uint32_t>(semaphores.size());
  info.pWaitSemaphores = semaphores.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = 1;
  info.pCommandBuffers = batch.list != nullptr ? &batch.list->commands : &batch.commands;
  info.signalSemaphoreCount = static_cast<uint32_t>(signals.size());
  info.pSignalSemaphores = signals.data();
  context_->submissions.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(queue_->mutex);
  if (context_->lock != nullptr) context_->lock(context_->lock_context);
  const VkResult result = context_->api.vkQueueSubmit(queue_->handle, 1, &info, VK_NULL_HANDLE);
  if (context_->unlock != nullptr) context_->unlock(context_->lock_context);
  return result;
}

// Accepted work must run, so a failed submission loses the device, for any reason.
ep_status CommandStream::submit(ep_error** error) {
  if (open_ == nullptr) return EP_STATUS_OK;
  barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  const char* call = "vkEndCommandBuffer";
  VkResult result = context_->api.vkEndCommandBuffer(open_->commands);
  if (result == VK_SUCCESS) {
    call = "vkQueueSubmit";
    result = queue_submit(*open_);
  }
  return submitted(std::move(open_), call, result, error);
}

ep_status CommandStream::submitted(std::unique_ptr<Batch> batch, const char* call, VkResult result, ep_error** error) {
  if (result == VK_SUCCESS) submitted_ = batch->value;
  for (const StagingBlock* block : batch->blocks) in_flight_bytes_ += block->block.size;
  in_flight_.push_back(std::move(batch));
  if (result == VK_SUCCESS) return EP_STATUS_OK;
  context_->lost.store(true);
  return fail(context_->host, error, EP_STATUS_DEVICE_LOST, "The device %s is lost: %s answered %s.",
              context_->physical->name.c_str(), call, result_name(result));
}

ep_status CommandStream::after_operation(ep_error** error) {
  const uint32_t operations = ++open_->operations;
  if (list_ != nullptr) return EP_STATUS_OK;
  if (operations >= context_->batch || open_->work >= context_->most_work) return submit(error);
  if (operations % look_every != 0) return EP_STATUS_OK;
  uint64_t completed = 0;
  if (const ep_status status = read_completed(&completed, error); status != EP_STATUS_OK) return status;
  return completed >= submitted_ ? submit(error) : EP_STATUS_OK;
}

ep_status CommandStream::stage(StagingKind kind, uint64_t size, uint64_t alignment, StagedRange* out_range,
                               ep_error** error) {
  if (const ep_status status = open_batch(error); status != EP_STATUS_OK) return status;
  StagingBlock*& block = open_->filling[static_cast<size_t>(kind)];
  uint64_t offset = block == nullptr ? 0 : (block->used + alignment - 1) / alignment * alignment;
  if (block == nullptr || offset + size > block->block.size) {
    StagingBlock* taken = nullptr;
    const char* call = nullptr;
    const VkResult result = staging_->take(kind, size, &taken, &call);
    if (result != VK_SUCCESS) return context_->failed(error, call, result);
    open_->blocks.push_back(taken);
    block = taken;
    offset = 0;
  }
  block->used = offset + size;
  *out_range = {block, offset};
  return EP_STATUS_OK;
}

// --- settling: work that the device has completed ---

ep_status CommandStream::read_completed(uint64_t* out_value, ep_error** error) {
  VkResult result = context_->api.vkGetSemaphoreCounterValue(context_->device, semaphore_, out_value);
  // After a device is lost, drivers end every wait, some of them with a counter beyond all submitted values.
  if (result == VK_SUCCESS && *out_value > submitted_) result = VK_ERROR_DEVICE_LOST;
  return result == VK_SUCCESS ? EP_STATUS_OK : context_->failed(error, "vkGetSemaphoreCounterValue", result);
}

void CommandStream::settle(uint64_t completed) {
  while (!in_flight_.empty() && in_flight_.front()->value <= completed) {
    std::unique_ptr<Batch> batch = std::move(in_flight_.front());
    in_flight_.pop_front();
    for (const StagingBlock* block : batch->blocks) in_flight_bytes_ -= std::min(in_flight_bytes_, block->block.size);
    settled_ = batch->value;
    settle_batch(*batch);
    idle_.push_back(std::move(batch));
  }
}

void CommandStream::settle_batch(Batch& batch) {
  for (const Download& download : batch.downloads) {
    const Block& block = download.src.block->block;
    (void)invalidate_block(*context_, block, download.src.offset, download.size);
    std::memcpy(download.dst, download.src.host(), download.size);
  }
  set_->pending_downloads.fetch_sub(static_cast<int64_t>(batch.downloads.size()), std::memory_order_release);
  collect_faults(batch.watches, batch);
  if (batch.list != nullptr) {
    collect_faults(batch.list->watches, batch);
    batch.list->clear_faults();
    batch.list.reset();
  }
  for (StagingBlock* block : batch.blocks) staging_->give_back(block);
  batch.blocks.clear();
  batch.filling = {};
  batch.downloads.clear();
  batch.watches.clear();
  batch.waits.clear();
  batch.foreign_waits.clear();
  batch.foreign_signals.clear();
  batch.operations = 0;
  batch.work = 0;
  (void)context_->api.vkResetCommandPool(context_->device, batch.pool, 0);
}

// Reads the fault slots of `watches`. In a replay, recordings count from 0 each time.
void CommandStream::collect_faults(const std::vector<FaultWatch>& watches, const Batch& batch) {
  const bool replay = batch.list != nullptr;
  uint64_t last = replay ? ~UINT64_C(0) : faulted_;
  for (const FaultWatch& watch : watches) {
    FaultSlot slot;
    std::memcpy(&slot, watch.slot.host(), sizeof slot);
    if (slot.taken == 0 || watch.recording == last) continue;
    last = watch.recording;
    const uint64_t tag = replay ? batch.tag : watch.tag;
    const uint64_t flags = replay ? EP_FAULT_FLAG_NODE(watch.recording) : 0;
    const int32_t operand = watch.operand == FaultWatch::of_kernel ? slot.operand : watch.operand;
    faults_.push_back({tag, static_cast<int32_t>(slot.code), operand, slot.value, slot.limit, flags});
  }
  if (!replay) faulted_ = last;
}

ep_status CommandStream::retire(ep_error** error) {
  std::lock_guard lock(mutex_);
  if (in_flight_.empty()) return EP_STATUS_OK;
  uint64_t completed = 0;
  const ep_status status = read_completed(&completed, error);
  if (status == EP_STATUS_OK) settle(completed);
  return status;
}

ep_status CommandStream::take_fault(ep_fault* out_fault) {
  (void)retire(nullptr);
  std::lock_guard lock(mutex_);
  if (faults_.empty()) return EP_STATUS_NOT_FOUND;
  *out_fault = faults_.front();
  faults_.pop_front();
  return EP_STATUS_OK;
}

// --- points ---

uint64_t CommandStream::point() {
  std::lock_guard lock(mutex_);
  return open_ != nullptr && open_->operations != 0 ? open_->value : submitted_;
}

ep_status CommandStream::timed_point(uint64_t* out_value, std::shared_ptr<Timestamps::Place>* out_place,
                                     ep_error** error) {
  std::lock_guard lock(mutex_);
  if (const ep_status status = open_batch(error); status != EP_STATUS_OK) return status;
  const VkResult result = timestamps_->take(out_place);
  if (result != VK_SUCCESS) return context_->failed(error, "vkCreateQueryPool", result);
  barrier(VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0);
  (*out_place)->write(open_->commands);
  *out_value = open_->value;
  return after_operation(error);
}

ep_status CommandStream::flush(ep_error** error) {
  std::lock_guard lock(mutex_);
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  return open_ != nullptr && open_->operations != 0 ? submit(error) : EP_STATUS_OK;
}

ep_status CommandStream::flush_up_to(uint64_t value, ep_error** error) {
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  return value > submitted_ ? submit(error) : EP_STATUS_OK;
}

ep_status CommandStream::query(uint64_t value, ep_error** error) {
  {
    std::lock_guard lock(mutex_);
    if (const ep_status status = flush_up_to(value, error); status != EP_STATUS_OK) return status;
    if (value > settled_) {
      uint64_t completed = 0;
      if (const ep_status status = read_completed(&completed, error); status != EP_STATUS_OK) return status;
      settle(completed);
      if (completed < value) return EP_STATUS_BUSY;
    }
  }
  set_->finish_downloads();
  return EP_STATUS_OK;
}

VkResult CommandStream::await(uint64_t value, uint64_t timeout_ns) const {
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &value;
  return context_->api.vkWaitSemaphores(context_->device, &info, timeout_ns);
}

ep_status CommandStream::wait(uint64_t value, uint64_t timeout_ns, ep_error** error) {
  {
    std::lock_guard lock(mutex_);
    if (const ep_status status = flush_up_to(value, error); status != EP_STATUS_OK) return status;
  }
  const VkResult result = await(value, timeout_ns);
  if (result == VK_TIMEOUT) {
    return fail(context_->host, error, EP_STATUS_TIMEOUT, "The event has not fired within %llu ns.",
                static_cast<unsigned long long>(timeout_ns));
  }
  if (result != VK_SUCCESS) return context_->failed(error, "vkWaitSemaphores", result);
  if (const ep_status status = retire(error); status != EP_STATUS_OK) return status;
  set_->finish_downloads();
  return EP_STATUS_OK;
}

ep_status CommandStream::make_room(ep_error** error) {
  uint64_t oldest = 0;
  {
    std::lock_guard lock(mutex_);
    uint64_t staged = in_flight_bytes_;
    if (open_ != nullptr) {
      for (const StagingBlock* block : open_->blocks) staged += block->block.size;
    }
    if (staged <= most_in_flight) return EP_STATUS_OK;
    if (const ep_status status = submit(error); status != EP_STATUS_OK) return status;
    oldest = in_flight_.front()->value;
  }
  return wait(oldest, UINT64_MAX, error);
}

void CommandStream::forget_waits() {
  if (!context_->lost.load()) return;
  std::vector<Wait> waits;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  const auto take = [&waits](Batch& batch) {
    waits.insert(waits.end(), batch.waits.begin(), batch.waits.end());
    batch.waits.clear();
  };
  if (open_ != nullptr) take(*open_);
  for (const std::unique_ptr<Batch>& batch : in_flight_) take(*batch);
}

ep_status CommandStream::wait_for(CommandStream& other, uint64_t value, ep_error** error) {
  if (&other == this) return context_->check(error);
  {
    std::lock_guard lock(other.mutex_);
    if (const ep_status status = other.flush_up_to(value, error); status != EP_STATUS_OK) return status;
  }
  std::lock_guard lock(mutex_);
  const bool same_queue = other.queue_ == queue_;
  if (!same_queue && open_ != nullptr && open_->operations != 0) {
    if (const ep_status status = submit(error); status != EP_STATUS_OK) return status;
  }
  if (const ep_status status = open_batch(error); status != EP_STATUS_OK) return status;
  if (same_queue) {
    barrier(device_stages, device_accesses);
  } else {
    open_->waits.push_back({other.shared_from_this(), value});
  }
  ++open_->operations;
  return EP_STATUS_OK;
}

ep_status CommandStream::wait_semaphore(VkSemaphore semaphore, uint64_t value, ep_error** error) {
  std::lock_guard lock(mutex_);
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  if (open_ != nullptr && open_->operations != 0) {
    if (const ep_status status = submit(error); status != EP_STATUS_OK) return status;
  }
  if (const ep_status status = open_batch(error); status != EP_STATUS_OK) return status;
  open_->foreign_waits.push_back({semaphore, value});
  ++open_->operations;
  return EP_STATUS_OK;
}

ep_status CommandStream::signal_semaphore(VkSemaphore semaphore, uint64_t value, ep_error** error) {
  std::lock_guard lock(mutex_);
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  if (const ep_status status = open_batch(error); status != EP_STATUS_OK) return status;
  open_->foreign_signals.push_back({semaphore, value});
  ++open_->operations;
  return submit(error);
}

// --- recording ---

ep_status CommandStream::Recording::watch_faults(uint64_t tag, int32_t operand, uint64_t* out_address,
                                                 ep_error** error) {
  StagedRange slot;
  const ep_status status = stream_.stage(StagingKind::PARAMETERS, sizeof(FaultSlot), 16, &slot, error);
  if (status != EP_STATUS_OK) return status;
  std::memset(slot.host(), 0, sizeof(FaultSlot));
  const uint64_t number = stream_.list_ != nullptr ? number_ - stream_.list_begins_ - 1 : number_;
  stream_.open_->watches.push_back({slot, number, tag, operand});
  *out_address = slot.address();
  return EP_STATUS_OK;
}

ep_status CommandStream::Recording::add_dispatch(const Dispatch& dispatch, ep_error** error) {
  if (const ep_status status = stream_.open_batch(error); status != EP_STATUS_OK) return status;
  const DeviceApi& api = stream_.context_->api;
  VkCommandBuffer commands = stream_.open_->commands;
  stream_.barrier(device_stages, device_accesses);
  api.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
  api.vkCmdPushConstants(commands, stream_.layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, dispatch.push_size, dispatch.push);
  api.vkCmdDispatch(commands, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
  stream_.open_->work += dispatch.work;
  return stream_.after_operation(error);
}

ep_status CommandStream::Recording::add_copy(VkBuffer dst, uint64_t dst_offset, VkBuffer src, uint64_t src_offset,
                                             uint64_t size, ep_error** error) {
  if (const ep_status status = stream_.open_batch(error); status != EP_STATUS_OK) return status;
  stream_.barrier(device_stages, device_accesses);
  const VkBufferCopy region = {src_offset, dst_offset, size};
  stream_.context_->api.vkCmdCopyBuffer(stream_.open_->commands, src, dst, 1, &region);
  return stream_.after_operation(error);
}

ep_status CommandStream::Recording::add_upload(VkBuffer dst, uint64_t dst_offset, const void* src, uint64_t size,
                                               ep_error** error) {
  StagedRange range;
  if (const ep_status status = stream_.stage(StagingKind::UPLOAD, size, 16, &range, error); status != EP_STATUS_OK) {
    return status;
  }
  std::memcpy(range.host(), src, size);
  return add_copy(dst, dst_offset, range.block->block.buffer, range.offset, size, error);
}

ep_status CommandStream::Recording::add_download(void* dst, VkBuffer src, uint64_t src_offset, uint64_t size,
                                                 ep_error** error) {
  StagedRange range;
  const uint64_t atom = std::max<uint64_t>(stream_.context_->limits().nonCoherentAtomSize, 16);
  if (const ep_status status = stream_.stage(StagingKind::DOWNLOAD, size, atom, &range, error);
      status != EP_STATUS_OK) {
    return status;
  }
  stream_.open_->downloads.push_back({dst, range, size});
  stream_.set_->pending_downloads.fetch_add(1, std::memory_order_relaxed);
  return add_copy(range.block->block.buffer, range.offset, src, src_offset, size, error);
}

}  // namespace tenon::provider::vulkan
