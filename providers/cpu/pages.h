// Pages: chooses between huge and small pages for large blocks of memory.
//
// A huge page (2 MiB) takes one page fault and one TLB entry; the same memory in small pages takes 512. Usually huge
// pages make the first touch about ten times as fast. But a hypervisor with free page reporting may have taken free
// huge pages away from its guest, and getting them back is slower than small pages. So the first huge page of a block
// is timed. If it is slow, blocks get small pages for the next second.
//
// A process gets small pages up to 512 MiB in total, because models that compute much per byte do not benefit from huge
// pages. Once it holds more, new blocks get huge pages, and its small pages are merged.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace tenon::provider::cpu {

constexpr uint64_t kHugePage = 2 * 1024 * 1024;

// The system functions that Pages uses. Tests replace them.
struct PageSystem {
  int64_t (*clock)() = nullptr;                             // nanoseconds
  void (*touch)(char* page) = nullptr;                      // touches a huge page for the first time
  void (*want_huge)(char* begin, uint64_t size) = nullptr;  // requests huge pages for untouched memory
  void (*join)(char* begin, uint64_t size) = nullptr;       // merges small pages in use into huge pages
};

// Threads: every function is thread-safe.
class Pages {
 public:
  explicit Pages(const PageSystem& system) : system_(system) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // Chooses the page size for [begin, begin + size): whole, untouched huge pages.
  void choose(char* begin, uint64_t size);
  // To be called before the block at `begin` is unmapped.
  void forget(char* begin, uint64_t size);

  static constexpr uint64_t kMostSmall = uint64_t{512} << 20;  // most bytes in small pages
  static constexpr int64_t kSlow = 1'000'000;  // a first touch of a huge page that takes more nanoseconds is slow
  static constexpr int64_t kRemembered = 1'000'000'000;  // nanoseconds until a page is timed again

 private:
  bool huge_is_slow(char* begin, uint64_t size);

  const PageSystem system_;
  std::mutex mutex_;
  uint64_t held_ = 0;                // bytes in all blocks
  int64_t slow_until_ = 0;           // time of `clock`
  std::map<char*, uint64_t> small_;  // blocks with small pages, and their sizes
};

// The instance for this system. It is never destroyed.
Pages& pages();

}  // namespace tenon::provider::cpu
