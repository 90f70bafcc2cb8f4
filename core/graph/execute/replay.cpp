#include "core/graph/execute/replay.h"

#include <algorithm>
#include <utility>

#include "core/device/device_state.h"

namespace tenon::graph {
namespace {

constexpr uint32_t kRunsBefore = 2;   // recording does not pay for a program that runs once
constexpr uint64_t kAlignment = 256;  // alignment of every binding of a list

struct Live {
  std::mutex mutex;
  std::vector<Replay*> all;
};

Live& live() {
  static auto* one = new Live;  // never destroyed, because executables in static objects may end later
  return *one;
}

// True if a list can have these bindings: they do not overlap, and each start is aligned so that any other may replace
// it.
bool can_record(std::span<const vm::Operand> bindings) {
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (bindings[i].offset % kAlignment != 0) return false;
    for (size_t other = 0; other < i; ++other) {
      if (bindings[other].storage == bindings[i].storage) return false;
    }
  }
  return true;
}

}  // namespace

Replay::Replay(DeviceState* device) : device_(device) {
  const std::lock_guard lock(live().mutex);
  live().all.push_back(this);
}

Replay::~Replay() {
  const std::lock_guard lock(live().mutex);
  std::erase(live().all, this);
}

std::shared_ptr<vm::CommandList> Replay::list() const {
  const std::lock_guard lock(mutex_);
  return list_;
}

void Replay::ran(const std::shared_ptr<const vm::Segment>& segment, std::span<const vm::Operand> bindings,
                 std::span<const uint64_t> moving) {
  const std::lock_guard lock(mutex_);
  if (runs_ > kRunsBefore || !can_record(bindings) || ++runs_ != kRunsBefore) return;
  ++runs_;
  std::vector<vm::CommandList::Binding> recorded;
  for (size_t i = 0; i < bindings.size(); ++i) recorded.push_back({bindings[i], moving[i]});
  if (auto made = vm::CommandList::record(segment, recorded); made.ok()) list_ = std::move(made.value());
}

bool drop_replays(DeviceState* device) {
  bool dropped = false;
  const std::lock_guard lock(live().mutex);
  for (Replay* replay : live().all) {
    if (replay->device_ != device) continue;
    const std::lock_guard own(replay->mutex_);
    dropped = dropped || replay->list_ != nullptr;
    replay->list_.reset();
    replay->runs_ = 0;
  }
  return dropped;
}

}  // namespace tenon::graph
