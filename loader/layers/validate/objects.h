// Objects: one per handle. The host gets a pointer to an object instead of the provider's handle.
//
// One mutex of the process, `Objects::mutex`, guards everything here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "ep_api/ep_api.h"
#include "loader/layers/wrap.h"
#include "loader/loader.h"

namespace tenon::loader::validate {

struct Layer;

// A vector clock: for each stream of the process, how much of the stream's work happened before.
class Clock {
 public:
  uint64_t at(uint32_t stream) const { return stream < points_.size() ? points_[stream] : 0; }
  void raise(uint32_t stream, uint64_t point) {
    if (points_.size() <= stream) points_.resize(stream + 1);
    points_[stream] = std::max(points_[stream], point);
  }
  void join(const Clock& other) {
    for (uint32_t i = 0; i < other.points_.size(); ++i) raise(i, other.points_[i]);
  }

 private:
  std::vector<uint64_t> points_;
};

enum class Kind : uint8_t { memory, stream, event, primitive, graph, semaphore, list, module, kernel };
constexpr const char* kind_names[] = {"memory",    "stream",       "event",  "primitive", "graph",
                                      "semaphore", "command list", "module", "kernel"};

// How a call uses a handle. visit: may run at the same time as any other call but an `alone` one. work: like visit, but
// excludes other work. alone: excludes every other call.
enum class Use : uint8_t { visit, work, alone };

// A call that is inside the provider with this handle.
struct User {
  std::thread::id thread;
  Slot slot;
  Use use;
};

struct Object {
  Object(Kind of, Layer* from, void* handle) : kind(of), layer(from), inner(handle) {}
  virtual ~Object() = default;

  const Kind kind;
  Layer* const layer;
  void* const inner;  // the provider's handle
  bool alive = true;
  std::vector<User> users;
  Clock uses;          // the last work of each stream that uses it
  uint32_t lists = 0;  // number of command lists that use it

  const char* kind_name() const { return kind_names[static_cast<int>(kind)]; }
};

struct Memory : Object {
  Memory(Layer* layer, ep_memory* handle) : Object(Kind::memory, layer, handle) {}
  uint64_t size = 0;
  uint32_t pool = 0;
  bool imported = false;
  void* host = nullptr;    // the address from memory_map
  uint32_t constants = 0;  // number of constants of compiled graphs in it
  bool image = false;      // true: made by layout_allocate

  // An opaque value that a launch wrote: its layout, as an operand without role, and its bytes.
  struct Opaque {
    ep_operand_desc layout;
    uint64_t bytes;
  };
  std::map<uint64_t, Opaque> values;  // indexed by offset
};

// The recording of a stream. The command list keeps it.
struct RecordedCommands {
  // Bytes that a recorded call uses.
  struct Access {
    Memory* memory = nullptr;
    uint64_t offset = 0, bytes = 0, alignment = 1;
    bool written = false;

    bool begins_in(const Access& range) const {
      return memory == range.memory && offset >= range.offset && offset - range.offset < range.bytes;
    }
    bool overlaps(const Access& other) const {
      return memory == other.memory && offset < other.offset + other.bytes && other.offset < offset + bytes;
    }
  };
  std::vector<Access> bindings;  // `written`, `alignment`: the strictest of its accesses
  std::vector<Access> fixed;     // accesses outside of bindings
  std::set<Object*> used;        // primitives, and memory outside of bindings
  uint32_t calls = 0;
  bool failed = false;  // a recorded call failed

  void add(const Access& access) {
    for (Access& binding : bindings) {
      if (!access.begins_in(binding)) continue;
      binding.written = binding.written || access.written;
      binding.alignment = std::max(binding.alignment, access.alignment);
      return;
    }
    fixed.push_back(access);
    used.insert(access.memory);
  }
};

struct Stream : Object {
  Stream(Layer* layer, ep_stream* handle) : Object(Kind::stream, layer, handle) {}
  uint32_t number = 0;  // the stream's number in the process
  uint64_t point = 0;   // the point of the last work submitted
  Clock waited;         // the work that is ordered before its next work, its own included
  bool timed = false;   // EP_STREAM_FLAG_TIMED

  struct Launched {
    uint64_t tag, point;
    uint32_t nodes = 0;        // number of nodes of a graph or a replay
    const char* rule = "G07";  // the rule that limits `nodes`
  };
  std::deque<Launched> launched;  // launches that may still report a fault
  std::unique_ptr<RecordedCommands> recording;
};

// A point of one stream.
struct Point {
  uint32_t stream = 0;
  uint64_t number = 0;

