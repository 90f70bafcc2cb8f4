// Command lists, on the asynchronous mirror: a replay is one piece of work of a queue, which runs the recorded calls.
#include <utility>
#include <vector>

#include "tests/fakes/mirror/device.h"

struct ep_command_list {
  const ep_host* host;
  ep_device* device = nullptr;
  std::shared_ptr<tenon::mirror::Queue> queue = {};  // the queue of the stream that recorded
  std::shared_ptr<tenon::mirror::RecordedCommands> recording = {};
  std::vector<const char*> begins = {};  // addresses of the bindings when they were recorded
  int replays = 0;
};

namespace tenon::mirror {
namespace {

using provider::destroy;
using provider::entry;
using provider::fail_text;
using provider::fill;
using provider::make;

ep_status command_list_begin(ep_stream* stream, const ep_command_list_desc* desc, ep_error**) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  auto recording = std::make_unique<RecordedCommands>();
  if (desc->binding_count != 0) recording->bindings.assign(desc->bindings, desc->bindings + desc->binding_count);
  stream->recording = std::move(recording);
  return EP_STATUS_OK;
}

ep_status command_list_end(ep_stream* stream, ep_command_list** out_list, ep_command_list_info* out_info,
                           ep_error** error) {
  if (stream->recording == nullptr) {
    const bool wrong = stream->device->breaks("list_end_alone");
    return fail_text(stream->host, error, wrong ? EP_STATUS_INTERNAL : EP_STATUS_INVALID_ARGUMENT,
                     "The stream does not record.");
  }
  std::shared_ptr<RecordedCommands> recording = std::move(stream->recording);
  auto* list = make<ep_command_list>(stream->host, stream->host);
  list->device = stream->device;
  list->queue = stream->queue;
  list->recording = std::move(recording);
  for (const ep_binding& binding : list->recording->bindings) list->begins.push_back(address_of(binding.buffer));
  ep_command_list_info info{};
  info.host_bytes = sizeof *list;
  fill(out_info, info);
  *out_list = list;
  return EP_STATUS_OK;
}

void command_list_destroy(ep_device*, ep_command_list* list) noexcept { destroy(list); }

// One replay, and copies of what it borrowed.
struct Replay {
  const ep_device* device;
  std::shared_ptr<RecordedCommands> recording;
  Places places;
  uint64_t tag;

  void run(std::deque<ep_fault>* out_faults) const;
};

void Replay::run(std::deque<ep_fault>* out_faults) const {
  const size_t count = recording->calls.size();
  for (size_t i = 0; i < count; ++i) {
    std::vector<ep_fault> faults;
    const size_t at = device->breaks("list_backwards") ? count - 1 - i : i;
    recording->calls[at](places, &faults);
    for (ep_fault& fault : faults) {
      if (!device->breaks("list_first_tag")) fault.tag = tag;
      fault.flags |= EP_FAULT_FLAG_NODE(device->breaks("list_first_call") ? 0 : at);
      out_faults->push_back(fault);
    }
  }
}

ep_status command_list_replay(ep_command_list* list, ep_stream* stream, const ep_command_list_replay_desc* desc,
                              ep_error**) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  const ep_device* device = list->device;
  Replay replay{device, list->recording, {}, desc->tag};
  for (uint32_t i = 0; i < desc->binding_count && !device->breaks("list_fixed"); ++i) {
    replay.places.moved.push_back({list->begins[i], list->recording->bindings[i].size, address_of(desc->bindings[i])});
  }
  if (device->breaks("list_once") && list->replays++ != 0) return EP_STATUS_OK;
  if (device->breaks("list_of_stream") && list->queue != stream->queue) {
    const std::lock_guard lock(*list->queue->mutex);
    if (list->queue->stream_gone) return EP_STATUS_OK;
    list->queue->pending.push_back([replay, queue = list->queue] { replay.run(&queue->faults); });
    ++list->queue->submitted;
    return EP_STATUS_OK;
  }
  stream->submit([replay = std::move(replay), queue = stream->queue] { replay.run(&queue->faults); });
  return EP_STATUS_OK;
}

}  // namespace

void fill_lists(ep_device_ops* ops) {
  ops->command_list_begin = entry<command_list_begin>;
  ops->command_list_end = entry<command_list_end>;
  ops->command_list_destroy = command_list_destroy;
  ops->command_list_replay = entry<command_list_replay>;
}

}  // namespace tenon::mirror
