// The rules of single functions. The layer calls `before` when each argument has passed its own check, before it calls
// the provider. It calls `after` with the provider's status; `after` also records the effects of the call. A function
// without an overload has no rule of its own.
#pragma once

#include "loader/layers/validate/graph_arguments.h"
#include "loader/layers/validate/module_arguments.h"

namespace tenon::loader::validate {

template <Slot slot>
struct Tag {};

template <Slot slot, class... Args>
void before(Tag<slot>, Call&, Args&...) {}
template <Slot slot, class... Args>
void after(Tag<slot>, Call&, ep_status, Args&...) {}

using Device = Argument<ep_device*>;
using Error = Argument<ep_error**>;
using MemoryHandle = Argument<ep_memory*>;
using StreamHandle = Argument<ep_stream*>;
using EventHandle = Argument<ep_event*>;
using PrimitiveHandle = Argument<ep_primitive*>;
using GraphHandle = Argument<ep_graph*>;
using ListHandle = Argument<ep_command_list*>;
using ModuleHandle = Argument<ep_module*>;
using KernelHandle = Argument<ep_kernel*>;
using SemaphoreHandle = Argument<ep_semaphore*>;
using ImportDesc = Argument<const ep_import_desc*>;
using Buffer = Argument<ep_buffer>;
using Number = Argument<uint64_t>;

// --- memory_rules.cpp ---

void before(Tag<Slot::memory_allocate>, Call&, Device&, Argument<uint32_t>& pool, Number& size, Argument<ep_memory**>&,
            Error&);
void after(Tag<Slot::memory_allocate>, Call&, ep_status, Device&, Argument<uint32_t>& pool, Number& size,
           Argument<ep_memory**>&, Error&);
void before(Tag<Slot::memory_free>, Call&, Device&, MemoryHandle&);
void after(Tag<Slot::memory_free>, Call&, ep_status, Device&, MemoryHandle&);
void before(Tag<Slot::memory_map>, Call&, Device&, MemoryHandle&, Argument<void**>&, Error&);
void after(Tag<Slot::memory_map>, Call&, ep_status, Device&, MemoryHandle&, Argument<void**>&, Error&);
void before(Tag<Slot::memory_flush>, Call&, Device&, MemoryHandle&, Number& offset, Number& size, Error&);
void before(Tag<Slot::memory_invalidate>, Call&, Device&, MemoryHandle&, Number& offset, Number& size, Error&);
void before(Tag<Slot::memory_import_host>, Call&, Device&, Argument<void*>&, Number& size, Argument<ep_memory**>&,
            Error&);
void after(Tag<Slot::memory_import_host>, Call&, ep_status, Device&, Argument<void*>&, Number& size,
           Argument<ep_memory**>&, Error&);
void before(Tag<Slot::copy>, Call&, StreamHandle&, Buffer& dst, Buffer& src, Number& size, Error&);
void after(Tag<Slot::copy>, Call&, ep_status, StreamHandle&, Buffer& dst, Buffer& src, Number& size, Error&);
void before(Tag<Slot::upload>, Call&, StreamHandle&, Buffer& dst, Argument<const void*>&, Number& size, Error&);
void after(Tag<Slot::upload>, Call&, ep_status, StreamHandle&, Buffer& dst, Argument<const void*>&, Number& size,
           Error&);
void before(Tag<Slot::download>, Call&, StreamHandle&, Argument<void*>&, Buffer& src, Number& size, Error&);
void after(Tag<Slot::download>, Call&, ep_status, StreamHandle&, Argument<void*>&, Buffer& src, Number& size, Error&);
void before(Tag<Slot::peer_open>, Call&, Device&, Device& peer, Error&);
void after(Tag<Slot::peer_open>, Call&, ep_status, Device&, Device& peer, Error&);
void before(Tag<Slot::peer_copy>, Call&, StreamHandle&, Buffer& dst, Device& peer, Buffer& src, Number& size, Error&);
void after(Tag<Slot::peer_copy>, Call&, ep_status, StreamHandle&, Buffer& dst, Device& peer, Buffer& src, Number& size,
           Error&);

// True if `memory` lies in a pool that is EP_POOL_FLAG_EXCLUSIVE.
bool is_exclusive(const Memory& memory);

// --- stream_rules.cpp ---

void before(Tag<Slot::stream_create>, Call&, Device&, Argument<const ep_stream_desc*>&, Argument<ep_stream**>&, Error&);
void after(Tag<Slot::stream_create>, Call&, ep_status, Device&, Argument<const ep_stream_desc*>&,
           Argument<ep_stream**>&, Error&);

// Notes that submitted work of `stream` uses `objects`. Null objects are ignored.
void submitted(Stream& stream, std::initializer_list<Object*> objects);

void before(Tag<Slot::stream_destroy>, Call&, Device&, StreamHandle&);
void after(Tag<Slot::stream_destroy>, Call&, ep_status, Device&, StreamHandle&);
void before(Tag<Slot::stream_synchronize>, Call&, StreamHandle&, Error&);
void after(Tag<Slot::stream_synchronize>, Call&, ep_status, StreamHandle&, Error&);
void after(Tag<Slot::stream_take_fault>, Call&, ep_status, StreamHandle&, Argument<ep_fault*>&, Error&);
void before(Tag<Slot::event_destroy>, Call&, Device&, EventHandle&);
void after(Tag<Slot::event_destroy>, Call&, ep_status, Device&, EventHandle&);
void after(Tag<Slot::event_record>, Call&, ep_status, EventHandle&, StreamHandle&, Error&);
void before(Tag<Slot::event_query>, Call&, EventHandle&, Error&);
void after(Tag<Slot::event_query>, Call&, ep_status, EventHandle&, Error&);
void before(Tag<Slot::event_host_wait>, Call&, EventHandle&, Number&, Error&);
void after(Tag<Slot::event_host_wait>, Call&, ep_status, EventHandle&, Number&, Error&);
void before(Tag<Slot::stream_wait_event>, Call&, StreamHandle&, EventHandle&, Error&);
void after(Tag<Slot::stream_wait_event>, Call&, ep_status, StreamHandle&, EventHandle&, Error&);

void before(Tag<Slot::event_elapsed>, Call&, EventHandle& begin, EventHandle& end, Argument<uint64_t*>&, Error&);
void after(Tag<Slot::event_elapsed>, Call&, ep_status, EventHandle& begin, EventHandle& end, Argument<uint64_t*>&,
           Error&);

// --- primitive_rules.cpp, launch_rules.cpp ---

void before(Tag<Slot::primitive_support>, Call&, Device&, Argument<const ep_primitive_desc*>&,
            Argument<ep_support_info*>&, Error&);
void after(Tag<Slot::primitive_support>, Call&, ep_status, Device&, Argument<const ep_primitive_desc*>&,
           Argument<ep_support_info*>&, Error&);
void before(Tag<Slot::primitive_create>, Call&, Device&, Argument<const ep_primitive_desc*>&, Argument<ep_primitive**>&,
            Argument<ep_primitive_info*>&, Error&);
void after(Tag<Slot::primitive_create>, Call&, ep_status, Device&, Argument<const ep_primitive_desc*>&,
           Argument<ep_primitive**>&, Argument<ep_primitive_info*>&, Error&);
void before(Tag<Slot::primitive_destroy>, Call&, Device&, PrimitiveHandle&);
void after(Tag<Slot::primitive_destroy>, Call&, ep_status, Device&, PrimitiveHandle&);
void before(Tag<Slot::primitive_workspace>, Call&, PrimitiveHandle&, Argument<const ep_shape*>&, Argument<uint32_t>&,
            Argument<uint64_t*>&, Error&);
void before(Tag<Slot::primitive_launch>, Call&, PrimitiveHandle&, StreamHandle&, Argument<const ep_launch*>&,
            Argument<ep_fault*>&, Error&);
void after(Tag<Slot::primitive_launch>, Call&, ep_status, PrimitiveHandle&, StreamHandle&, Argument<const ep_launch*>&,
           Argument<ep_fault*>&, Error&);
void before(Tag<Slot::primitive_pack>, Call&, PrimitiveHandle&, StreamHandle&, Buffer& dst, Buffer& src, Error&);
void after(Tag<Slot::primitive_pack>, Call&, ep_status, PrimitiveHandle&, StreamHandle&, Buffer& dst, Buffer& src,
           Error&);

// --- graph_rules.cpp ---

void before(Tag<Slot::graph_capability>, Call&, Device&, Argument<const ep_graph_desc*>&, Argument<ep_graph_answer*>&,
            Error&);
void after(Tag<Slot::graph_capability>, Call&, ep_status, Device&, Argument<const ep_graph_desc*>&,
           Argument<ep_graph_answer*>&, Error&);
void before(Tag<Slot::graph_compile>, Call&, Device&, Argument<const ep_graph_desc*>&, Argument<ep_graph**>&,
            Argument<ep_graph_info*>&, Error&);
void after(Tag<Slot::graph_compile>, Call&, ep_status, Device&, Argument<const ep_graph_desc*>&, Argument<ep_graph**>&,
           Argument<ep_graph_info*>&, Error&);
void before(Tag<Slot::graph_destroy>, Call&, Device&, GraphHandle&);
void after(Tag<Slot::graph_destroy>, Call&, ep_status, Device&, GraphHandle&);
void before(Tag<Slot::graph_launch>, Call&, GraphHandle&, StreamHandle&, Argument<const ep_graph_launch*>&,
            Argument<ep_fault*>&, Error&);
void after(Tag<Slot::graph_launch>, Call&, ep_status, GraphHandle&, StreamHandle&, Argument<const ep_graph_launch*>&,
           Argument<ep_fault*>&, Error&);

// --- interop_rules.cpp ---

void before(Tag<Slot::memory_import>, Call&, Device&, ImportDesc&, Argument<ep_memory**>&, Error&);
void after(Tag<Slot::memory_import>, Call&, ep_status, Device&, ImportDesc&, Argument<ep_memory**>&, Error&);
void before(Tag<Slot::stream_import>, Call&, Device&, ImportDesc&, Argument<ep_stream**>&, Error&);
void after(Tag<Slot::stream_import>, Call&, ep_status, Device&, ImportDesc&, Argument<ep_stream**>&, Error&);
void before(Tag<Slot::semaphore_import>, Call&, Device&, ImportDesc&, Argument<ep_semaphore**>&, Error&);
void after(Tag<Slot::semaphore_import>, Call&, ep_status, Device&, ImportDesc&, Argument<ep_semaphore**>&, Error&);
void before(Tag<Slot::semaphore_destroy>, Call&, Device&, SemaphoreHandle&);
void after(Tag<Slot::semaphore_destroy>, Call&, ep_status, Device&, SemaphoreHandle&);
void before(Tag<Slot::stream_wait_semaphore>, Call&, StreamHandle&, SemaphoreHandle&, Number& value, Error&);
void after(Tag<Slot::stream_wait_semaphore>, Call&, ep_status, StreamHandle&, SemaphoreHandle&, Number& value, Error&);
void before(Tag<Slot::stream_signal_semaphore>, Call&, StreamHandle&, SemaphoreHandle&, Number& value, Error&);
void after(Tag<Slot::stream_signal_semaphore>, Call&, ep_status, StreamHandle&, SemaphoreHandle&, Number& value,
           Error&);

// --- layout_rules.cpp ---

void before(Tag<Slot::layout_info>, Call&, Device&, Argument<const ep_operand_desc*>&, Argument<ep_layout_info*>&,
            Error&);
void after(Tag<Slot::layout_info>, Call&, ep_status, Device&, Argument<const ep_operand_desc*>&,
           Argument<ep_layout_info*>&, Error&);
void before(Tag<Slot::layout_allocate>, Call&, Device&, Argument<const ep_operand_desc*>&, Argument<ep_memory**>&,
            Error&);
void after(Tag<Slot::layout_allocate>, Call&, ep_status, Device&, Argument<const ep_operand_desc*>&,
           Argument<ep_memory**>&, Error&);

// Blames the provider if it asks for layouts that `desc` cannot have.
void check_wishes(Call& call, const ep_primitive_desc& desc, const ep_support_info& info);
// The bytes of a value with the layout of `operand`. 0 if the device does not know the layout.
uint64_t opaque_bytes(const Layer& layer, const ep_operand_desc& operand);
// Refuses a launch whose opaque operand `operand` lies at `offset` of `memory`, if its layout cannot lie there. If the
// operand is read, also refuses it if no launch wrote a value of this layout there.
void check_opaque(Call& call, const Memory& memory, const ep_operand_desc& operand, uint64_t offset, bool reads);
// Records that a launch wrote a value (opaque or plain): the `bytes` at `offset` hold no earlier opaque value any more.
void forget_values(Memory& memory, uint64_t offset, uint64_t bytes);
void note_value(Memory& memory, const ep_operand_desc& operand, uint64_t offset);
// Refuses a plain read of an image, or of an opaque value that begins at `offset`.
void check_plain(Call& call, const Memory* memory, uint64_t offset, const char* what);

// --- list_rules.cpp ---

void before(Tag<Slot::command_list_begin>, Call&, StreamHandle&, Argument<const ep_command_list_desc*>&, Error&);
void after(Tag<Slot::command_list_begin>, Call&, ep_status, StreamHandle&, Argument<const ep_command_list_desc*>&,
           Error&);
void before(Tag<Slot::command_list_end>, Call&, StreamHandle&, Argument<ep_command_list**>&,
            Argument<ep_command_list_info*>&, Error&);
void after(Tag<Slot::command_list_end>, Call&, ep_status, StreamHandle&, Argument<ep_command_list**>&,
           Argument<ep_command_list_info*>&, Error&);
void before(Tag<Slot::command_list_destroy>, Call&, Device&, ListHandle&);
void after(Tag<Slot::command_list_destroy>, Call&, ep_status, Device&, ListHandle&);
void before(Tag<Slot::command_list_replay>, Call&, ListHandle&, StreamHandle&,
            Argument<const ep_command_list_replay_desc*>&, Error&);
void after(Tag<Slot::command_list_replay>, Call&, ep_status, ListHandle&, StreamHandle&,
           Argument<const ep_command_list_replay_desc*>&, Error&);

// Refuses a call to be recorded if one of its accesses begins in a binding and does not lie inside it.
void check_bindings(Call& call, const Stream& stream, const std::vector<RecordedCommands::Access>& accesses);
// Records a call that was given to the recording `stream`. `primitive`: the primitive that it launches, or null.
void note_recorded(Stream& stream, ep_status status, Object* primitive,
                   const std::vector<RecordedCommands::Access>& accesses);
// Checks, before `object` is destroyed, that no command list uses it.
void check_no_list(Call& call, const Object* object);

// --- module_rules.cpp ---

void after(Tag<Slot::dialect_info>, Call&, ep_status, Device&, Argument<uint32_t>&, Argument<ep_dialect_info*>&,
           Error&);
void before(Tag<Slot::module_create>, Call&, Device&, Argument<const ep_module_desc*>&, Argument<ep_module**>&,
            Argument<ep_module_info*>&, Error&);
void after(Tag<Slot::module_create>, Call&, ep_status, Device&, Argument<const ep_module_desc*>&,
           Argument<ep_module**>&, Argument<ep_module_info*>&, Error&);
void before(Tag<Slot::module_destroy>, Call&, Device&, ModuleHandle&);
void after(Tag<Slot::module_destroy>, Call&, ep_status, Device&, ModuleHandle&);
void before(Tag<Slot::kernel_get>, Call&, ModuleHandle&, Argument<ep_string>& entry, Argument<ep_kernel**>&,
            Argument<ep_kernel_info*>&, Error&);
void after(Tag<Slot::kernel_get>, Call&, ep_status, ModuleHandle&, Argument<ep_string>& entry, Argument<ep_kernel**>&,
           Argument<ep_kernel_info*>&, Error&);
void before(Tag<Slot::kernel_launch>, Call&, KernelHandle&, StreamHandle&, Argument<const ep_kernel_launch*>&,
            Argument<ep_fault*>&, Error&);
void after(Tag<Slot::kernel_launch>, Call&, ep_status, KernelHandle&, StreamHandle&, Argument<const ep_kernel_launch*>&,
           Argument<ep_fault*>&, Error&);

// --- validate.cpp ---

void before(Tag<Slot::device_close>, Call&, Device&);
void after(Tag<Slot::device_close>, Call&, ep_status, Device&);

// Refuses the call unless `size` bytes at `offset` lie in `memory`. `what` names the bytes in the message: "the
// source".
void check_range(Call& call, const Memory& memory, uint64_t offset, uint64_t size, const std::string& what);

}  // namespace tenon::loader::validate