  bool operator==(const Point&) const = default;
};

struct Event : Object {
  Event(Layer* layer, ep_event* handle) : Object(Kind::event, layer, handle) {}
  bool recorded = false;
  bool timed = false;  // true: its last record was on a timed stream
  Point point;         // the point of its last record
  Clock clock;         // the work that is done when it fires
};

struct Primitive : Object {
  Primitive(Layer* layer, ep_primitive* handle) : Object(Kind::primitive, layer, handle) {}
  ep_primitive_desc desc{};
  ep_primitive_info info{};
  bool dynamic = false;
};

struct Graph : Object {
  Graph(Layer* layer, ep_graph* handle) : Object(Kind::graph, layer, handle) {}
  std::vector<ep_graph_value> values;
  std::vector<Memory*> constants;
  uint32_t node_count = 0;
  ep_graph_info info{};
};

struct CommandList : Object {
  CommandList(Layer* layer, ep_command_list* handle) : Object(Kind::list, layer, handle) {}
  RecordedCommands recorded;
};

struct Kernel : Object {
  Kernel(Layer* layer, ep_kernel* handle) : Object(Kind::kernel, layer, handle) {}
  uint64_t flags = 0;  // EP_ENTRY_FLAG_*
  uint32_t buffer_count = 0;
  uint32_t parameter_bytes = 0;
};

struct Module : Object {
  Module(Layer* layer, ep_module* handle) : Object(Kind::module, layer, handle) {}
  std::map<std::string, ep_module_entry> entries;  // indexed by name
  std::vector<Kernel*> kernels;                    // returned to the host; destroyed with the module
};

struct Semaphore : Object {
  Semaphore(Layer* layer, ep_semaphore* handle) : Object(Kind::semaphore, layer, handle) {}
  int32_t counts = 0;        // EP_SEMAPHORE_*
  uint64_t last_signal = 0;  // for a timeline: the value of the last submitted signal
};

// One wrapped device. Never destroyed: handles point to it.
struct Layer {
  ep_device_ops inner{};
  ep_device* handle = nullptr;
  std::string spelling, provider;
  DeviceInfo info;
  bool closed = false;
  bool lost = false;
  std::set<const Layer*> peers;                // the devices from whose memory it may copy
  uint64_t alive[std::size(kind_names)] = {};  // number of live objects, by Kind
  std::deque<Object*> dead;                    // destroyed objects, the oldest first

  bool synchronous() const { return info.synchronous(); }
};

// Every handle and device the layer knows.
struct Objects {
  static constexpr size_t kept_dead = 16384;

  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Object>> objects;
  std::unordered_map<const ep_device*, Layer*> devices;  // includes closed devices, until the handle is used again
  std::vector<Stream*> streams;  // by number, also destroyed ones; null: the number is free, all its work was seen
  Clock seen;                    // work that the host has seen done
  Clock seen_alone;              // the part of `seen` that follows from the order within each stream alone

  static Objects& instance() {
    static auto* all = new Objects;
    return *all;
  }

  Object* find(const void* handle) {
    const auto found = objects.find(handle);
    return found == objects.end() ? nullptr : found->second.get();
  }
  Layer* layer_of(const ep_device* device) {
    const auto found = devices.find(device);
    return found == devices.end() ? nullptr : found->second;
  }
  void add(Object* object) {
    objects.emplace(object, object);
    if (object->kind == Kind::stream) add_stream(static_cast<Stream*>(object));
    ++object->layer->alive[static_cast<int>(object->kind)];
  }
  void bury(Object* object) {
    object->alive = false;
    Layer& layer = *object->layer;
    --layer.alive[static_cast<int>(object->kind)];
    if (object->kind == Kind::stream) return;
    layer.dead.push_back(object);
    if (layer.dead.size() <= kept_dead) return;
    objects.erase(layer.dead.front());
    layer.dead.pop_front();
  }
  // Forgets everything that was made from a closed device.
  void forget(Layer& layer) {
    for (Stream*& stream : streams) {
      if (stream == nullptr || stream->layer != &layer) continue;
      seen.raise(stream->number, stream->point);
      stream = nullptr;
    }
    std::erase_if(objects, [&](const auto& entry) { return entry.second->layer == &layer; });
    layer.dead.clear();
  }
  // The streams of `uses` that have work which the host has not seen done. Streams that cannot be waited for any more
  // are left out.
  std::vector<const Stream*> unseen(const Clock& uses) const {
    std::vector<const Stream*> busy;
    for (const Stream* stream : streams) {
      if (stream == nullptr || stream->layer->lost || uses.at(stream->number) <= seen.at(stream->number)) continue;
      busy.push_back(stream);
    }
    return busy;
  }

 private:
  void add_stream(Stream* stream) {
    const auto free = std::find(streams.begin(), streams.end(), nullptr);
    stream->number = static_cast<uint32_t>(free - streams.begin());
    stream->point = seen.at(stream->number);
    if (free == streams.end()) {
      streams.push_back(stream);
    } else {
      *free = stream;
    }
  }
};

}  // namespace tenon::loader::validate
