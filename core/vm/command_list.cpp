// The recording of command lists, and their end.
#include "core/vm/command_list.h"

#include <unordered_set>
#include <utility>

#include "core/device/process.h"
#include "core/vm/engine.h"
#include "core/vm/inline.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

// Every list that exists; none outlives its device.
struct LiveLists {
  std::mutex mutex;
  std::unordered_set<CommandList*> all;
};

LiveLists& live_lists() {
  static auto* lists = new LiveLists;
  return *lists;
}

Status refused(const DeviceState* device, ep_status code, ep_error* error) {
  return code == EP_STATUS_UNSUPPORTED ? loader::take_error(code, error, {})
                                       : provider_error(device, code, error, "recording a command list");
}

}  // namespace

Result<std::shared_ptr<CommandList>> CommandList::record(std::shared_ptr<const Segment> segment,
                                                         std::span<const Binding> bindings) {
  TENON_RETURN_IF_ERROR(process::usable());
  const DeviceState* device = segment->device();
  if (!records_lists(device)) {
    return Status(Code::unsupported, fmt::format("{} cannot record command lists.", device->opened->spelling));
  }
  std::shared_ptr<CommandList> list(new CommandList(std::move(segment)));
  TENON_RETURN_IF_ERROR(list->adopt(bindings));
  TENON_RETURN_IF_ERROR(list->make_scratch());
  Status made = list->ask(true);
  if (made.code() == Code::unsupported && !list->moving_.empty()) {
    TENON_RETURN_IF_ERROR(list->make_own_memory());
    made = list->ask(false);
  }
  TENON_RETURN_IF_ERROR(made);
  std::lock_guard lock(live_lists().mutex);
  live_lists().all.insert(list.get());
  return list;
}

Status CommandList::adopt(std::span<const Binding> bindings) {
  if (bindings.size() != segment_->bindings()) {
    return Status(Code::invalid_argument, fmt::format("A segment has {} bindings, but a recording gives {}.",
                                                      segment_->bindings(), bindings.size()));
  }
  bindings_.assign(bindings.begin(), bindings.end());
  kept_.resize(bindings_.size());
  for (uint32_t i = 0; i < bindings_.size(); ++i) {
    Storage* storage = bindings_[i].operand.storage;
    if (storage == nullptr || storage->device != segment_->device()) {
      return Status(Code::invalid_argument, fmt::format("Binding {} of a recording has no memory on {}.", i,
                                                        segment_->device()->opened->spelling));
    }
    if (bindings_[i].moving_bytes != 0) {
      moving_.push_back(i);
    } else {
      storage->retain_tensor();
      kept_[i] = StorageOwner(storage);
    }
  }
  return Status();
}

Status CommandList::make_scratch() {
  if (segment_->scratch_bytes() == 0) return Status();
  TENON_ASSIGN_OR_RETURN(Storage * storage, Storage::make_aligned(segment_->device(), segment_->scratch_bytes()));
  scratch_ = StorageOwner(storage);
  return Status();
}

// Memory for the bindings that move, on a device that records fixed addresses.
Status CommandList::make_own_memory() {
  for (const uint32_t index : moving_) {
    TENON_ASSIGN_OR_RETURN(Storage * storage, Storage::make_aligned(segment_->device(), bindings_[index].moving_bytes));
    kept_[index] = StorageOwner(storage);
  }
  return Status();
}

// A binding as the list has it: where it stays, or in the list's own memory.
Operand CommandList::recorded(size_t index) const {
  Operand operand = bindings_[index].operand;
  if (bindings_[index].moving_bytes == 0 || device_moves_) return operand;
  operand.storage = kept_[index].get();
  operand.offset = 0;
  return operand;
}

Status CommandList::ask(bool device_moves) {
  DeviceQueue& queue = *segment_->device()->queue;
  const std::lock_guard lock(queue.recording);
  TENON_ASSIGN_OR_RETURN(ep_stream * stream, queue.recorder());
  device_moves_ = device_moves;
  return record_on(stream, device_moves);
}

Status CommandList::record_on(ep_stream* stream, bool device_moves) {
  const DeviceState* device = segment_->device();
  const ep_device_ops& ops = device->ops;
  std::vector<ep_buffer> addresses;
  std::vector<ep_binding> moving;
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const Operand operand = recorded(i);
    addresses.push_back(operand.storage->block.at(operand.offset));
    if (device_moves && bindings_[i].moving_bytes != 0) moving.push_back({addresses[i], bindings_[i].moving_bytes});
  }
  ep_command_list_desc desc{};
  desc.struct_size = sizeof desc;
  desc.struct_type = EP_STRUCT_COMMAND_LIST_DESC;
  desc.bindings = moving.empty() ? nullptr : moving.data();
  desc.binding_count = static_cast<uint32_t>(moving.size());
  ep_error* error = nullptr;
  ep_status code = ops.command_list_begin(stream, &desc, &error);
  if (code != EP_STATUS_OK) return refused(device, code, error);
  SegmentCall call;
  call.stream = stream;
  call.bindings = addresses.data();
  if (scratch_) call.scratch = scratch_.get()->block.at(0);
  const SegmentEnd end = launch_all(*segment_, call);
  ep_command_list_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_COMMAND_LIST_INFO;
  code = ops.command_list_end(stream, &handle_, &info, &error);
  if (!end.ok()) {
    static_cast<void>(loader::take_error(code, error, {}));
    return segment_error(*segment_, end);
  }
  if (code != EP_STATUS_OK) return refused(device, code, error);
  bytes_ = info.host_bytes + info.device_bytes + segment_->scratch_bytes();
  return Status();
}

CommandList::~CommandList() {
  ep_command_list* last = nullptr;
  {
    std::lock_guard lock(live_lists().mutex);
    live_lists().all.erase(this);
    last = std::exchange(handle_, nullptr);
  }
  if (last != nullptr && !process::forked()) {
    segment_->device()->ops.command_list_destroy(segment_->device()->handle, last);
  }
}

void destroy_command_lists(DeviceState* device) {
  std::lock_guard lock(live_lists().mutex);
  for (CommandList* list : live_lists().all) {
    if (list->segment_->device() != device || list->handle_ == nullptr) continue;
    device->ops.command_list_destroy(device->handle, std::exchange(list->handle_, nullptr));
  }
}

}  // namespace tenon::vm
