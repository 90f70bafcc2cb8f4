// AsyncControl: the switches by which a test controls the asynchronous fake, and the fake's observations. There is one
// per process. The devices read it while they work.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "ep_api/ep_api.h"

namespace tenon::fakes {

// The kind that computes dst = 31*a + b + tag.
constexpr int32_t kMix = 0x10000;
// Values of launch scalar 1 of kMix.
constexpr int64_t kMixRuns = 0;
constexpr int64_t kMixRefused = 1;    // the launch returns an error
constexpr int64_t kMixFaults = 2;     // the kernel causes a fault, which is reported after the launch
constexpr int64_t kMixOverflows = 3;  // the kernel faults, and the device no longer knows how many faults there were
constexpr int64_t kMixSoils = 4;      // the kernel leaves a 1 in its scratch, against the rules
// A kMix with scratch adds the first word of the scratch to the result; a kMix with workspace computes 31*a there.

// The function that a kernel of a module computes, by the name of its entry. The text itself is not read.
struct AsyncKernel {
  uint64_t bytes = 0;    // bytes of each buffer
  uint32_t written = 0;  // bit i: buffer i is written
  // `buffers` ends with workspace and scratch, if the entry has them. A result with a code is a fault.
  void (*run)(char* const* buffers, const char* parameters, uint64_t groups, ep_fault* fault) = nullptr;
};
// Fill it before a module is created. The entries stay.
std::map<std::string, AsyncKernel>& async_kernels();

struct AsyncControl {
  std::atomic<uint32_t> devices{2};                 // read when the host counts the devices
  std::atomic<uint64_t> memory{uint64_t{1} << 20};  // bytes per device
  std::atomic<uint64_t> delay_us{0};                // longest delay of one instruction; most have no delay
  std::atomic<uint64_t> launch_us{0};               // how long each launch takes, in addition to its computation
  std::atomic<bool> computes{true};                 // false: launches only take their time and write nothing
  std::atomic<uint64_t> seed{1};
  std::atomic<bool> shadow{true};
  std::atomic<bool> lazy{false};       // work starts only when it is flushed
  std::atomic<bool> hold{false};       // the threads of the device pause
  std::atomic<bool> early{false};      // uploads and peer copies read their source when they are submitted
  std::atomic<bool> peers{false};      // devices copy from each other directly; read when the provider is loaded
  std::atomic<bool> mapped{false};     // the host can reach the devices' memory; read when the provider is loaded
  std::atomic<bool> pinned{false};     // a second pool for transfers; read when the provider is loaded
  std::atomic<bool> reference{false};  // the device has every primitive of primitives/reference; read when it is opened
  std::atomic<bool> packs{false};      // with `reference`: a constant operand is packed; read when it is opened
  std::atomic<bool> packs_alone{false};    // packed bytes serve only one primitive
  std::atomic<bool> graphs{false};         // the device takes whole graphs; read when it is opened
  std::atomic<uint64_t> graph_seed{1};     // draws the islands; 0: all known nodes form one
  std::atomic<bool> lists{true};           // the device records command lists; read when it is opened
  std::atomic<bool> bindings{true};        // lists may have bindings
  std::atomic<bool> takes_modules{false};  // the device takes kernel modules; read when it is opened
  std::atomic<uint64_t> layout_seed{
      0};  // seed of the fake's own layouts (with `reference`); 0: no own layouts. Read when the device is opened and
           // at each call, so do not change it between 0 and another value
  std::atomic<bool> images{false};       // some of these layouts are images; read when the provider is loaded
  std::atomic<bool> exclusive{false};    // a block holds one tensor; read when the provider is loaded
  std::atomic<uint64_t> granularity{1};  // granularity of copies, in bytes; read when the provider is loaded
  std::atomic<bool> late_waits{false};   // a stream waits for the event's newest point, not for its point at the call
  std::atomic<bool> blobs{false};        // created objects are stored in the host's blobs, and compared when read again
  std::atomic<uint64_t> create_us{0};    // how long creating a primitive or compiling a graph takes
  std::atomic<bool> abort_on_violation{false};

