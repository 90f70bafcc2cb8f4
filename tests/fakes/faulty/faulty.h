// The faulty fake: wraps a provider and makes calls fail. See README.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "ep_api/ep_api.h"
#include "loader/layers/wrap.h"

namespace tenon::fakes {

using loader::Slot;
using loader::slot_count;

// `cancel`: the host wants the call to stop while it runs.
enum class Trouble : uint8_t { refuse, exhaust, late, slow, lose, cancel };
constexpr size_t trouble_count = 6;
constexpr std::string_view trouble_names[] = {"refuse", "exhaust", "late", "slow", "lose", "cancel"};
// True if `trouble` is possible in `slot`. A function without a status cannot fail, only a launch faults late, memory
// runs out only in functions that make an object, and only a create can be cancelled.
bool can_strike(Slot slot, Trouble trouble);

// One wrapped provider. Tests and devices share it.
class Faulty {
 public:
  // Call before the host first queries the provider.
  void wrap(ep_plugin_query_fn query) { query_ = query; }
  // Loads the plug-in at `path`. Returns an empty string, or the reason of a failure.
  std::string wrap(const std::string& path);

  // Makes call number `nth` (from 0, counted from now) of `slot` fail, once. With `first`, a call of that function
  // fails before it, so that the host calls `slot` instead.
  void arm(Slot slot, Trouble trouble, int64_t nth, std::optional<Slot> first = std::nullopt);
  // Disarms. Returns true if the trouble occurred since arm().
  bool disarm();

  uint64_t calls(Slot slot) const { return calls_[static_cast<size_t>(slot)].load(std::memory_order_relaxed); }
  // The number of calls of `slot` since it was last armed.
  int64_t calls_since() const { return seen_.load(std::memory_order_relaxed); }

  // Sets the function that cancels a create for Trouble::cancel. Without it the create continues.
  void on_cancel(std::function<void()> cancel);
  void cancel();

  // One in `forgetful` calls of blob_get finds nothing, and one in `forgetful` calls of blob_put keeps nothing. 0:
  // none.
  std::atomic<uint32_t> forgetful{0};
  std::atomic<uint64_t> blobs_asked{0}, blobs_kept{0}, blobs_forgotten{0};

  // For the wrapped functions.
  ep_plugin_query_fn query() const { return query_; }
  bool strikes(Slot slot, Trouble* trouble);
  ep_status next_status(Slot slot, Trouble trouble);

 private:
  ep_plugin_query_fn query_ = nullptr;
  std::array<std::atomic<uint64_t>, slot_count> calls_{};
  std::mutex mutex_;
  std::atomic<bool> armed_{false};
  bool struck_ = false;
  Slot slot_ = Slot::copy;
  Trouble trouble_ = Trouble::refuse;
  int64_t left_ = 0;
  std::optional<Slot> first_;
  std::atomic<int64_t> seen_{0};
  uint32_t round_ = 0;
  std::function<void()> cancel_;
};

// `number` is 0, 1 or 2.
Faulty& faulty(int number);
ep_plugin_query_fn faulty_query(int number);

}  // namespace tenon::fakes
