// A provider driven through the raw C ABI, with a host of its own: no loader, no core. For tests that want to know what
// a plug-in does, not what the host makes of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::cases {

// The settings a plug-in may ask for: key and value.
using Settings = std::vector<std::pair<std::string, std::string>>;

// The least host there can be: counts what the plug-in allocates, hands out the settings, prints errors it logs.
class PlainHost {
 public:
  explicit PlainHost(Settings settings);
  const ep_host* table() const { return &table_; }
  int64_t bytes_held() const { return bytes_held_; }
  // The failure an entry reported, and frees it.
  static Status take(ep_status status, ep_error* error);

 private:
  friend struct HostEntries;
  ep_host table_;
  Settings settings_;
  int64_t bytes_held_ = 0;
};

// What one launch needs besides the descriptor.
struct Run {
  const ep_primitive_desc* desc;    // as created, EP_ANY included
  const ep_primitive_desc* shapes;  // the same with static dims
  std::span<const ep_scalar> scalars;
  std::span<const uint64_t> offsets;  // of element 0 in `bytes`, per operand
  std::vector<uint8_t>* bytes;        // uploaded before, downloaded after
  ep_fault* fault;                    // filled where the status is Code::fault
};

// One open device of one plug-in.
class Provider {
 public:
  static Result<std::unique_ptr<Provider>> open(const std::string& path, uint32_t device_index, Settings settings);
  ~Provider();
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  const ep_device_info& info() const { return info_; }
  bool is_synchronous() const { return info_.flags & EP_DEVICE_FLAG_SYNCHRONOUS; }
  Result<ep_support_info> support(const ep_primitive_desc& desc);
  Status run(const Run& run);
  // Closes and shuts down; then tells what the plug-in did not give back.
  Status close();

 private:
  explicit Provider(Settings settings) : host_(std::move(settings)) {}
  struct Block;
  Result<Block> allocate(uint64_t size);
  Status launch(ep_primitive* primitive, const ep_primitive_info& info, const Run& run, ep_memory* operands);
  Status wait(ep_fault* fault);

  PlainHost host_;
  ep_plugin_ops plugin_ = {};
  ep_device_info info_ = {};
  ep_device_ops ops_ = {};
  ep_device* device_ = nullptr;
  ep_stream* stream_ = nullptr;
  ep_event* event_ = nullptr;
  uint64_t tag_ = 0;
};

}  // namespace tenon::cases