  // After `fail_...` more allocations (launches), the next `fail_count` of them fail. -1: none fails.
  std::atomic<int64_t> fail_allocation{-1};
  std::atomic<int64_t> fail_launch{-1};
  std::atomic<int64_t> fail_count{1};
  std::atomic<int64_t> failed_allocations{0};
  std::atomic<int64_t> failed_launches{0};
  std::atomic<bool> lose_device{false};  // every call returns that the device is lost
  // The results that these functions return at every call instead of the real ones. The work continues.
  std::atomic<ep_status> query_answer{EP_STATUS_OK};
  std::atomic<ep_status> host_wait_answer{EP_STATUS_OK};
  std::atomic<ep_status> synchronize_answer{EP_STATUS_OK};
  std::atomic<ep_status> compile_answer{EP_STATUS_OK};  // what graph_compile returns
  std::atomic<ep_status> elapsed_answer{EP_STATUS_OK};
  std::atomic<ep_status> create_answer{EP_STATUS_OK};  // returned by calls that create a primitive or compile a graph
  std::atomic<int64_t> fail_pack{-1};                  // a packing fails after this many others
  std::atomic<int64_t> failed_packs{0};
  std::atomic<int64_t> fail_graph{-1};  // the launch of a graph finds no memory after this many others
  std::atomic<int64_t> failed_graphs{0};
  std::atomic<int64_t> fail_replay{-1};  // a replay finds no memory after this many others
  std::atomic<int64_t> failed_replays{0};
  std::atomic<ep_status> begin_answer{EP_STATUS_OK};  // what command_list_begin returns
  std::atomic<ep_status> end_answer{EP_STATUS_OK};    // what command_list_end returns
  std::atomic<int64_t> fail_import{-1};               // an import of memory fails after this many others
  std::atomic<int64_t> fail_semaphore{-1};            // a wait for a semaphore fails after this many others
  std::atomic<int64_t> failed_imports{0};
  std::atomic<int64_t> failed_semaphores{0};

  std::atomic<uint64_t> allocations{0};
  std::atomic<uint64_t> allocated_bytes{0};  // at present
  std::atomic<int64_t> imports{0};           // blocks of imported memory, at present
  std::atomic<int64_t> semaphores{0};        // at present
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> peer_copies{0};
  std::atomic<uint64_t> overlaps{0};  // instructions that ran at the same time as one of another stream
  std::atomic<uint64_t> faults{0};
  std::atomic<uint64_t> device_waits{0};
  std::atomic<uint64_t> creating{0};  // calls that are creating a primitive or compiling a graph now
  std::atomic<uint64_t> created_primitives{0};
  std::atomic<uint64_t> cancelled_creates{0};  // creates that were stopped
  std::atomic<uint64_t> timed_records{0};      // records of events that keep their time
  std::atomic<uint64_t> compiled_graphs{0};
  std::atomic<uint64_t> compiled_nodes{0};
  std::atomic<uint64_t> destroyed_graphs{0};
  std::atomic<uint64_t> launched_graphs{0};
  std::atomic<int64_t> command_lists{0};  // at present
  std::atomic<int64_t> modules{0};        // at present
  std::atomic<uint64_t> replays{0};
  std::atomic<uint64_t> packed{0};         // packed operands
  std::atomic<uint64_t> packed_reads{0};   // launches that read a packed operand
  std::atomic<uint64_t> opaque_reads{0};   // operands in opaque layouts that launches read
  std::atomic<uint64_t> opaque_writes{0};  // how many written operands were opaque

  // The first access out of order, or an empty string.
  std::string violation();
  void violate(const std::string& text);
  // Restores the defaults and sets the counters to 0.
  void reset();

 private:
  std::mutex mutex_;
  std::string violation_;
};

AsyncControl& async_control();

ep_status async_query(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error);

}  // namespace tenon::fakes
