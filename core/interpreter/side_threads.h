// Threads that help their caller with one long piece of work, and end with it. Internal.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "loader/settings/settings.h"
#include "primitives/status/start_thread.h"

namespace tenon {

// The number of threads to help with `work` if each needs at least `worth` of it: at most as many as the program may
// use, without the caller. The limit is read from files, which takes longer than short work, so short
// work does not read it.
inline size_t side_threads(uint64_t work, uint64_t worth) {
  const uint64_t wanted = work / worth;
  return wanted < 2 ? 0 : std::min(static_cast<uint64_t>(loader::thread_limit()), wanted) - 1;
}

// Calls take(i) once for each i below `count`, on the caller and on `helpers` threads, in increasing order. `take` must
// not throw.
template <class Take>
void share_with(size_t helpers, size_t count, const Take& take) {
  std::atomic<size_t> next{0};
  const auto take_all = [&] {
    for (size_t i = next++; i < count; i = next++) take(i);
  };
  std::vector<std::thread> threads(helpers);
  for (std::thread& thread : threads) {
    if (!start_thread(&thread, take_all)) break;
  }
  take_all();
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace tenon
