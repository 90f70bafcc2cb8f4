// Size classes of small blocks: multiples of 64 bytes up to 512, then eight steps per doubling up to 32 KiB. So above
// 512 bytes a block is at most 12.5 % larger than requested.
#pragma once

#include <bit>
#include <cstdint>

namespace tenon::memory {

constexpr uint64_t kSmallLimit = 32 * 1024;
constexpr int kSizeClasses = 8 + 6 * 8;

// The class of a block of `bytes`, 1 to kSmallLimit.
constexpr int size_class(uint64_t bytes) {
  if (bytes <= 512) return static_cast<int>((bytes - 1) >> 6);
  const int doubling = std::bit_width(bytes - 1) - 10;  // 0 for 513 to 1024
  return 8 + doubling * 8 + static_cast<int>(((bytes - 1) >> (doubling + 6)) & 7);
}

// Bytes of a block of class `index`.
constexpr uint64_t class_bytes(int index) {
  if (index < 8) return static_cast<uint64_t>(index + 1) * 64;
  const int doubling = (index - 8) / 8;
  return (uint64_t{512} << doubling) + (static_cast<uint64_t>((index - 8) % 8) + 1) * (uint64_t{64} << doubling);
}

static_assert(class_bytes(size_class(kSmallLimit)) == kSmallLimit && size_class(kSmallLimit) == kSizeClasses - 1);
static_assert(class_bytes(size_class(513)) == 576 && class_bytes(size_class(1024)) == 1024);

}  // namespace tenon::memory
