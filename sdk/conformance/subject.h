// Subject: a plug-in used through the raw C ABI, with a Host of the conformance kit. Loader and core are not involved,
// so a test sees the plug-in's own behaviour.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "ep_api/ep_api.h"
#include "primitives/accuracy/accuracy.h"
#include "primitives/text/format.h"
#include "sdk/conformance/host.h"
#include "sdk/conformance/running.h"
#include "sdk/conformance/verdict.h"

namespace tenon::conformance {

// The plug-in, device and settings under test.
struct Target {
  std::string path;
  Settings settings;
  uint32_t device = 0;
};

class Subject;

// Owns a handle that the device of a Subject made. T is ep_memory, ep_stream, ep_event, ep_primitive, ep_graph,
// ep_command_list or ep_module.
template <class T>
class Owned {
 public:
  Owned() = default;
  Owned(Subject* subject, T* handle) : subject_(subject), handle_(handle) {}
  Owned(Owned&& other) noexcept : subject_(other.subject_), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(subject_, other.subject_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() { reset(); }
  void reset();
  T* get() const { return handle_; }

 private:
  Subject* subject_ = nullptr;
  T* handle_ = nullptr;
};

using Memory = Owned<ep_memory>;
using Stream = Owned<ep_stream>;
using Event = Owned<ep_event>;
using Primitive = Owned<ep_primitive>;
using Graph = Owned<ep_graph>;
using CommandList = Owned<ep_command_list>;
using Module = Owned<ep_module>;

class Subject {
 public:
  explicit Subject(const Target& target) : target(target), host(target.settings, target.path) {}
  ~Subject() { close(); }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  // Each function does the missing earlier steps first.
  Status load();   // loads the library, once per process
  Status start();  // calls the query; sets `plugin`
  Status open();   // describes and opens the device; sets `info`, `ops` and `device`
  // Closes the device and shuts the plug-in down. The library stays loaded.
  void close();

  // Calls a function of the ABI whose last parameter is an ep_error**, and returns its failure as a Status. A C++
  // exception is a violation.
  template <class Function, class... Args>
  Status call(const char* name, Function function, Args... args) {
    ep_error* error = nullptr;
    note_call(name);
    try {
      const ep_status status = function(args..., &error);
      return host.take(name, status, error);
    } catch (const std::exception& thrown) {
      host.violate(broken("Q02", "{} threw a C++ exception: {}{}", name, std::string_view(thrown.what()),
                          descriptor_text_for(name)));
    } catch (...) {
      host.violate(broken("Q02", "{} threw a C++ exception of unknown type{}", name, descriptor_text_for(name)));
    }
    return Status(Code::internal, fmt::format("{} threw.", name));
  }

  bool synchronous() const { return (info.flags & EP_DEVICE_FLAG_SYNCHRONOUS) != 0; }
  bool has_events() const { return ops.event_create != nullptr && ops.event_record != nullptr; }

  Result<Memory> allocate(uint64_t size, uint32_t pool = 0);
  Result<Stream> make_stream(int32_t purpose = EP_STREAM_COMPUTE, int32_t priority = 0, uint64_t flags = 0);
  Result<Event> make_event();
  // The greatest copy_granularity of the pools, at least 1.
  uint64_t granularity() const;
  bool exclusive() const { return (info.pools[0].flags & EP_POOL_FLAG_EXCLUSIVE) != 0; }
  // Downloads the range of whole multiples of the granularity that contains `size` bytes at `offset`, and waits.
  // `begin` gets the beginning of the range.
  Status fetch_around(const Stream& stream, const Memory& memory, uint64_t offset, uint64_t size,
                      std::vector<uint8_t>* around, uint64_t* begin);
  // Transfers any range of bytes. Waits if the range is not a multiple of the granularity.
  Status upload(const Stream& stream, const Memory& memory, uint64_t offset, std::span<const uint8_t> bytes);
  Status download(const Stream& stream, const Memory& memory, uint64_t offset, std::span<uint8_t> bytes);
  Status copy(const Stream& stream, const Memory& dst, uint64_t dst_offset, const Memory& src, uint64_t src_offset,
              uint64_t size);
  Status record_event(const Event& event, const Stream& stream);
  Status wait(const Event& event);
  // Waits for all work of `stream`: by an event, or by stream_synchronize on a device without events.
  Status finish(const Stream& stream);
  // Waits for all work of `stream`, so that its memory may be freed. If the wait fails, work may still be in flight;
  // freeing its memory could cause later errors that would be blamed on the provider. So this function then ends the
  // process with the failure as the finding.
  void drain(const Stream& stream) { drain(ops, stream.get()); }
  void drain(const ep_device_ops& its_ops, ep_stream* stream);  // also for a stream of another device

  void destroy(ep_memory* memory) { drop("memory_free", ops.memory_free, memory); }
  void destroy(ep_stream* stream) { drop("stream_destroy", ops.stream_destroy, stream); }
  void destroy(ep_event* event) { drop("event_destroy", ops.event_destroy, event); }
  void destroy(ep_primitive* primitive) { drop("primitive_destroy", ops.primitive_destroy, primitive); }
  void destroy(ep_graph* graph) { drop("graph_destroy", ops.graph_destroy, graph); }
  void destroy(ep_module* module) { drop("module_destroy", ops.module_destroy, module); }
  void destroy(ep_command_list* list) { drop("command_list_destroy", ops.command_list_destroy, list); }

  const Target target;
  Host host;
  ep_plugin_query_fn query = nullptr;
  ep_plugin_ops plugin{};
  ep_device_info info{};
  Accuracy accuracy;  // as stated in `info`
  ep_device_ops ops{};
  ep_device* device = nullptr;
  bool started = false;

 private:
  Status synchronize(const ep_device_ops& its_ops, ep_stream* stream);
  template <class Function, class Handle>
  void drop(const char* name, Function function, Handle* handle) {
    note_call(name);
    function(device, handle);
  }
};

template <class T>
void Owned<T>::reset() {
  if (handle_ != nullptr) subject_->destroy(std::exchange(handle_, nullptr));
}

// True if pool `pool` is an image pool, where only opaque values are allocated.
inline bool holds_images(const ep_device_info& info, uint32_t pool) {
  return (info.pools[pool].flags & EP_POOL_FLAG_IMAGE) != 0;
}

// Waits for all work of `stream` in its destructor, so that a test that returns early frees no memory in use. Declare
// it after everything that the work uses.
class Drain {
 public:
  Drain(Subject& subject, const Stream& stream) : subject_(subject), stream_(stream) {}
  ~Drain() { subject_.drain(stream_); }
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

 private:
  Subject& subject_;
  const Stream& stream_;
};

constexpr uint64_t wait_limit_ns = 60'000'000'000;

// Returns a struct of the ABI with its header set and all other members zero.
template <class T>
T with_header(uint32_t type) {
  T value{};
  value.struct_size = sizeof(T);
  value.struct_type = type;
  return value;
}

inline ep_stream_desc stream_desc(int32_t purpose, int32_t priority = 0, uint64_t flags = 0) {
  auto desc = with_header<ep_stream_desc>(EP_STRUCT_STREAM_DESC);
  desc.purpose = purpose;
  desc.priority = priority;
  desc.flags = flags;
  return desc;
}

}  // namespace tenon::conformance
