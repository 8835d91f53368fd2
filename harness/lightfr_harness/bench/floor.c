/* Reads n bytes and does as little as possible with them: the floor under every scan of the same bytes. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2"))) static uint64_t read_avx2(const uint8_t* bytes, size_t n) {
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  for (size_t i = 0; i + 128 <= n; i += 128) {
    a = _mm256_or_si256(a, _mm256_loadu_si256((const __m256i*)(bytes + i)));
    b = _mm256_or_si256(b, _mm256_loadu_si256((const __m256i*)(bytes + i + 32)));
    c = _mm256_or_si256(c, _mm256_loadu_si256((const __m256i*)(bytes + i + 64)));
    d = _mm256_or_si256(d, _mm256_loadu_si256((const __m256i*)(bytes + i + 96)));
  }
  const __m256i all = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
  return (uint64_t)_mm256_extract_epi64(all, 0) | (uint64_t)_mm256_extract_epi64(all, 1) |
         (uint64_t)_mm256_extract_epi64(all, 2) | (uint64_t)_mm256_extract_epi64(all, 3);
}
#endif

static uint64_t read_plain(const uint8_t* bytes, size_t n) {
  uint64_t all = 0, word;
  for (size_t i = 0; i + 8 <= n; i += 8) {
    memcpy(&word, bytes + i, 8);
    all |= word;
  }
  return all;
}

static uint64_t lfr_floor_read(const uint8_t* bytes, size_t n) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return read_avx2(bytes, n);
#endif
  return read_plain(bytes, n);
}
