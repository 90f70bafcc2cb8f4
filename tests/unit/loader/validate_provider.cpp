#include "validate_provider.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

struct ep_memory {
  void* address;
};
struct ep_stream {
  int nothing;
};
struct ep_event {
  bool recorded;
};
struct ep_primitive {
  int nothing;
};
struct ep_graph {
  int nothing;
};

struct ep_semaphore {
  int nothing;
};

struct ep_command_list {
  int nothing;
};

struct ep_module {
  int nothing;
};

struct ep_kernel {
  int nothing;
};

namespace tenon::loader {
namespace {

constexpr uint64_t alignment = 256;
int the_devices[2];

void count() { ++toy().calls; }

// Memory that tests leave behind when they break a rule. It is freed with the toy.
std::map<void*, std::function<void()>>& left() {
  static auto* all = new std::map<void*, std::function<void()>>;
  return *all;
}

template <class Handle>
ep_status make(Handle** out) {
  count();
  Handle* handle = *out = new Handle{};
  left()[handle] = [handle] { delete handle; };
  return EP_STATUS_OK;
}
template <class Handle>
void destroy(ep_device*, Handle* handle) {
  count();
  left().erase(handle);
  delete handle;
}

ep_status memory_allocate(ep_device*, uint32_t, uint64_t size, ep_memory** out, ep_error**) {
  count();
  auto* memory = *out = new ep_memory{std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)};
  left()[memory] = [memory] {
    std::free(memory->address);
    delete memory;
  };
  return EP_STATUS_OK;
}
void memory_free(ep_device*, ep_memory* memory) {
  count();
  if (memory == nullptr) return;
  left().at(memory)();
  left().erase(memory);
}
ep_status memory_map(ep_device*, ep_memory* memory, void** out, ep_error**) {
  count();
  *out = memory->address;
  return EP_STATUS_OK;
}

ep_status take_fault(ep_stream*, ep_fault* out, ep_error**) {
  count();
  if (toy().fault.code == 0) return EP_STATUS_NOT_FOUND;
  *out = toy().fault;
  return EP_STATUS_OK;
}

ep_status support(ep_device*, const ep_primitive_desc* desc, ep_support_info* out, ep_error** error) {
  count();
  if (desc->kind != EP_PRIMITIVE_unary) return toy_fails(error, EP_STATUS_UNSUPPORTED);
  out->implementation = {"toy", 3};
  return EP_STATUS_OK;
}

ep_status create(ep_device*, const ep_primitive_desc*, ep_primitive** out, ep_primitive_info* info, ep_error**) {
  info->implementation = {"toy", 3};
  info->workspace_bytes = toy().info.workspace_bytes;
  info->scratch_bytes = toy().info.scratch_bytes;
  info->pack_operand = toy().info.pack_operand;
  info->pack_bytes = toy().info.pack_bytes;
  return make(out);
}

ep_status launch(ep_primitive*, ep_stream*, const ep_launch* launch, ep_fault* out_fault, ep_error** error) {
  count();
  if (toy().on_launch) toy().on_launch();
  if (toy().launch_answer == EP_STATUS_OK) return EP_STATUS_OK;
  if (out_fault != nullptr && toy().fault.code != 0) {
    *out_fault = toy().fault;
    out_fault->tag = launch->tag;
  }
  return toy_fails(error, toy().launch_answer);
}

ep_status capability(ep_device*, const ep_graph_desc* graph, ep_graph_answer* out, ep_error**) {
  count();
  for (uint32_t i = 0; i < graph->node_count; ++i) out[i] = {graph->nodes[i].primitive.kind != 0 ? 1u : 0u, 0, {}};
  return EP_STATUS_OK;
}

ep_status compile(ep_device*, const ep_graph_desc*, ep_graph** out, ep_graph_info* info, ep_error**) {
  info->implementation = {"toy", 3};
  info->workspace_bytes = toy().info.workspace_bytes;
  return make(out);
}

ep_status launch_graph(ep_graph*, ep_stream*, const ep_graph_launch* launch, ep_fault* out_fault, ep_error** error) {
  count();
  if (toy().launch_answer == EP_STATUS_OK) return EP_STATUS_OK;
  if (out_fault != nullptr && toy().fault.code != 0) {
    *out_fault = toy().fault;
    out_fault->tag = launch->tag;
  }
  return toy_fails(error, toy().launch_answer);
}

// Layouts 3 and 5 lie in pool 0, layout 4 in images; each value has 512 bytes.
ep_status layout_info(ep_device*, const ep_operand_desc* operand, ep_layout_info* out, ep_error** error) {
  const int64_t token = operand->strides[0];
  if (token < 3 || token > 5) return toy_fails(error, EP_STATUS_UNSUPPORTED);
  out->name = {"toy", 3};
  out->bytes = 512;
  out->pool = token == 4 ? 2 : 0;
  return EP_STATUS_OK;
}

ep_status layout_allocate(ep_device* device, const ep_operand_desc*, ep_memory** out, ep_error** error) {
  return memory_allocate(device, 2, 512, out, error);
}

ep_status answer_of_event(ep_error** error) {
  count();
  const ep_status answer = toy().event_answer;
  const bool silent = answer == EP_STATUS_OK || answer == EP_STATUS_BUSY || answer == EP_STATUS_TIMEOUT;
  return silent ? answer : toy_fails(error, answer);
}

void fill_events(ep_device_ops* ops) {
  ops->event_create = [](ep_device*, ep_event** out, ep_error**) { return make(out); };
  ops->event_destroy = destroy<ep_event>;
  ops->event_record = [](ep_event*, ep_stream*, ep_error**) { return count(), EP_STATUS_OK; };
  ops->event_query = [](ep_event*, ep_error** error) { return answer_of_event(error); };
  ops->event_host_wait = [](ep_event*, uint64_t, ep_error** error) { return answer_of_event(error); };
  ops->stream_wait_event = [](ep_stream*, ep_event*, ep_error** error) { return answer_of_event(error); };
  ops->event_elapsed = [](ep_event*, ep_event*, uint64_t* out, ep_error** error) {
    const ep_status answer = answer_of_event(error);
    if (answer == EP_STATUS_OK) *out = 5;
    return answer;
  };
  ops->stream_take_fault = take_fault;
}

void fill_interop(ep_device_ops* ops) {
  ops->memory_import = [](ep_device*, const ep_import_desc* desc, ep_memory** out, ep_error** error) {
    return memory_allocate(nullptr, 0, desc->size, out, error);
  };
  ops->stream_import = [](ep_device*, const ep_import_desc*, ep_stream** out, ep_error**) { return make(out); };
  ops->semaphore_import = [](ep_device*, const ep_import_desc*, ep_semaphore** out, ep_error**) { return make(out); };
  ops->semaphore_destroy = destroy<ep_semaphore>;
  ops->stream_wait_semaphore = [](ep_stream*, ep_semaphore*, uint64_t, ep_error**) { return count(), EP_STATUS_OK; };
  ops->stream_signal_semaphore = ops->stream_wait_semaphore;
}

void fill_lists(ep_device_ops* ops) {
  ops->command_list_begin = [](ep_stream*, const ep_command_list_desc*, ep_error**) { return count(), EP_STATUS_OK; };
  ops->command_list_end = [](ep_stream*, ep_command_list** out, ep_command_list_info*, ep_error**) {
    return make(out);
  };
  ops->command_list_destroy = destroy<ep_command_list>;
  ops->command_list_replay = [](ep_command_list*, ep_stream*, const ep_command_list_replay_desc*, ep_error**) {
    return count(), EP_STATUS_OK;
  };
}

// One dialect, in which a text has the entry f and perhaps g.
ep_status dialect_info(ep_device*, uint32_t index, ep_dialect_info* out, ep_error**) {
  count();
  if (index != 0) return EP_STATUS_NOT_FOUND;
  out->dialect = EP_DIALECT_C;
  out->compiler = {"toy", 3};
  out->group_items = 1;
  out->greatest_buffers = 16;
  out->parameter_bytes = 1024;
  for (int axis = 0; axis < 3; ++axis) out->groups[axis] = out->group_dims[axis] = 1;
  return EP_STATUS_OK;
}

ep_status kernel_get(ep_module*, ep_string entry, ep_kernel** out, ep_kernel_info*, ep_error**) {
  if (entry.size != 1 || (entry.data[0] != 'f' && entry.data[0] != 'g')) return EP_STATUS_NOT_FOUND;
  return make(out);
}

ep_status launch_kernel(ep_kernel*, ep_stream*, const ep_kernel_launch* launch, ep_fault* out_fault, ep_error** error) {
  count();
  if (toy().launch_answer == EP_STATUS_OK) return EP_STATUS_OK;
  if (out_fault != nullptr && toy().fault.code != 0) {
    *out_fault = toy().fault;
    out_fault->tag = launch->tag;
  }
  return toy_fails(error, toy().launch_answer);
}

void fill_modules(ep_device_ops* ops) {
  ops->dialect_info = dialect_info;
  ops->module_create = [](ep_device*, const ep_module_desc*, ep_module** out, ep_module_info*, ep_error**) {
    return make(out);
  };
  ops->module_destroy = destroy<ep_module>;
  ops->kernel_get = kernel_get;
  ops->kernel_launch = launch_kernel;
}

ep_status device_open(ep_plugin*, uint32_t index, ep_device** out_device, ep_device_ops* ops, ep_error**) {
  ops->device_close = [](ep_device*) { count(); };
  ops->memory_allocate = memory_allocate;
  ops->memory_free = memory_free;
  ops->memory_map = memory_map;
  ops->memory_flush = [](ep_device*, ep_memory*, uint64_t, uint64_t, ep_error**) { return count(), EP_STATUS_OK; };
  ops->memory_invalidate = ops->memory_flush;
  ops->stream_create = [](ep_device*, const ep_stream_desc*, ep_stream** out, ep_error**) { return make(out); };
  ops->stream_destroy = destroy<ep_stream>;
  ops->stream_synchronize = [](ep_stream*, ep_error**) { return count(), EP_STATUS_OK; };
  ops->copy = [](ep_stream*, ep_buffer, ep_buffer, uint64_t, ep_error**) { return count(), EP_STATUS_OK; };
  ops->upload = [](ep_stream*, ep_buffer, const void*, uint64_t, ep_error**) { return count(), EP_STATUS_OK; };
  ops->download = [](ep_stream*, void*, ep_buffer, uint64_t, ep_error**) { return count(), EP_STATUS_OK; };
  ops->peer_open = [](ep_device*, ep_device*, ep_error**) { return count(), EP_STATUS_OK; };
  ops->peer_copy = [](ep_stream*, ep_buffer, ep_device*, ep_buffer, uint64_t, ep_error**) {
    return count(), EP_STATUS_OK;
  };
  ops->primitive_support = support;
  ops->primitive_create = create;
  ops->primitive_destroy = destroy<ep_primitive>;
  ops->primitive_launch = launch;
  ops->primitive_pack = [](ep_primitive*, ep_stream*, ep_buffer, ep_buffer, ep_error**) {
    return count(), EP_STATUS_OK;
  };
  ops->graph_capability = capability;
  ops->graph_compile = compile;
  ops->graph_destroy = destroy<ep_graph>;
  ops->graph_launch = launch_graph;
  fill_interop(ops);
  ops->layout_info = layout_info;
  ops->layout_allocate = layout_allocate;
  if (index == 0) fill_events(ops);
  if (index == 0) fill_lists(ops);
  fill_modules(ops);
  if (toy().change) toy().change(ops);
  *out_device = reinterpret_cast<ep_device*>(&the_devices[index]);
  return EP_STATUS_OK;
}

ep_status device_info(ep_plugin*, uint32_t index, ep_device_info* out, ep_error**) {
  out->name = {"a toy", 5};
  out->device_class = EP_DEVICE_CLASS_CPU;
  out->flags = index == 1 ? EP_DEVICE_FLAG_SYNCHRONOUS : 0;
  out->dtypes = ~uint64_t{0};
  out->memory_handles = out->stream_handles = out->semaphore_handles = UINT64_C(1) << EP_HANDLE_OPAQUE_FD;
  out->pool_count = 3;
  out->pools[0].flags = EP_POOL_FLAG_HOST_VISIBLE;
  out->pools[0].minimum_alignment = alignment;
  out->pools[0].largest_allocation = 1 << 20;
  out->pools[1].flags = EP_POOL_FLAG_DEVICE_LOCAL | EP_POOL_FLAG_EXCLUSIVE;
  out->pools[1].copy_granularity = 4;
  out->pools[1].minimum_alignment = alignment;
  out->pools[2].flags = EP_POOL_FLAG_DEVICE_LOCAL | EP_POOL_FLAG_IMAGE;
  out->pools[2].minimum_alignment = alignment;
  return EP_STATUS_OK;
}

}  // namespace

Toy& toy() {
  static Toy one;
  return one;
}

void reset_toy() {
  for (const auto& [handle, free_it] : left()) free_it();
  left().clear();
  toy().change = nullptr;
  toy().on_launch = nullptr;
  toy().calls = 0;
  toy().info = {};
  toy().launch_answer = toy().event_answer = EP_STATUS_OK;
  toy().fault = {};
}

ep_status toy_fails(ep_error** error, ep_status status) {
  const ep_string sentence{"the toy was told to fail.", 25};
  if (error != nullptr) *error = toy().host->error_make(toy().host, status, sentence, {nullptr, 0});
  return status;
}

ep_status toy_query(const ep_host* host, ep_plugin_ops* out_ops, ep_error**) {
  toy().host = host;
  out_ops->abi_major = EP_ABI_MAJOR;
  out_ops->abi_minor = EP_ABI_MINOR;
  out_ops->shutdown = [](ep_plugin*) {};
  out_ops->device_count = [](ep_plugin*, uint32_t* out, ep_error**) { return *out = 2, EP_STATUS_OK; };
  out_ops->device_info = device_info;
  out_ops->device_open = device_open;
  return EP_STATUS_OK;
}

}  // namespace tenon::loader
