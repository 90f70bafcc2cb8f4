// Pages: which pages of the system large blocks of memory get.
//
// A huge page (2 MiB) takes one fault and one entry of the TLB where small ones take 512. With huge pages the first
// touch of 400 MiB takes 20 to 32 ms, with small ones 220 to 320. But a guest of a hypervisor that takes free huge
// pages away, and brings them back at the first touch, waits 500 to 1,900 ms (Linux's free page reporting; 2 CPUs). So
// the first huge page of a block is timed. Where it is slow, blocks get small pages, until a second is over.
//
// Decision, 2026-11-23: small pages up to 512 MiB. Price: a TLB miss per 4 KiB, which BERT-base and ViT-B/16 do not
// show, as they compute long on what they read; a step of a Llama of 985 MB, which only reads, takes 36.9 ms instead of
// 29.8. So a process that holds more gets huge pages from then on, and the small pages that it has are joined. A system
// that says whether its free huge pages are at hand would change our mind.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace tenon::provider::cpu {

constexpr uint64_t kHugePage = 2 * 1024 * 1024;

// What Pages wants of the system. Tests give another one.
struct PageSystem {
  int64_t (*clock)() = nullptr;                             // nanoseconds
  void (*touch)(char* page) = nullptr;                      // the first touch of a huge page
  void (*want_huge)(char* begin, uint64_t size) = nullptr;  // of pages that nobody has touched
  void (*join)(char* begin, uint64_t size) = nullptr;       // makes small pages in use huge ones
};

// Threads: every function is thread-safe.
class Pages {
 public:
  explicit Pages(const PageSystem& system) : system_(system) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // Chooses the pages of [begin, begin + size), whole huge pages that nobody has touched.
  void choose(char* begin, uint64_t size);
  // The block at `begin` is about to be unmapped.
  void forget(char* begin, uint64_t size);

  static constexpr uint64_t kMostSmall = uint64_t{512} << 20;  // bytes that may have small pages
  static constexpr int64_t kSlow = 1'000'000;                  // nanoseconds of the first touch of a slow huge page
  static constexpr int64_t kRemembered = 1'000'000'000;        // nanoseconds for which no page is timed again

 private:
  bool huge_is_slow(char* begin, uint64_t size);

  const PageSystem system_;
  std::mutex mutex_;
  uint64_t held_ = 0;                // bytes, small and huge
  int64_t slow_until_ = 0;           // by the clock
  std::map<char*, uint64_t> small_;  // blocks with small pages, and their sizes
};

// Of this system; never destroyed.
Pages& pages();

}  // namespace tenon::provider::cpu
