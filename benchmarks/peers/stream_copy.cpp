#include "benchmarks/peers/stream_copy.h"

#include <atomic>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::bench {
namespace {

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void copy_avx512(char* dst, const char* src, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i), _mm512_load_si512(reinterpret_cast<const void*>(src + i)));
  }
  _mm_sfence();
}

void copy_sse2(char* dst, const char* src, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(dst + i), _mm_load_si128(reinterpret_cast<const __m128i*>(src + i)));
  }
  _mm_sfence();
}

void copy_range(char* dst, const char* src, size_t bytes) {
  __builtin_cpu_supports("avx512f") ? copy_avx512(dst, src, bytes) : copy_sse2(dst, src, bytes);
}
__attribute__((target("avx512f"))) uint64_t read_avx512(const char* src, size_t bytes) {
  __m512i sum[4] = {};
  size_t i = 0;
  for (; i + 256 <= bytes; i += 256) {
    for (size_t k = 0; k < 4; ++k) {
      sum[k] = _mm512_xor_si512(sum[k], _mm512_load_si512(reinterpret_cast<const void*>(src + i + 64 * k)));
    }
  }
  for (; i < bytes; i += 64) {
    sum[0] = _mm512_xor_si512(sum[0], _mm512_load_si512(reinterpret_cast<const void*>(src + i)));
  }
  alignas(64) uint64_t words[8];
  _mm512_store_si512(words, _mm512_xor_si512(_mm512_xor_si512(sum[0], sum[1]), _mm512_xor_si512(sum[2], sum[3])));
  uint64_t all = 0;
  for (const uint64_t word : words) all ^= word;
  return all;
}
#else
void copy_range(char* dst, const char* src, size_t bytes) { std::memcpy(dst, src, bytes); }
#endif

uint64_t read_words(const char* src, size_t bytes) {
  uint64_t all = 0;
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word;
    std::memcpy(&word, src + i, 8);
    all ^= word;
  }
  return all;
}

uint64_t read_range(const char* src, size_t bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return read_avx512(src, bytes);
#endif
  return read_words(src, bytes);
}

// Calls body(from, size) on each thread for its part of the bytes.
template <class Body>
void on_parts(size_t bytes, int threads, const Body& body) {
  const size_t part = bytes / static_cast<size_t>(threads) / 64 * 64;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int t = 0; t < threads; ++t) {
    const size_t from = part * static_cast<size_t>(t);
    body(from, t + 1 == threads ? bytes - from : part);
  }
}

}  // namespace

void fill_for_copy(void* at, size_t bytes) {
  auto* const words = static_cast<uint64_t*>(at);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) words[i] = (i + 1) * 0x9e3779b97f4a7c15U;
}

void stream_copy(void* dst, const void* src, size_t bytes, int threads) {
  on_parts(bytes, threads, [&](size_t from, size_t size) {
    copy_range(static_cast<char*>(dst) + from, static_cast<const char*>(src) + from, size);
  });
}

uint64_t stream_read(const void* src, size_t bytes, int threads) {
  std::atomic<uint64_t> all{0};
  on_parts(bytes, threads, [&](size_t from, size_t size) {
    all.fetch_xor(read_range(static_cast<const char*>(src) + from, size), std::memory_order_relaxed);
  });
  return all.load();
}

}  // namespace tenon::bench
