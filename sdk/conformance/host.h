// The host of a provider under test. It counts allocations, makes allocations fail, remembers every error that it made,
// and notes violations that no return value shows.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::conformance {

// The settings that a plug-in can read: key and value.
using Settings = std::vector<std::pair<std::string, std::string>>;

class Host {
 public:
  // `plugin_path`: of the library that it serves; may be empty.
  explicit Host(Settings settings, const std::string& plugin_path = {});
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const ep_host* table() const { return &table_; }
  ep_host* table() { return &table_; }

  int64_t bytes_held() const;
  int64_t device_bytes() const;  // the sum of the reports to device_memory_report
  int64_t errors_alive() const;
  int64_t allocations() const;  // number of allocations so far

  // Makes one allocation return NULL: the one after `count` more. -1: none.
  void fail_allocation_after(int64_t count);
  bool allocation_failed() const;

  // While it lingers, every service pauses before it returns, so that a call which asks the host for something in the
  // middle of its work is overtaken by other threads.
  void linger(bool on) { lingers_.store(on); }

  // While it keeps blobs, blob_get hands out what blob_put was given; else it knows none. What it
  // keeps outlives the plug-in. Returns how many blobs were handed out since the last call.
  enum class Blobs : uint8_t { none, kept };
  uint64_t keep_blobs(Blobs blobs);

  // Has cancel_requested say 1 to the calling thread from its question number `questions` on, counted from 0 and from
  // this call. -1: never.
  void cancel_after(int64_t questions);
  // How often cancel_requested was asked since the last cancel_after.
  int64_t cancel_questions() const;

  // Turns the result of a plug-in's `function` into a Status and releases `error`. Notes a violation if the result
  // itself is wrong: an error beside EP_STATUS_OK, no error beside a failure, an error that this host did not make, an
  // unknown status.
  Status take(const char* function, ep_status status, ep_error* error);

  void violate(Status violation);
  // The first violation since the last call.
  Status take_violation();

 private:
  friend struct HostEntries;
  bool asks_to_cancel();
  struct Block {
    uint64_t size;
  };

  ep_host table_{};
  const Settings settings_;
  const std::string plugin_path_;
  mutable std::mutex mutex_;
  std::map<const void*, Block> blocks_;
  std::set<const ep_error*> errors_;
  int64_t bytes_ = 0, device_bytes_ = 0, allocations_ = 0, fail_after_ = -1;
  int64_t cancel_after_ = -1, cancel_questions_ = 0;
  std::thread::id cancelled_thread_;
  bool failed_ = false;
  std::atomic<bool> lingers_ = false;
  Blobs keeping_ = Blobs::none;
  std::map<std::string, std::string> blobs_;
  uint64_t blobs_given_ = 0;
  Status violation_;
};

}  // namespace tenon::conformance
