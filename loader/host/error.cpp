#include "loader/host/error.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "loader/loader.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

ep_error& out_of_memory_error() {
  static auto* error = new ep_error{EP_STATUS_OUT_OF_HOST_MEMORY, "out of host memory.", ""};
  return *error;
}

// Made when the program starts, so that it exists if memory runs out.
[[maybe_unused]] const ep_error& made_early = out_of_memory_error();

// The errors that were made since track_errors() and not released yet.
struct LiveErrors {
  std::mutex mutex;
  std::unordered_set<const ep_error*> all;
};

LiveErrors& live_errors() {
  static auto* errors = new LiveErrors;
  return *errors;
}

std::atomic<bool> tracked{false};

bool is_known(ep_status status) { return status > EP_STATUS_OK && status <= EP_STATUS_INTERNAL; }

}  // namespace

ep_error* make_error(ep_status status, std::string_view sentence, std::string_view remedy) noexcept {
  try {
    auto error = std::make_unique<ep_error>(ep_error{status, std::string(sentence), std::string(remedy)});
    if (tracked.load(std::memory_order_relaxed)) {
      std::lock_guard lock(live_errors().mutex);
      live_errors().all.insert(error.get());
    }
    return error.release();
  } catch (...) {
    return &out_of_memory_error();
  }
}

void release_error(ep_error* error) noexcept {
  if (error == &out_of_memory_error()) return;
  if (tracked.load(std::memory_order_relaxed)) {
    std::lock_guard lock(live_errors().mutex);
    live_errors().all.erase(error);
  }
  delete error;
}

void track_errors() { tracked.store(true); }

bool is_live_error(const ep_error* error) {
  if (error == &out_of_memory_error()) return true;
  std::lock_guard lock(live_errors().mutex);
  return live_errors().all.contains(error);
}

Status take_error(ep_status status, ep_error* error, std::string_view doing) {
  if (status == EP_STATUS_OK) {
    release_error(error);
    return {};
  }
  const Code code = is_known(status) ? static_cast<Code>(status) : Code::internal;
  std::string sentence = error ? error->sentence : std::string();
  std::string remedy = error ? error->remedy : std::string();
  release_error(error);
  if (sentence.empty()) sentence = fmt::format("the provider gave no reason for its answer '{}'.", code_name(code));
  if (!is_known(status)) sentence += fmt::format(" Its status {} is not one of the known ones.", status);
  const Status failure(code, std::move(sentence), std::move(remedy));
  return doing.empty() ? failure : failure.with_context(fmt::format("  while {}", doing));
}

}  // namespace tenon::loader
