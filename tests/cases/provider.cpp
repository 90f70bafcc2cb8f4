#include "tests/cases/provider.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

#include "primitives/descriptor/descriptor.h"
#include "primitives/status/sentence.h"

struct ep_error {
  ep_status status;
  std::string sentence;
  std::string remedy;
};

namespace tenon::cases {
namespace {

std::mutex host_mutex;

std::string_view view(ep_string text) { return {text.data, text.size}; }

// Calls a function of the ABI, whose last parameter is an ep_error**, and gives its failure as a Status.
template <class Function, class... Args>
Status call(Function function, Args... args) {
  ep_error* error = nullptr;
  const ep_status status = function(args..., &error);
  return PlainHost::take(status, error);
}

constexpr uint64_t wait_limit_ns = 120'000'000'000;

}  // namespace

// The functions of ep_host.
struct HostEntries {
  static PlainHost& self(const ep_host* host) { return *static_cast<PlainHost*>(host->context); }

  static ep_error* error_make(const ep_host*, ep_status status, ep_string text, ep_string remedy) {
    return new ep_error{status, std::string(view(text)), std::string(view(remedy))};
  }
  static int32_t log_enabled(const ep_host*, int32_t level, ep_string) { return level <= EP_LOG_ERROR; }
  static void log(const ep_host*, int32_t level, ep_string topic, ep_string message) {
    if (level > EP_LOG_ERROR) return;
    std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(topic.size), topic.data, static_cast<int>(message.size),
                 message.data);
  }
  static void* allocate(const ep_host* host, uint64_t size, uint64_t alignment) {
    const uint64_t unit = std::max<uint64_t>(alignment, sizeof(void*));
    void* pointer = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
    const std::lock_guard lock(host_mutex);
    if (pointer != nullptr) self(host).bytes_held_ += static_cast<int64_t>(size);
    return pointer;
  }
  static void release(const ep_host* host, void* pointer, uint64_t size) {
    if (pointer == nullptr) return;
    std::free(pointer);
    const std::lock_guard lock(host_mutex);
    self(host).bytes_held_ -= static_cast<int64_t>(size);
  }
  static ep_status config_get(const ep_host* host, ep_string key, ep_string* out_value) {
    for (const auto& [name, value] : self(host).settings_) {
      if (name != view(key)) continue;
      *out_value = {value.data(), value.size()};
      return EP_STATUS_OK;
    }
    return EP_STATUS_NOT_FOUND;
  }
  static int32_t thread_limit(const ep_host*) { return 2; }
  static ep_string plugin_path(const ep_host*) { return {"", 0}; }
  static void device_memory_report(const ep_host*, ep_device*, int64_t) {}
};

PlainHost::PlainHost(Settings settings) : settings_(std::move(settings)) {
  std::memset(&table_, 0, sizeof(table_));
  table_.struct_size = sizeof(table_);
  table_.struct_type = EP_STRUCT_HOST;
  table_.abi_major = EP_ABI_MAJOR;
  table_.abi_minor = EP_ABI_MINOR;
  table_.context = this;
  table_.error_make = HostEntries::error_make;
  table_.log_enabled = HostEntries::log_enabled;
  table_.log = HostEntries::log;
  table_.allocate = HostEntries::allocate;
  table_.release = HostEntries::release;
  table_.config_get = HostEntries::config_get;
  table_.thread_limit = HostEntries::thread_limit;
  table_.plugin_path = HostEntries::plugin_path;
  table_.device_memory_report = HostEntries::device_memory_report;
}

Status PlainHost::take(ep_status status, ep_error* error) {
  const std::unique_ptr<ep_error> owned(error);
  if (status == EP_STATUS_OK) return {};
  if (owned == nullptr) return Status(static_cast<Code>(status), sentence("status ", status, " without a sentence."));
  return Status(static_cast<Code>(status), owned->sentence, owned->remedy);
}

// A block of device memory that frees itself.
struct Provider::Block {
  Provider* provider = nullptr;
  ep_memory* memory = nullptr;

