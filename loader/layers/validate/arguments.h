// Arguments by type: how the layer checks an argument, which argument the provider gets instead, and what the layer
// checks after the call. These checks do not depend on the function.
//
//   pass()                 the argument that the provider gets
//   after(call, status)    checks what the provider did with the argument; under the lock
//   end(ok)                gives outputs to the host; under the lock
#pragma once

#include <cstring>
#include <utility>

#include "loader/layers/validate/call.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {

template <class T>
struct Argument {
  Argument(Call&, T given) : value(given) {}
  T pass() const { return value; }
  void after(Call&, ep_status) const {}
  void end(bool) const {}

  T value;
};

template <>
struct Argument<ep_device*> : Argument<void*> {
  Argument(Call& call, ep_device* device) : Argument<void*>(call, device) { call.enter_device(device); }
  ep_device* pass() const { return static_cast<ep_device*>(value); }
};

// --- handles ---

template <class Kept, class Handle, Kind kind>
struct HandleArgument {
  HandleArgument(Call& call, Handle* handle) : object(static_cast<Kept*>(call.enter(kind, handle))) {}
  Handle* pass() const { return object == nullptr ? nullptr : static_cast<Handle*>(object->inner); }
  void after(Call&, ep_status) const {}
  void end(bool) const {}

  Kept* object;
};

#define TENON_HANDLE_ARGUMENT(Kept, handle, kind)                 \
  template <>                                                     \
  struct Argument<handle*> : HandleArgument<Kept, handle, kind> { \
    using HandleArgument::HandleArgument;                         \
  };
TENON_HANDLE_ARGUMENT(Memory, ep_memory, Kind::memory)
TENON_HANDLE_ARGUMENT(Event, ep_event, Kind::event)
TENON_HANDLE_ARGUMENT(Primitive, ep_primitive, Kind::primitive)
TENON_HANDLE_ARGUMENT(Graph, ep_graph, Kind::graph)
TENON_HANDLE_ARGUMENT(Semaphore, ep_semaphore, Kind::semaphore)
TENON_HANDLE_ARGUMENT(CommandList, ep_command_list, Kind::list)
TENON_HANDLE_ARGUMENT(Module, ep_module, Kind::module)
TENON_HANDLE_ARGUMENT(Kernel, ep_kernel, Kind::kernel)
#undef TENON_HANDLE_ARGUMENT

template <>
struct Argument<ep_stream*> : HandleArgument<Stream, ep_stream, Kind::stream> {
  using HandleArgument::HandleArgument;
  void after(Call& call, ep_status status) const;  // list_rules.cpp
};

template <>
struct Argument<ep_buffer> : Argument<ep_memory*> {
  Argument(Call& call, ep_buffer buffer) : Argument<ep_memory*>(call, buffer.memory), offset(buffer.offset) {}
  ep_buffer pass() const { return {Argument<ep_memory*>::pass(), offset}; }

  uint64_t offset;
};

// --- new handles ---

// Destroys a provider's object that the host will never get.
void discard(Layer& layer, Kind kind, void* handle);

template <class Kept, class Handle, Kind kind>
struct CreatedArgument {
  CreatedArgument(Call& call, Handle** given) : out(given), made(untouched()) {
    if (out == nullptr) call.refuse("A01", "the pointer to the new handle is NULL");
  }
  Handle** pass() { return &made; }
  void after(Call& call, ep_status status) {
    if (status != EP_STATUS_OK) {
      if (made != untouched()) call.blame("E01", "it failed and wrote the place for the new handle");
      return;
    }
    if (made == nullptr || made == untouched()) {
      return call.blame("R01", fmt::format("it returned OK and gave no {}", kind_names[static_cast<int>(kind)]));
    }
    object.reset(new Kept(call.layer, made));
  }
  void end(bool ok) {
    if (object == nullptr) return;
    if (!ok) return discard(*object->layer, kind, object->inner);
    *out = reinterpret_cast<Handle*>(static_cast<Object*>(object.get()));
    Objects::instance().add(object.release());
  }

  Handle** out;
  Handle* made;
  std::unique_ptr<Kept> object;

 private:
  static Handle* untouched() { return reinterpret_cast<Handle*>(uintptr_t{0x5a5a5a5a5a5a}); }
};

#define TENON_CREATED_ARGUMENT(Kept, handle, kind)                  \
  template <>                                                       \
  struct Argument<handle**> : CreatedArgument<Kept, handle, kind> { \
    using CreatedArgument::CreatedArgument;                         \
  };
TENON_CREATED_ARGUMENT(Memory, ep_memory, Kind::memory)
TENON_CREATED_ARGUMENT(Stream, ep_stream, Kind::stream)
TENON_CREATED_ARGUMENT(Event, ep_event, Kind::event)
TENON_CREATED_ARGUMENT(Primitive, ep_primitive, Kind::primitive)
TENON_CREATED_ARGUMENT(Graph, ep_graph, Kind::graph)
TENON_CREATED_ARGUMENT(Semaphore, ep_semaphore, Kind::semaphore)
TENON_CREATED_ARGUMENT(CommandList, ep_command_list, Kind::list)
TENON_CREATED_ARGUMENT(Module, ep_module, Kind::module)
TENON_CREATED_ARGUMENT(Kernel, ep_kernel, Kind::kernel)
#undef TENON_CREATED_ARGUMENT

// --- other outputs ---

inline bool is_launch(Slot slot) {
  return slot == Slot::primitive_launch || slot == Slot::graph_launch || slot == Slot::kernel_launch;
}

