// The rules of command lists: what a stream records, and when a list runs.
#include "loader/layers/validate/rules.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {
namespace {

using Access = RecordedCommands::Access;

Memory* enter_memory(Call& call, ep_buffer* buffer) {
  auto* memory = static_cast<Memory*>(call.enter(Kind::memory, buffer->memory));
  buffer->memory = memory == nullptr ? nullptr : static_cast<ep_memory*>(memory->inner);
  return memory;
}

// True if `slot` is a call that a recording stream records, or that ends the recording or the stream.
bool records_or_ends(Slot slot) {
  return slot == Slot::primitive_launch || slot == Slot::kernel_launch || slot == Slot::copy ||
         slot == Slot::command_list_begin || slot == Slot::command_list_end || slot == Slot::stream_destroy;
}

std::vector<Access> bindings_of(const Argument<const ep_command_list_desc*>& desc) {
  std::vector<Access> bindings;
  for (size_t i = 0; i < desc.bindings.size(); ++i) {
    bindings.push_back({desc.memories[i], desc.bindings[i].buffer.offset, desc.bindings[i].size, 1, false});
  }
  return bindings;
}

void check_pool(Call& call, const Memory& memory, size_t index) {
  if (memory.pool == 0 && !memory.image) return;
  call.refuse("K06", fmt::format("binding {} lies in pool {}; bindings are memory of pool 0", index, memory.pool));
}

// Refuses a replay whose buffers overlap each other or fixed memory, if one of the two is written.
void check_overlaps(Call& call, const RecordedCommands& recorded, const std::vector<Access>& now) {
  for (size_t i = 0; i < now.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!now[i].overlaps(now[j]) || (!now[i].written && !now[j].written)) continue;
      return call.refuse("K06", fmt::format("the buffers of bindings {} and {} overlap, and one is written", j, i));
    }
    for (const Access& fixed : recorded.fixed) {
      if (!now[i].overlaps(fixed) || (!now[i].written && !fixed.written)) continue;
      return call.refuse(
          "K06", fmt::format("the buffer of binding {} overlaps a fixed operand, and one of the two is written", i));
    }
  }
}

// The memory that a replay uses instead of the bindings.
std::vector<Access> moved(const RecordedCommands& recorded,
                          const Argument<const ep_command_list_replay_desc*>& replay) {
  std::vector<Access> now = recorded.bindings;
  for (size_t i = 0; i < now.size(); ++i) {
    now[i].memory = replay.memories[i];
    now[i].offset = replay.buffers[i].offset;
  }
  return now;
}

}  // namespace

void Argument<ep_stream*>::after(Call& call, ep_status status) const {
  if (object == nullptr || object->recording == nullptr || status != EP_STATUS_OK) return;
  if (records_or_ends(call.slot()) && call.slot() != Slot::command_list_begin) return;
  call.blame("K01", "it returned OK, and the stream records");
}

Argument<const ep_command_list_desc*>::Argument(Call& call, const ep_command_list_desc* given) {
  if (given == nullptr) {
    call.refuse("A01", "the description of the recording is NULL");
    return;
  }
  if (given->struct_type != EP_STRUCT_COMMAND_LIST_DESC || given->struct_size < sizeof(ep_command_list_desc)) {
    call.refuse("T01", fmt::format("the description's struct_size is {} and its struct_type {}", given->struct_size,
                                   given->struct_type));
    return;
  }
  inner = *given;
  if (given->binding_count != 0 && given->bindings == nullptr) {
    call.refuse("A01", fmt::format("the list of {} bindings is NULL", given->binding_count));
    return;
  }
  for (uint32_t i = 0; i < given->binding_count; ++i) {
    bindings.push_back(given->bindings[i]);
    memories.push_back(enter_memory(call, &bindings.back().buffer));
  }
}

Argument<const ep_command_list_replay_desc*>::Argument(Call& call, const ep_command_list_replay_desc* given) {
  if (given == nullptr) {
    call.refuse("A01", "the replay is NULL");
    return;
  }
  inner = *given;
  if (given->binding_count != 0 && given->bindings == nullptr) {
    call.refuse("A01", fmt::format("the list of {} bindings is NULL", given->binding_count));
    return;
  }
  for (uint32_t i = 0; i < given->binding_count; ++i) {
    buffers.push_back(given->bindings[i]);
    memories.push_back(enter_memory(call, &buffers.back()));
  }
}

void before(Tag<Slot::command_list_begin>, Call& call, StreamHandle& stream,
            Argument<const ep_command_list_desc*>& desc, Error&) {
  if (call.refused()) return;
  const bool idle = stream.object->point <= Objects::instance().seen.at(stream.object->number);
  if (stream.object->recording == nullptr && !idle) {
    call.refuse("K04", "the host has not observed that the work of the stream is done");
  }
  const std::vector<Access> bindings = bindings_of(desc);
  for (size_t i = 0; i < bindings.size(); ++i) {
    check_pool(call, *bindings[i].memory, i);
    check_range(call, *bindings[i].memory, bindings[i].offset, bindings[i].bytes, fmt::format("binding {}", i));
    for (size_t j = 0; j < i; ++j) {
      if (bindings[i].overlaps(bindings[j])) call.refuse("K06", fmt::format("bindings {} and {} overlap", j, i));
    }
  }
}

