// The host of a provider under test. It counts allocations, makes allocations fail, stores every error that it made,
// and records violations that no return value shows.
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
  // `plugin_path` is the path of the plug-in's library; may be empty.
  explicit Host(Settings settings, const std::string& plugin_path = {});
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const ep_host* table() const { return &table_; }
  ep_host* table() { return &table_; }

  int64_t bytes_held() const;
  int64_t device_bytes() const;  // the sum of the reports to device_memory_report
  int64_t errors_alive() const;
  int64_t allocations() const;  // number of allocations so far

  // Makes one allocation return NULL, after `count` more have succeeded. -1: none.
  void fail_allocation_after(int64_t count);
  bool allocation_failed() const;

  // While `on`, every service pauses before it returns, so that other threads overtake a call that uses a service in
  // the middle of its work.
  void linger(bool on) { lingers_.store(on); }

  // With `kept`, blob_get returns the blobs of blob_put; with `none`, it finds none. Blobs
  // outlive the plug-in. Returns how many blobs blob_get has returned since the last call.
  enum class Blobs : uint8_t { none, kept };
  uint64_t keep_blobs(Blobs blobs);

  // Makes cancel_requested return 1 on the calling thread, after `questions` more calls that return 0. -1: never.
  void cancel_after(int64_t questions);
  // The number of calls of cancel_requested since the last cancel_after.
  int64_t cancel_questions() const;

  // Converts the result of a plug-in's `function` into a Status and releases `error`. Records a violation if the result
  // is invalid: EP_STATUS_OK with an error, a failure without one, an error that this host did not make, an unknown
  // status.
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
