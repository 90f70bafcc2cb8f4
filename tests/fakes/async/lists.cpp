// Command lists: a stream that records keeps its commands and their accesses. A replay is one command of a stream,
// which runs the recorded ones one after the other; its accesses are checked when it is submitted.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sdk/provider/negotiate.h"
#include "tests/fakes/async/device.h"

using tenon::fakes::Access;
using tenon::fakes::Command;

struct ep_command_list {
  struct Range {
    ep_buffer buffer;
    char* begin = nullptr;  // the address of the memory when it was recorded
    uint64_t size = 0;
  };

  ep_device* device = nullptr;
  std::vector<Range> bindings;
  std::vector<Command> commands;
  std::vector<Access> accesses;
  std::set<ep_memory*> fixed;  // memory that is in no binding
  std::atomic<bool> running{false};
  int last_stream = -1;  // the stream of the last replay
  uint64_t last_number = 0;

  // The binding in which `buffer` begins; null: none.
  const Range* binding_of(ep_buffer buffer) const {
    const auto found = std::find_if(bindings.begin(), bindings.end(), [&](const Range& range) {
      return range.buffer.memory == buffer.memory && buffer.offset >= range.buffer.offset &&
             buffer.offset < range.buffer.offset + range.size;
    });
    return found == bindings.end() ? nullptr : &*found;
  }
  bool seen_done() const {
    if (running || last_stream < 0) return !running;
    return !tenon::fakes::async_control().shadow || device->plugin->shadow.host_has_seen(last_stream, last_number);
  }
};

namespace tenon::fakes {
namespace {

ep_status command_list_begin(ep_stream* stream, const ep_command_list_desc* desc, ep_error** error) {
  AsyncControl& control = async_control();
  const ep_host* host = stream->device->host;
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (is_lost()) return lost(stream->device, error);
  if (const ep_status told = control.begin_answer; told != EP_STATUS_OK) {
    return fail(host, error, told, "the recording was told to fail.");
  }
  if (desc->binding_count != 0 && !control.bindings) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "the lists of this device have fixed addresses.");
  }
  Shadow& shadow = stream->device->plugin->shadow;
  if (control.shadow && !shadow.host_has_seen_all(stream->number)) {
    control.violate("a recording begins on a stream whose work is not known to be done");
  }
  stream->recording = std::make_unique<RecordedCommands>();
  if (desc->binding_count != 0) {
    stream->recording->bindings.assign(desc->bindings, desc->bindings + desc->binding_count);
  }
  return EP_STATUS_OK;
}

// Returns the primitives that the commands launch.
std::set<const ep_primitive*> primitives_of(const ep_command_list& list) {
  std::set<const ep_primitive*> primitives;
  for (const Command& command : list.commands) {
    if (command.primitive != nullptr) primitives.insert(command.primitive);
  }
  return primitives;
}

// Adds the list to the users of the objects that it uses, or removes it.
void count(const ep_command_list& list, int change) {
  for (ep_memory* memory : list.fixed) memory->lists += change;
  for (const ep_primitive* primitive : primitives_of(list)) const_cast<ep_primitive*>(primitive)->lists += change;
  for (const Command& command : list.commands) {
    if (command.kernel_run != nullptr) count_list(command.kernel_run, change);
  }
}

std::unique_ptr<ep_command_list> make_list(ep_device* device, RecordedCommands& recording) {
  auto list = std::make_unique<ep_command_list>();
  list->device = device;
  for (const ep_binding& binding : recording.bindings) {
    list->bindings.push_back({binding.buffer, address(binding.buffer), binding.size});
  }
  list->commands = std::move(recording.commands);
  list->accesses = std::move(recording.accesses);
  for (const Access& access : list->accesses) {
    const ep_command_list::Range* binding = list->binding_of(access.buffer);
    if (binding == nullptr) {
      list->fixed.insert(access.buffer.memory);
    } else if (access.buffer.offset + access.bytes > binding->buffer.offset + binding->size) {
      async_control().violate("a recorded operand begins in a binding and ends behind it");
    }
  }
  return list;
}