  Block() = default;
  Block(Provider* owner, ep_memory* handle) : provider(owner), memory(handle) {}
  Block(Block&& other) noexcept : provider(other.provider), memory(std::exchange(other.memory, nullptr)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(provider, other.provider);
    std::swap(memory, other.memory);
    return *this;
  }
  ~Block() {
    if (memory != nullptr) provider->ops_.memory_free(provider->device_, memory);
  }
};

Result<std::unique_ptr<Provider>> Provider::open(const std::string& path, uint32_t device_index, Settings settings) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Status(Code::not_found, sentence("cannot load ", path, ": ", std::string_view(dlerror()), "."));
  const auto query = reinterpret_cast<ep_plugin_query_fn>(dlsym(library, EP_PLUGIN_QUERY_SYMBOL));
  if (query == nullptr)
    return Status(Code::not_found, sentence(path, " has no symbol ", std::string_view(EP_PLUGIN_QUERY_SYMBOL), "."));
  std::unique_ptr<Provider> made(new Provider(std::move(settings)));
  made->plugin_.struct_size = sizeof(ep_plugin_ops);
  made->plugin_.struct_type = EP_STRUCT_PLUGIN_OPS;
  TENON_RETURN_IF_ERROR(call(query, made->host_.table(), &made->plugin_));
  made->info_.struct_size = sizeof(ep_device_info);
  made->info_.struct_type = EP_STRUCT_DEVICE_INFO;
  TENON_RETURN_IF_ERROR(call(made->plugin_.device_info, made->plugin_.plugin, device_index, &made->info_));
  if (made->info_.unusable_reason.size > 0)
    return Status(Code::not_found, std::string(view(made->info_.unusable_reason)));
  made->ops_.struct_size = sizeof(ep_device_ops);
  made->ops_.struct_type = EP_STRUCT_DEVICE_OPS;
  TENON_RETURN_IF_ERROR(
      call(made->plugin_.device_open, made->plugin_.plugin, device_index, &made->device_, &made->ops_));
  TENON_RETURN_IF_ERROR(call(made->ops_.stream_create, made->device_, &made->stream_));
  if (!made->is_synchronous()) TENON_RETURN_IF_ERROR(call(made->ops_.event_create, made->device_, &made->event_));
  return made;
}

Provider::~Provider() { (void)close(); }

Status Provider::close() {
  if (device_ != nullptr) {
    if (event_ != nullptr) ops_.event_destroy(device_, event_);
    ops_.stream_destroy(device_, stream_);
    ops_.device_close(device_);
  }
  device_ = nullptr;
  if (plugin_.shutdown != nullptr) plugin_.shutdown(plugin_.plugin);
  plugin_.shutdown = nullptr;
  if (host_.bytes_held() == 0) return {};
  return Status(Code::internal, sentence("after shutdown the plug-in still holds ", host_.bytes_held(),
                                         " bytes of the host's memory."));
}

Result<Provider::Block> Provider::allocate(uint64_t size) {
  ep_memory* memory = nullptr;
  TENON_RETURN_IF_ERROR(call(ops_.memory_allocate, device_, 0, std::max<uint64_t>(size, 1), &memory));
  return Block(this, memory);
}

Result<ep_support_info> Provider::support(const ep_primitive_desc& desc) {
  ep_support_info info = {};
  info.struct_size = sizeof(info);
  info.struct_type = EP_STRUCT_SUPPORT_INFO;
  TENON_RETURN_IF_ERROR(call(ops_.primitive_support, device_, &desc, &info));
  return info;
}

Status Provider::run(const Run& run) {
  ep_primitive* primitive = nullptr;
  ep_primitive_info info = {};
  info.struct_size = sizeof(info);
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  TENON_RETURN_IF_ERROR(call(ops_.primitive_create, device_, run.desc, &primitive, &info));
  const auto destroy = [this](ep_primitive* made) { ops_.primitive_destroy(device_, made); };
  const std::unique_ptr<ep_primitive, decltype(destroy)> owned(primitive, destroy);

  TENON_ASSIGN_OR_RETURN(const Block block, allocate(run.bytes->size()));
  TENON_RETURN_IF_ERROR(call(ops_.upload, stream_, ep_buffer{block.memory, 0}, run.bytes->data(), run.bytes->size()));
  const Status launched = launch(primitive, info, run, block.memory);
  if (!launched.ok() && launched.code() != Code::fault) return launched;
  TENON_RETURN_IF_ERROR(call(ops_.download, stream_, run.bytes->data(), ep_buffer{block.memory, 0}, run.bytes->size()));
  TENON_RETURN_IF_ERROR(wait(nullptr));
  return launched;
}

