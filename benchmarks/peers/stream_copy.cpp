#include "benchmarks/peers/stream_copy.h"

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
#else
void copy_range(char* dst, const char* src, size_t bytes) { std::memcpy(dst, src, bytes); }
#endif

}  // namespace

void stream_copy(void* dst, const void* src, size_t bytes, int threads) {
  const size_t part = bytes / static_cast<size_t>(threads) / 64 * 64;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int t = 0; t < threads; ++t) {
    const size_t from = part * static_cast<size_t>(t);
    const size_t size = t + 1 == threads ? bytes - from : part;
    copy_range(static_cast<char*>(dst) + from, static_cast<const char*>(src) + from, size);
  }
}

}  // namespace tenon::bench
