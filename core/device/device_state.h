// DeviceState: the core's state of one open device; never destroyed. Internal to the library.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/device/allocator.h"
#include "loader/loader.h"

namespace tenon {

namespace vm {
class DeviceQueue;
}

struct DeviceState {
  loader::OpenDevice* opened = nullptr;
  ep_device* handle = nullptr;
  ep_device_ops ops{};           // full-size copy: slots that the provider lacks are never called
  uint16_t id = 0;               // among all devices ever opened, from 0
  uint16_t spelling_number = 0;  // number of its spelling: a device that is opened again keeps it
  bool synchronous = false;
  bool mapped = false;                       // pool 0 is host-visible and coherent: Block::host is set
  bool exclusive = false;                    // pool 0 has EP_POOL_FLAG_EXCLUSIVE: one tensor per block
  bool layouts = false;                      // it has its own layouts: storages may hold opaque values
  uint64_t copy_granularity = 1;             // the greatest of its pools
  std::atomic<bool> holds_host_data{false};  // true: this is the host device
  ep_stream* inline_stream = nullptr;        // synchronous devices only
  std::unique_ptr<memory::Allocator> allocator;
  std::atomic<uint64_t> thread_scratch{0};  // bytes of device memory that threads keep as scratch
  std::atomic<uint64_t> packed{0};          // bytes of packed constants
  std::atomic<uint64_t> planned_peak{0};    // see memory::Stats
  std::atomic<uint64_t> planned_lower_bound{0};
  std::atomic<int64_t> borrowed{0};    // number of blocks of application memory
  std::atomic<int64_t> semaphores{0};  // semaphores of other APIs that the application or an instruction holds
  bool retired = false;                // its provider was retired: every call fails
  vm::DeviceQueue* queue = nullptr;  // asynchronous devices only: its streams and launch thread (core/vm), never freed
};

}  // namespace tenon
