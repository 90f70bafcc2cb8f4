// Starts and ends that need a process of their own. lifecycle_test.cpp starts this program once for each.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#include "core/device/process.h"
#include "core/vm/engine.h"
#include "tests/unit/vm/async_machine.h"

namespace tenon::testing {
namespace {

constexpr int64_t kWords = 16;

StorageHandle filled(int device, uint64_t words = kWords) {
  StorageHandle handle = std::move(AsyncMachine::get().allocate(device, words)).value();
  if (!AsyncMachine::get().upload(handle.get(), 0, std::vector<uint32_t>(words, 5)).ok()) std::exit(3);
  return handle;
}

Status launch(Storage* dst, Storage* a, int stream, int64_t how = fakes::kMixRuns) {
  const bool whole = dst != a;
  return AsyncMachine::get().mix(0, stream, {dst, 0}, {a, 0}, {a, 0}, kWords, 1, how, whole);
}

// Leaves main with work in flight, a live tensor in a static, and an unread error.
int exit_in_flight() {
  fakes::async_control().delay_us = 2000;
  static StorageHandle kept = filled(0);
  StorageHandle other = filled(0);
  for (int i = 0; i < 200; ++i) {
    if (!launch(kept.get(), i % 2 ? kept.get() : other.get(), i % 3).ok()) return 1;
  }
  if (!launch(other.get(), kept.get(), 0, fakes::kMixFaults).ok()) return 1;
  return 0;
}

// In a forked child every call fails, and destructors do nothing. The parent continues.
int fork_in_flight() {
  fakes::async_control().delay_us = 500;
  auto* kept = new StorageHandle(filled(0));
  StorageHandle other = filled(0);
  for (int i = 0; i < 100; ++i) {
    if (!launch(other.get(), kept->get(), i % 3).ok()) return 1;
  }
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !launch(other.get(), kept->get(), 0).ok() && !AsyncMachine::get().download(other.get()).ok() &&
                         !vm::synchronize(AsyncMachine::get().device(0)).ok();
    other.reset();
    delete kept;
#if EP_SANITIZER_OF_THIS_BUILD != EP_SANITIZER_NONE
    _exit(refused ? 0 : 9);  // at exit the sanitizers look for threads, which a forked child lacks
#else
    std::exit(refused ? 0 : 9);
#endif
  }
  int status = 0;
  waitpid(child, &status, 0);
  const auto words = AsyncMachine::get().download(other.get());
  const bool parent_goes_on = words.ok() && words.value()[0] == 5 * 32 + 1;
  delete kept;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 && parent_goes_on ? 0 : 1;
}

// The device is lost with work in flight: the calls fail and do not hang.
int lose_device() {
  fakes::async_control().delay_us = 200;
  StorageHandle a = filled(0);
  StorageHandle b = filled(0);
  for (int i = 0; i < 50; ++i) static_cast<void>(launch(b.get(), a.get(), i % 3));
  fakes::async_control().lose_device = true;
  for (int i = 0; i < 50; ++i) static_cast<void>(launch(b.get(), a.get(), i % 3));
  const auto words = AsyncMachine::get().download(b.get());
  const Status first = vm::synchronize(AsyncMachine::get().device(0));
  return !words.ok() && words.status().code() == Code::device_lost && (first.ok() || first.code() == Code::device_lost)
             ? 0
             : 1;
}

// Another thread works while main ends.
int exit_beside_a_thread() {
  StorageHandle a = filled(0);
  static auto* handle = new StorageHandle(std::move(a));
  std::thread([] {
    for (;;) {
      Result<StorageHandle> out = AsyncMachine::get().allocate(0, kWords);
      if (!out.ok() || !launch(out.value().get(), handle->get(), 0).ok()) return;
    }
  }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return 0;
}

// Nanoseconds of processor time to take and free a small block on a thread.
int bench_blocks() {
  memory::Allocator& allocator = *AsyncMachine::get().device(0)->allocator;
  { const StorageHandle first = filled(0, 16); }
  AsyncMachine::get().settle();
  constexpr int kCount = 20000000;
  for (int round = 0; round < 5; ++round) {
    const std::clock_t begin = std::clock();
    for (int i = 0; i < kCount; ++i) {
      memory::Block block;
      if (!allocator.take_at_hand(64, &block)) return 1;
      allocator.release(block, {});
    }
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("take and give back 64 bytes: %.2f ns\n", seconds / kCount * 1e9);
  }
  return 0;
}

// Instructions per second, with outputs allocated, until the last completion: first independent ones, then instructions
// that each read the result of another stream.
int bench() {
  fakes::async_control().shadow = false;
  fakes::async_control().memory = uint64_t{256} << 20;
  AsyncMachine& machine = AsyncMachine::get();
  constexpr int kCount = 1000000;
  for (const bool dependent : {false, true}) {
    for (int round = 0; round < 3; ++round) {
      StorageHandle a = std::move(machine.allocate(0, 4)).value();
      if (!machine.upload(a.get(), 0, {1, 2, 3, 4}).ok()) return 1;
      machine.settle();
      StorageHandle last[2];
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kCount; ++i) {
        StorageHandle out = std::move(machine.allocate(0, 4)).value();
        Storage* in = dependent && i % 64 == 0 && last[1] ? last[i / 64 % 2 ? 0 : 1].get() : a.get();
        const int stream = dependent ? i / 64 % 2 : 0;
        if (!machine.mix(0, stream, {out.get(), 0}, {in, 0}, {in, 0}, 4, 1, 0, true).ok()) return 1;
        last[i / 64 % 2] = std::move(out);
      }
      machine.settle();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      std::printf("%s: %.3f million instructions per second\n", dependent ? "dependent" : "independent",
                  kCount / seconds * 1e-6);
    }
  }
  return 0;
}

struct Mode {
  const char* name;
  int (*run)();
};
constexpr Mode kModes[] = {{"exit_in_flight", exit_in_flight},
                           {"fork_in_flight", fork_in_flight},
                           {"lose_device", lose_device},
                           {"exit_beside_a_thread", exit_beside_a_thread},
                           {"bench", bench},
                           {"bench_blocks", bench_blocks}};

}  // namespace
}  // namespace tenon::testing

int main(int argc, char** argv) {
  for (const auto& mode : tenon::testing::kModes) {
    if (argc == 2 && std::strcmp(argv[1], mode.name) == 0) return mode.run();
  }
  return 2;
}
