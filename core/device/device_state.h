// DeviceState: what the core keeps for one open device; never destroyed. Internal to the library.
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
  ep_device_ops ops{};           // full-size copy: no slot past the end is ever called
  uint16_t id = 0;               // among all devices ever opened, from 0
  uint16_t spelling_number = 0;  // among spellings: a device that is opened again has the number it had
  bool synchronous = false;
  bool mapped = false;                       // pool 0 is host-visible and coherent: Block::host is set
  bool exclusive = false;                    // pool 0 is EP_POOL_FLAG_EXCLUSIVE: one tensor per block
  bool layouts = false;                      // it has layouts of its own: storages may hold opaque values
  uint64_t copy_granularity = 1;             // the greatest of its pools
  std::atomic<bool> holds_host_data{false};  // true: host_device_state() gives this device
  ep_stream* inline_stream = nullptr;        // of a synchronous device
  std::unique_ptr<memory::Allocator> allocator;
  std::atomic<uint64_t> thread_scratch{0};  // bytes of the device that threads keep as scratch
  std::atomic<uint64_t> packed{0};          // bytes of constants in layouts of kernels
  std::atomic<uint64_t> planned_peak{0};    // memory::Stats
  std::atomic<uint64_t> planned_lower_bound{0};
  std::atomic<int64_t> borrowed{0};    // blocks of memory that the application owns
  std::atomic<int64_t> semaphores{0};  // of other APIs, that the application or an instruction keeps
  bool retired = false;                // its provider was retired: every call is an error
  vm::DeviceQueue* queue = nullptr;  // of an asynchronous device: its streams and launch thread (core/vm), never freed
};

}  // namespace tenon
