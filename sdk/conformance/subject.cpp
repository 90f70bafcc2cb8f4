#include "sdk/conformance/subject.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

#include "loader/library/scope.h"
#include "primitives/text/format.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {

Status Subject::load() {
  if (query != nullptr) return {};
  note_call("dlopen");
  void* library = dlopen(target.path.c_str(), loader::plain_mapping_mode());
  if (library == nullptr) {
    return Status(Code::not_found, fmt::format("the dynamic linker refused it: {}.", dlerror()));
  }
  query = reinterpret_cast<ep_plugin_query_fn>(dlsym(library, EP_PLUGIN_QUERY_SYMBOL));
  if (query == nullptr) {
    return Status(Code::not_found, "it does not export the function " EP_PLUGIN_QUERY_SYMBOL ".");
  }
  return {};
}

Status Subject::start() {
  if (started) return {};
  TENON_RETURN_IF_ERROR(load());
  plugin = with_header<ep_plugin_ops>(EP_STRUCT_PLUGIN_OPS);
  TENON_RETURN_IF_ERROR(call(EP_PLUGIN_QUERY_SYMBOL, query, host.table(), &plugin));
  started = true;
  return {};
}

Status Subject::open() {
  if (device != nullptr) return {};
  TENON_RETURN_IF_ERROR(start());
  uint32_t count = 0;
  TENON_RETURN_IF_ERROR(call("device_count", plugin.device_count, plugin.plugin, &count));
  if (target.device >= count) return skipped("there is no device {}; device_count says {}.", target.device, count);
  info = with_header<ep_device_info>(EP_STRUCT_DEVICE_INFO);
  TENON_RETURN_IF_ERROR(call("device_info", plugin.device_info, plugin.plugin, target.device, &info));
  accuracy = {info.portable_dtypes, info.relaxed_dtypes, info.flushed_dtypes};
  if (info.unusable_reason.size > 0) {
    return skipped("the device says it cannot be used: {}",
                   std::string_view(info.unusable_reason.data, info.unusable_reason.size));
  }
  ops = with_header<ep_device_ops>(EP_STRUCT_DEVICE_OPS);
  return call("device_open", plugin.device_open, plugin.plugin, target.device, &device, &ops);
}

void Subject::close() {
  if (device != nullptr) {
    note_call("device_close");
    ops.device_close(std::exchange(device, nullptr));
  }
  if (started) {
    note_call("shutdown");
    plugin.shutdown(plugin.plugin);
  }
  started = false;
}

Result<Memory> Subject::allocate(uint64_t size, uint32_t pool) {
  const uint64_t unit = granularity();
  const uint64_t room = (std::max<uint64_t>(size, 1) + unit - 1) / unit * unit;
  ep_memory* memory = nullptr;
  TENON_RETURN_IF_ERROR(call("memory_allocate", ops.memory_allocate, device, pool, room, &memory));
  return Memory(this, memory);
}

Result<Stream> Subject::make_stream(int32_t purpose, int32_t priority, uint64_t flags) {
  const ep_stream_desc desc = stream_desc(purpose, priority, flags);
  ep_stream* stream = nullptr;
  TENON_RETURN_IF_ERROR(call("stream_create", ops.stream_create, device, &desc, &stream));
  return Stream(this, stream);
}

Result<Event> Subject::make_event() {
  ep_event* event = nullptr;
  TENON_RETURN_IF_ERROR(call("event_create", ops.event_create, device, &event));
  return Event(this, event);
}

uint64_t Subject::granularity() const {
  uint64_t greatest = 1;
  for (uint32_t pool = 0; pool < info.pool_count; ++pool) {
    greatest = std::max(greatest, info.pools[pool].copy_granularity);
  }
  return greatest;
}

