#include "providers/cpu/pages.h"

#include <sys/mman.h>

#include <algorithm>

#include "providers/cpu/threads/clock.h"

namespace tenon::provider::cpu {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, which older headers lack

void touch(char* page) { *const_cast<volatile char*>(page) = 0; }

void want_huge(char* begin, uint64_t size) { madvise(begin, size, MADV_HUGEPAGE); }

bool all_touched(char* page) {
  unsigned char resident[kHugePage / kPage];
  if (mincore(page, kHugePage, resident) != 0) return false;
  return std::all_of(std::begin(resident), std::end(resident), [](unsigned char one) { return (one & 1) != 0; });
}

// Merging few small pages into a huge page would allocate memory that nobody has touched.
void join(char* begin, uint64_t size) {
  madvise(begin, size, MADV_HUGEPAGE);
  for (char* page = begin; page < begin + size; page += kHugePage) {
    if (all_touched(page)) madvise(page, kHugePage, kCollapse);
  }
}

}  // namespace

void Pages::choose(char* begin, uint64_t size) {
  const std::lock_guard lock(mutex_);
  held_ += size;
  if (held_ > kMostSmall) {
    for (const auto& [block, bytes] : small_) system_.join(block, bytes);
    small_.clear();
    return system_.want_huge(begin, size);
  }
  if (huge_is_slow(begin, size)) {
    small_.emplace(begin, size);
  } else {
    system_.want_huge(begin, size);
  }
}

// Times the first two huge pages, because another program may have used the processor during one of them.
bool Pages::huge_is_slow(char* begin, uint64_t size) {
  if (system_.clock() < slow_until_) return true;
  for (char* page = begin; page < begin + std::min(size, 2 * kHugePage); page += kHugePage) {
    system_.want_huge(page, kHugePage);
    const int64_t before = system_.clock();
    system_.touch(page);
    if (system_.clock() - before < kSlow) return false;
  }
  slow_until_ = system_.clock() + kRemembered;
  return true;
}

void Pages::forget(char* begin, uint64_t size) {
  const std::lock_guard lock(mutex_);
  held_ -= size;
  small_.erase(begin);
}

Pages& pages() {
  static auto* all = new Pages({now, touch, want_huge, join});
  return *all;
}

}  // namespace tenon::provider::cpu