void after(Tag<Slot::command_list_begin>, Call&, ep_status status, StreamHandle& stream,
           Argument<const ep_command_list_desc*>& desc, Error&) {
  if (status != EP_STATUS_OK || stream.object->recording != nullptr) return;
  stream.object->recording = std::make_unique<RecordedCommands>();
  stream.object->recording->bindings = bindings_of(desc);
}

void before(Tag<Slot::command_list_end>, Call& call, StreamHandle& stream, Argument<ep_command_list**>&,
            Argument<ep_command_list_info*>&, Error&) {
  if (stream.object != nullptr && stream.object->recording == nullptr) call.refuse("K04", "the stream does not record");
}

void after(Tag<Slot::command_list_end>, Call& call, ep_status status, StreamHandle& stream,
           Argument<ep_command_list**>& out, Argument<ep_command_list_info*>&, Error&) {
  const std::unique_ptr<RecordedCommands> recorded = std::move(stream.object->recording);
  if (status != EP_STATUS_OK) return;
  if (recorded->failed) return call.blame("K03", "it made a list, and a recorded call has failed");
  if (out.object == nullptr) return;
  out.object->recorded = std::move(*recorded);
  for (Object* object : out.object->recorded.used) ++object->lists;
}

void before(Tag<Slot::command_list_destroy>, Call& call, Device&, ListHandle& list) {
  if (list.object != nullptr) call.check_unused(*list.object);
}

void after(Tag<Slot::command_list_destroy>, Call&, ep_status, Device&, ListHandle& list) {
  if (list.object == nullptr) return;
  for (Object* object : list.object->recorded.used) --object->lists;
  list.object->recorded.used.clear();
  Objects::instance().bury(list.object);
}

void before(Tag<Slot::command_list_replay>, Call& call, ListHandle& list, StreamHandle&,
            Argument<const ep_command_list_replay_desc*>& replay, Error&) {
  if (call.refused()) return;
  const RecordedCommands& recorded = list.object->recorded;
  if (!Objects::instance().unseen(list.object->uses).empty()) {
    return call.refuse("K05", "the host has not observed that the last replay of the list is done");
  }
  if (replay.buffers.size() != recorded.bindings.size()) {
    return call.refuse("K06", fmt::format("the replay gives {} buffers for {} bindings", replay.buffers.size(),
                                          recorded.bindings.size()));
  }
  const std::vector<Access> now = moved(recorded, replay);
  for (size_t i = 0; i < now.size(); ++i) {
    check_pool(call, *now[i].memory, i);
    check_range(call, *now[i].memory, now[i].offset, now[i].bytes, fmt::format("the buffer of binding {}", i));
    if (now[i].offset % now[i].alignment == recorded.bindings[i].offset % now[i].alignment) continue;
    call.refuse("K06",
                fmt::format("the buffer of binding {} begins at offset {}, and its operands want multiples of {}", i,
                            now[i].offset, now[i].alignment));
  }
  if (!call.refused()) check_overlaps(call, recorded, now);
}

void after(Tag<Slot::command_list_replay>, Call& call, ep_status status, ListHandle& list, StreamHandle& stream,
           Argument<const ep_command_list_replay_desc*>& replay, Error&) {
  if (status != EP_STATUS_OK) return;
  submitted(*stream.object, {list.object});
  const RecordedCommands& recorded = list.object->recorded;
  for (const Access& access : moved(recorded, replay)) {
    access.memory->uses.raise(stream.object->number, stream.object->point);
    if (access.written) forget_values(*access.memory, access.offset, access.bytes);
  }
  if (call.layer->inner.stream_take_fault == nullptr) return;
  stream.object->launched.push_back({replay.inner.tag, stream.object->point, recorded.calls, "K08"});
}

void check_bindings(Call& call, const Stream& stream, const std::vector<Access>& accesses) {
  if (stream.recording == nullptr) return;
  for (const Access& access : accesses) {
    for (const Access& binding : stream.recording->bindings) {
      if (!access.begins_in(binding) || access.offset + access.bytes <= binding.offset + binding.bytes) continue;
      call.refuse("K06", fmt::format("an operand of {} bytes begins in a binding of {} bytes and ends behind it",
                                     access.bytes, binding.bytes));
    }
  }
}

void note_recorded(Stream& stream, ep_status status, Object* primitive, const std::vector<Access>& accesses) {
  RecordedCommands& recorded = *stream.recording;
  if (status != EP_STATUS_OK) {
    recorded.failed = true;
    return;
  }
  ++recorded.calls;
  if (primitive != nullptr) recorded.used.insert(primitive);
  for (const Access& access : accesses) recorded.add(access);
}

void check_no_list(Call& call, const Object* object) {
  if (object != nullptr && object->lists != 0) {
    call.note("K07", fmt::format("{} command lists use the {}", object->lists, object->kind_name()));
  }
}

}  // namespace tenon::loader::validate