// If a range is not a multiple of the granularity, the surrounding multiples are downloaded first.
Status Subject::fetch_around(const Stream& stream, const Memory& memory, uint64_t offset, uint64_t size,
                             std::vector<uint8_t>* around, uint64_t* begin) {
  const uint64_t unit = granularity();
  *begin = offset / unit * unit;
  around->resize((offset + size + unit - 1) / unit * unit - *begin);
  TENON_RETURN_IF_ERROR(call("download", ops.download, stream.get(), static_cast<void*>(around->data()),
                             ep_buffer{memory.get(), *begin}, uint64_t{around->size()}));
  return finish(stream);
}

Status Subject::upload(const Stream& stream, const Memory& memory, uint64_t offset, std::span<const uint8_t> bytes) {
  if (((offset | bytes.size()) & (granularity() - 1)) != 0) {
    std::vector<uint8_t> around;
    uint64_t begin = 0;
    TENON_RETURN_IF_ERROR(fetch_around(stream, memory, offset, bytes.size(), &around, &begin));
    std::copy(bytes.begin(), bytes.end(), around.begin() + static_cast<std::ptrdiff_t>(offset - begin));
    TENON_RETURN_IF_ERROR(upload(stream, memory, begin, around));
    return finish(stream);
  }
  return call("upload", ops.upload, stream.get(), ep_buffer{memory.get(), offset},
              static_cast<const void*>(bytes.data()), uint64_t{bytes.size()});
}

Status Subject::download(const Stream& stream, const Memory& memory, uint64_t offset, std::span<uint8_t> bytes) {
  if (((offset | bytes.size()) & (granularity() - 1)) != 0) {
    std::vector<uint8_t> around;
    uint64_t begin = 0;
    TENON_RETURN_IF_ERROR(fetch_around(stream, memory, offset, bytes.size(), &around, &begin));
    std::copy_n(around.begin() + static_cast<std::ptrdiff_t>(offset - begin), bytes.size(), bytes.begin());
    return {};
  }
  return call("download", ops.download, stream.get(), static_cast<void*>(bytes.data()), ep_buffer{memory.get(), offset},
              uint64_t{bytes.size()});
}

Status Subject::copy(const Stream& stream, const Memory& dst, uint64_t dst_offset, const Memory& src,
                     uint64_t src_offset, uint64_t size) {
  const uint64_t unit = granularity();
  size = (size + unit - 1) / unit * unit;  // blocks end at multiples
  return call("copy", ops.copy, stream.get(), ep_buffer{dst.get(), dst_offset}, ep_buffer{src.get(), src_offset}, size);
}

Status Subject::record_event(const Event& event, const Stream& stream) {
  return call("event_record", ops.event_record, event.get(), stream.get());
}

namespace {

// A wait for submitted work may fail only because the device failed or host memory ran out.
Status waited(std::string_view function, const Status& status) {
  if (status.ok() || status.code() == Code::out_of_host_memory) return status;
  return broken("S03", "{} of work that was submitted failed: {}", function, without_rule(status).message());
}

}  // namespace

Status Subject::wait(const Event& event) {
  return waited("event_host_wait", call("event_host_wait", ops.event_host_wait, event.get(), wait_limit_ns));
}

Status Subject::synchronize(const ep_device_ops& its_ops, ep_stream* stream) {
  return waited("stream_synchronize", call("stream_synchronize", its_ops.stream_synchronize, stream));
}

Status Subject::finish(const Stream& stream) {
  if (!has_events()) return synchronize(ops, stream.get());
  TENON_ASSIGN_OR_RETURN(const Event event, make_event());
  TENON_RETURN_IF_ERROR(record_event(event, stream));
  const Status status = wait(event);
  if (!status.ok()) drain(stream);
  return status;
}

void Subject::drain(const ep_device_ops& its_ops, ep_stream* stream) {
  Status status = synchronize(its_ops, stream);
  if (status.code() == Code::out_of_host_memory) status = synchronize(its_ops, stream);
  if (status.ok()) return;
  end_process(status.with_rule("S03").with_context(
      "  the submitted work may still run, so the kit frees nothing and ends this process"));
}

}  // namespace tenon::conformance
