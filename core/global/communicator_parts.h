// The parts of Communicator: its lines, the path of its tensors, and the description of an exchange for a plug-in.
// Internal to communicator.cpp and tensors.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "core/global/communicator.h"

namespace tenon::global {

// FNV-1a over the counts, so that ranks can compare them as one number.
uint64_t digest_of(std::span<const int64_t> counts);
ep_collective_desc describe(int32_t kind, DType dtype, const void* src, void* dst, int64_t count);
Status wrong_counts(int32_t kind, size_t counts, int32_t size);

// The numbers that this process has sent to others.
struct Given {
  std::atomic<uint64_t> exchanges, bytes, beside;
};
inline constinit Given given;

struct Communicator::Line {
  ep_communicator* handle = nullptr;
  ep_communicator_info info{};
  const loader::OpenCollectives& plugin;

  explicit Line(const loader::OpenCollectives& of) : plugin(of) {
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_COMMUNICATOR_INFO;
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { plugin.ops.communicator_destroy(handle); }
};

struct Communicator::Road {
  Device device;
  loader::OpenCollectives* plugin = nullptr;  // the plug-in that takes the device's memory
  std::unique_ptr<Line> line;                 // null: elements are sent through the host
  // The dtypes that the plug-ins of all ranks support, as bits 1 << dtype.
  uint64_t dtypes = 0, summed_dtypes = 0;
};

}  // namespace tenon::global