ep_status command_list_end(ep_stream* stream, ep_command_list** out, ep_command_list_info* out_info, ep_error** error) {
  const ep_host* host = stream->device->host;
  if (stream->recording == nullptr) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "the stream does not record.");
  }
  const std::unique_ptr<RecordedCommands> recording = std::move(stream->recording);
  if (is_lost()) return lost(stream->device, error);
  if (const ep_status told = async_control().end_answer; told != EP_STATUS_OK) {
    return fail(host, error, told, "the list was told to fail.");
  }
  if (recording->calls != recording->commands.size()) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "a recorded call has failed.");
  }
  std::unique_ptr<ep_command_list> list = make_list(stream->device, *recording);
  count(*list, 1);
  async_control().command_lists.fetch_add(1);
  ep_command_list_info info{};
  info.host_bytes = sizeof *list + list->commands.size() * sizeof(Command);
  provider::fill(out_info, info);
  *out = list.release();
  return EP_STATUS_OK;
}

void command_list_destroy(ep_device*, ep_command_list* list) {
  if (list == nullptr) return;
  if (!is_lost() && !list->seen_done()) {
    async_control().violate("a command list is destroyed before its last replay is known to be done");
  }
  count(*list, -1);
  async_control().command_lists.fetch_sub(1);
  delete list;
}

// The accesses of a replay whose bindings are `buffers`.
std::vector<Access> moved(const ep_command_list& list, const ep_buffer* buffers) {
  std::vector<Access> accesses = list.accesses;
  for (Access& access : accesses) {
    if (const ep_command_list::Range* binding = list.binding_of(access.buffer)) {
      const ep_buffer& now = buffers[binding - list.bindings.data()];
      access.buffer = {now.memory, now.offset + access.buffer.offset - binding->buffer.offset};
    }
  }
  return accesses;
}

ep_status command_list_replay(ep_command_list* list, ep_stream* stream, const ep_command_list_replay_desc* desc,
                              ep_error** error) {
  AsyncControl& control = async_control();
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (is_lost()) return lost(stream->device, error);
  if (due(control.fail_replay, control.failed_replays)) {
    return fail(stream->device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "this replay was told to find no room.");
  }
  if (!list->seen_done()) control.violate("a command list is replayed before its last replay is known to be done");
  if (desc->binding_count != list->bindings.size()) control.violate("a replay has another number of bindings");
  control.replays.fetch_add(1, std::memory_order_relaxed);
  Command command;
  command.kind = Command::replay;
  command.list = list;
  command.tag = desc->tag;
  command.operands = std::make_shared<std::vector<char*>>();
  for (uint32_t i = 0; i < desc->binding_count; ++i) command.operands->push_back(address(desc->bindings[i]));
  const std::vector<Access> accesses = moved(*list, desc->bindings);
  check(stream, accesses.data(), accesses.size());
  list->running = true;
  list->last_stream = stream->number;
  list->last_number = stream->device->plugin->shadow.record(stream->number).seen[static_cast<size_t>(stream->number)];
  stream->push(std::move(command));
  return EP_STATUS_OK;
}

}  // namespace

void begin_work(ep_stream* stream) {
  if (stream->recording != nullptr) ++stream->recording->calls;
}

size_t list_length(const Command& replay) { return replay.list->commands.size(); }

Command placed(const Command& replay, size_t index) {
  const ep_command_list& list = *replay.list;
  Command command = list.commands[index];
  command.tag = replay.tag;
  const auto move = [&](char*& pointer) {
    for (size_t i = 0; i < list.bindings.size(); ++i) {
      const ep_command_list::Range& range = list.bindings[i];
      if (pointer < range.begin || pointer >= range.begin + range.size) continue;
      pointer = (*replay.operands)[i] + (pointer - range.begin);
      return;
    }
  };
  for (char*& pointer : command.pointers) move(pointer);
  move(command.workspace);
  if (command.operands != nullptr) {
    command.operands = std::make_shared<std::vector<char*>>(*command.operands);
    for (char*& pointer : *command.operands) move(pointer);
  }
  return command;
}

void end_replay(const Command& replay) { replay.list->running = false; }

void fill_lists(ep_device_ops* ops) {
  ops->command_list_begin = command_list_begin;
  ops->command_list_end = command_list_end;
  ops->command_list_destroy = command_list_destroy;
  ops->command_list_replay = command_list_replay;
}

}  // namespace tenon::fakes
