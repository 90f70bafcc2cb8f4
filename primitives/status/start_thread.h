// Starts a thread even if the system may have none left, for example because of a process limit or a full cgroup.
#pragma once

#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace tenon {

// Makes `*thread`, which is not joinable, run `function`. Returns false if the system has no thread or no memory for
// one; the caller then continues without it.
template <class F>
bool start_thread(std::thread* thread, F&& function) {
  try {
    *thread = std::thread(std::forward<F>(function));
    return true;
  } catch (const std::system_error&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace tenon