Status Provider::launch(ep_primitive* primitive, const ep_primitive_info& info, const Run& run, ep_memory* operands) {
  const uint32_t count = run.desc->operand_count;
  std::vector<ep_buffer> buffers(count);
  std::vector<ep_shape> shapes(count);
  for (uint32_t i = 0; i < count; ++i) {
    const ep_operand_desc& operand = run.shapes->operands[i];
    if ((operand.flags & EP_OPERAND_FLAG_SCALAR) == 0) buffers[i] = {operands, run.offsets[i]};
    shapes[i] = {operand.dims, operand.strides, operand.rank, 0};
  }
  const bool dynamic = descriptor::has_any(*run.desc);

  uint64_t workspace_bytes = info.workspace_bytes;
  if (dynamic && ops_.primitive_workspace != nullptr) {
    TENON_RETURN_IF_ERROR(call(ops_.primitive_workspace, primitive, shapes.data(), count, &workspace_bytes));
  }
  Block workspace, scratch, packed;
  if (workspace_bytes > 0) {
    TENON_ASSIGN_OR_RETURN(workspace, allocate(workspace_bytes));
  }
  std::vector<uint8_t> zeros(info.scratch_bytes);
  if (info.scratch_bytes > 0) {
    TENON_ASSIGN_OR_RETURN(scratch, allocate(info.scratch_bytes));
    TENON_RETURN_IF_ERROR(call(ops_.upload, stream_, ep_buffer{scratch.memory, 0}, zeros.data(), zeros.size()));
  }
  if (info.pack_operand > 0) {
    TENON_ASSIGN_OR_RETURN(packed, allocate(info.pack_bytes));
    ep_buffer& buffer = buffers[info.pack_operand - 1];
    const ep_buffer src = std::exchange(buffer, {packed.memory, 0});
    TENON_RETURN_IF_ERROR(call(ops_.primitive_pack, primitive, stream_, buffer, src));
  }

  ep_launch launch = {};
  launch.operands = buffers.data();
  launch.shapes = dynamic ? shapes.data() : nullptr;
  launch.scalars = run.scalars.data();
  launch.operand_count = count;
  launch.scalar_count = static_cast<uint32_t>(run.scalars.size());
  launch.workspace = {workspace.memory, 0};
  launch.scratch = {scratch.memory, 0};
  launch.tag = ++tag_;
  Status launched = call(ops_.primitive_launch, primitive, stream_, &launch, is_synchronous() ? run.fault : nullptr);
  if (launched.ok()) launched = wait(run.fault);
  if (info.scratch_bytes > 0 && launched.ok()) {
    TENON_RETURN_IF_ERROR(call(ops_.download, stream_, zeros.data(), ep_buffer{scratch.memory, 0}, zeros.size()));
    TENON_RETURN_IF_ERROR(wait(nullptr));
    if (std::any_of(zeros.begin(), zeros.end(), [](uint8_t byte) { return byte != 0; })) {
      return Status(Code::internal, "the launch did not leave its scratch zero.");
    }
  }
  return launched;
}

Status Provider::wait(ep_fault* fault) {
  if (is_synchronous()) return call(ops_.stream_synchronize, stream_);
  TENON_RETURN_IF_ERROR(call(ops_.event_record, event_, stream_));
  TENON_RETURN_IF_ERROR(call(ops_.event_host_wait, event_, wait_limit_ns));
  if (fault == nullptr || ops_.stream_take_fault == nullptr) return {};
  ep_fault taken = {};
  const Status status = call(ops_.stream_take_fault, stream_, &taken);
  if (status.code() == Code::not_found) return {};
  TENON_RETURN_IF_ERROR(status);
  *fault = taken;
  ep_fault more = {};
  while (call(ops_.stream_take_fault, stream_, &more).ok()) {
  }
  return Status(Code::fault,
                sentence("fault ", taken.code, " of operand ", taken.operand, ", value ", taken.value, "."));
}

}  // namespace tenon::cases