// An out-parameter that the provider writes only on success (an ep_fault: only on EP_STATUS_FAULT).
template <class T>
struct ValueArgument {
  ValueArgument(Call& call, T* given) : out(given) {
    if (out == nullptr && !is_launch(call.slot())) call.refuse("A01", "the pointer to the answer is NULL");
    std::memset(&written, 0x5a, sizeof written);
    before = written;
  }
  T* pass() { return out == nullptr ? nullptr : &written; }
  void after(Call& call, ep_status status) {
    wanted = status == (is_launch(call.slot()) ? EP_STATUS_FAULT : EP_STATUS_OK);
    const bool changed = std::memcmp(&written, &before, sizeof written) != 0;
    if (!wanted && changed) call.blame("E01", fmt::format("it wrote an output though it answered {}", status));
  }
  void end(bool ok) const {
    if (ok && wanted && out != nullptr) *out = written;
  }

  T* out;
  T written, before;
  bool wanted = false;
};
template <>
struct Argument<uint64_t*> : ValueArgument<uint64_t> {
  using ValueArgument::ValueArgument;
};
template <>
struct Argument<void**> : ValueArgument<void*> {
  using ValueArgument::ValueArgument;
};
template <>
struct Argument<ep_fault*> : ValueArgument<ep_fault> {
  using ValueArgument::ValueArgument;
};

// A struct with struct_size and struct_type, with guard bytes before and after it.
template <class T, uint32_t type>
struct InfoArgument {
  InfoArgument(Call& call, T* given) : out(given) {
    if (out == nullptr) {
      call.refuse("A01", "the pointer to the answer is NULL");
    } else if (out->struct_type != type || out->struct_size != sizeof(T)) {
      call.refuse("T01", fmt::format("the answer's struct_size is {} and its struct_type {}", out->struct_size,
                                     out->struct_type));
    }
    if (call.refused()) return;
    std::memset(&room, 0xc5, sizeof room);
    room.info = before = *out;
  }
  T* pass() { return &room.info; }
  void after(Call& call, ep_status status) {
    for (unsigned char byte : room.guard) {
      if (byte == 0xc5) continue;
      call.blame("T01", "it wrote past the struct_size of the answer");
      break;
    }
    if (room.info.struct_type != type || room.info.struct_size > sizeof(T)) {
      call.blame("T01", fmt::format("it left struct_size {} and struct_type {} in the answer", room.info.struct_size,
                                    room.info.struct_type));
    }
    if (status != EP_STATUS_OK && std::memcmp(&room.info, &before, sizeof before) != 0) {
      call.blame("E01", "it failed and wrote the answer");
    }
    ok_ = status == EP_STATUS_OK;
  }
  void end(bool ok) const {
    if (ok && ok_) *out = room.info;
  }

  T* out;
  struct {
    T info;
    unsigned char guard[64];
  } room{};
  T before{};

 private:
  bool ok_ = false;
};
template <>
struct Argument<ep_support_info*> : InfoArgument<ep_support_info, EP_STRUCT_SUPPORT_INFO> {
  using InfoArgument::InfoArgument;
};
template <>
struct Argument<ep_primitive_info*> : InfoArgument<ep_primitive_info, EP_STRUCT_PRIMITIVE_INFO> {
  using InfoArgument::InfoArgument;
};

template <>
struct Argument<ep_layout_info*> : InfoArgument<ep_layout_info, EP_STRUCT_LAYOUT_INFO> {
  using InfoArgument::InfoArgument;
};

template <>
struct Argument<ep_command_list_info*> : InfoArgument<ep_command_list_info, EP_STRUCT_COMMAND_LIST_INFO> {
  using InfoArgument::InfoArgument;
};

template <>
struct Argument<ep_error**> {
  Argument(Call&, ep_error** given) : out(given) {}
  ep_error** pass() { return out == nullptr ? nullptr : &made; }
  void after(Call& call, ep_status status);
  void end(bool) const {}

  ep_error** out;
  ep_error* made = nullptr;
};

// A launch, with the provider's handles in it.
template <>
struct Argument<const ep_launch*> {
  Argument(Call& call, const ep_launch* given);
  const ep_launch* pass() {
    inner.operands = operands;  // not in the constructor: arguments move
    return &inner;
  }
  void after(Call&, ep_status) const {}
  void end(bool) const {}

  const ep_launch* launch;
  ep_launch inner{};
  ep_buffer operands[EP_MAX_OPERANDS] = {};
  Memory* memories[EP_MAX_OPERANDS] = {};  // null: no memory was given
  Memory* workspace = nullptr;
  Memory* scratch = nullptr;
};

// The description of a recording, with the provider's handles in it.
template <>
struct Argument<const ep_command_list_desc*> {
  Argument(Call& call, const ep_command_list_desc* given);
  const ep_command_list_desc* pass() {
    inner.bindings = bindings.empty() ? nullptr : bindings.data();
    return &inner;
  }
  void after(Call&, ep_status) const {}
  void end(bool) const {}

  ep_command_list_desc inner{};
  std::vector<ep_binding> bindings;
  std::vector<Memory*> memories;  // the memory of each binding
};

// A replay, with the provider's handles in it.
template <>
struct Argument<const ep_command_list_replay_desc*> {
  Argument(Call& call, const ep_command_list_replay_desc* given);
  const ep_command_list_replay_desc* pass() {
    inner.bindings = buffers.empty() ? nullptr : buffers.data();
    return &inner;
  }
  void after(Call&, ep_status) const {}
  void end(bool) const {}

  ep_command_list_replay_desc inner{};
  std::vector<ep_buffer> buffers;
  std::vector<Memory*> memories;
};

}  // namespace tenon::loader::validate
