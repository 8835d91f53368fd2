/* AVX2 + popcnt: rows as they lie in memory, and bit planes. lfr_avx2_batch.c has the many queries. */
#include "lfr_impl.h"

#ifdef LFR_HAVE_AVX2
#include <immintrin.h>

/* ---- rows as they lie in memory ---------------------------------------------------------------------------- */

/*
 * Mismatches of each 64-bit quarter, 0 .. 64. The bits of a byte are counted by two look-ups of a nibble, of which the
 * first answers 4 + bits and the second 4 - bits: their absolute difference, which sad sums up, is the byte's count.
 */
AVX2_INLINE __m256i mismatched_quarters(const uint8_t* at, __m256i query) {
  const __m256i above =
      _mm256_setr_epi8(4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8, 4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8);
  const __m256i below =
      _mm256_setr_epi8(4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0, 4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0);
  const __m256i nibble = _mm256_set1_epi8(0x0f);
  const __m256i x = _mm256_xor_si256(_mm256_loadu_si256((const __m256i*)at), query);
  const __m256i low = _mm256_and_si256(x, nibble);
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble);
  return _mm256_sad_epu8(_mm256_shuffle_epi8(above, low), _mm256_shuffle_epi8(below, high));
}

/* The same for a row of `wide` registers, quarter by quarter. */
AVX2_INLINE __m256i mismatched_row(const uint8_t* row, const __m256i* query, uint32_t wide) {
  __m256i sum = mismatched_quarters(row, query[0]);
  for (uint32_t i = 1; i < wide; i++) sum = _mm256_add_epi64(sum, mismatched_quarters(row + 32 * i, query[i]));
  return sum;
}

/* Adds neighbouring quarters of four registers: [a0+a1 b0+b1 c0+c1 d0+d1 | a2+a3 b2+b3 c2+c3 d2+d3]. */
AVX2_INLINE __m256i add_neighbours(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i halves = _mm256_packs_epi32(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_madd_epi16(halves, _mm256_set1_epi16(1));
}

/* Distances of the next rows_per_vector rows, in some order, one in the low bits of each lane of lane_bytes. */
AVX2_INLINE __m256i lane_distances(const uint8_t* at, const __m256i* query, uint32_t code_bytes) {
  if (code_bytes == 8) return mismatched_quarters(at, query[0]);
  if (code_bytes == 16)
    return add_neighbours(mismatched_quarters(at, query[0]), mismatched_quarters(at + 32, query[0]),
                          mismatched_quarters(at + 64, query[0]), mismatched_quarters(at + 96, query[0]));
  const uint32_t wide = code_bytes / 32;
  const __m256i sums = add_neighbours(mismatched_row(at, query, wide), mismatched_row(at + code_bytes, query, wide),
                                      mismatched_row(at + 2 * code_bytes, query, wide),
                                      mismatched_row(at + 3 * code_bytes, query, wide));
  return _mm256_add_epi32(sums, _mm256_permute2x128_si256(sums, sums, 1));
}

AVX2_INLINE uint32_t rows_per_vector(uint32_t code_bytes) { return code_bytes == 16 ? 8 : 4; }

/* The query repeated over a register, or over as many registers as one row takes. */
AVX2_INLINE void load_query(const uint8_t* query, uint32_t code_bytes, __m256i* out) {
  uint8_t bytes[LFR_MAX_CODE_BITS / 8];
  const uint32_t total = code_bytes < 32 ? 32 : code_bytes;
  for (uint32_t i = 0; i < total; i++) bytes[i] = query[i % code_bytes];
  for (uint32_t i = 0; i < total / 32; i++) out[i] = _mm256_loadu_si256((const __m256i*)(bytes + 32 * i));
}

/* The threshold where lane_distances has its distances, and 0 where that has 0. */
AVX2_INLINE __m256i lane_threshold(uint32_t threshold, uint32_t code_bytes) {
  return code_bytes == 8 ? _mm256_set1_epi64x(threshold) : _mm256_set1_epi32((int)threshold);
}

AVX2_INLINE int any_below(__m256i distances, __m256i threshold) {
  return _mm256_movemask_epi8(_mm256_cmpgt_epi32(threshold, distances)) != 0;
}

/*
 * A step is 32 rows counted in vector registers and 8 more counted by popcnt, which runs in the integer pipes beside
 * them (measured on Zen 3: 11 % faster than vectors alone, 4 or 12 scalar rows are slower than 8).
 */
#define VECTOR_ROWS 32
#define SCALAR_ROWS 8
#define STEP_ROWS (VECTOR_ROWS + SCALAR_ROWS)

/* Some row of the step is near: finds the registers that hold one and offers their rows. */
AVX2_INLINE void offer_step(const uint8_t* items, uint32_t first, uint32_t code_bytes, const uint8_t* query,
                            const __m256i* wide_query, lfr_top* top) {
  const uint32_t rows = rows_per_vector(code_bytes), vector_end = first + VECTOR_ROWS;
  for (; first < vector_end; first += rows) {
    const __m256i distances = lane_distances(items + (size_t)first * code_bytes, wide_query, code_bytes);
    if (any_below(distances, lane_threshold(top->threshold, code_bytes)))
      lfr_offer_rows(items, first, first + rows, code_bytes, query, top);
  }
  lfr_offer_rows(items, first, first + SCALAR_ROWS, code_bytes, query, top);
}

/* Negative when one of the scalar rows is nearer than the threshold. */
AVX2_INLINE int32_t scalar_rows_below(const uint8_t* at, const uint8_t* query, uint32_t code_bytes, int32_t threshold) {
  int32_t below = 0;
#pragma GCC unroll 8
  for (uint32_t j = 0; j < SCALAR_ROWS; j++)
    below |= (int32_t)lfr_distance(at + j * code_bytes, query, code_bytes) - threshold;
  return below;
}

AVX2_INLINE __m256i least_of_vector_rows(const uint8_t* at, const __m256i* wide_query, uint32_t code_bytes) {
  const uint32_t vectors = VECTOR_ROWS / rows_per_vector(code_bytes), vector_bytes = VECTOR_ROWS * code_bytes / vectors;
  __m256i least = lane_distances(at, wide_query, code_bytes);
  if (code_bytes <= 16) {
#pragma GCC unroll 8
    for (uint32_t v = 1; v < vectors; v++)
      least = _mm256_min_epi16(least, lane_distances(at + v * vector_bytes, wide_query, code_bytes));
    return least;
  }
  /* Wider rows have work enough in one turn; unrolled, they would double the size of the library. */
#pragma GCC unroll 1
  for (uint32_t v = 1; v < vectors; v++)
    least = _mm256_min_epi16(least, lane_distances(at + v * vector_bytes, wide_query, code_bytes));
  return least;
}

/* Rows are asked for ahead (measured on Zen 3: 2048 bytes is the best of 512 .. 8192 for 80 MB), except for 8-byte rows
 * within the caches, where that costs 4 to 6 %. */
#define PREFETCH_BYTES 2048

/* May lie behind the items: an address, since forming a pointer there would be undefined. */
AVX2_INLINE void fetch_ahead(uintptr_t address) { _mm_prefetch((const char*)address, _MM_HINT_T0); }

/* Rows of `code_bytes`, a constant wherever this is called, so that each width gets a loop of its own:
 * the least distance of a step of rows, then one compare and branch. */
AVX2_INLINE void scan_rows(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes, int prefetch,
                           const uint8_t* query, lfr_top* top) {
  const size_t step_bytes = STEP_ROWS * code_bytes;
  __m256i wide_query[LFR_MAX_CODE_BITS / 256];
  load_query(query, code_bytes, wide_query);
  __m256i threshold = lane_threshold(top->threshold, code_bytes);
  const uint8_t* at = items + (size_t)first * code_bytes;
  for (; last - first >= STEP_ROWS; first += STEP_ROWS, at += step_bytes) {
    const __m256i least = least_of_vector_rows(at, wide_query, code_bytes);
    const int32_t below = scalar_rows_below(at + VECTOR_ROWS * code_bytes, query, code_bytes, (int32_t)top->threshold);
    for (size_t line = 0; prefetch && line < step_bytes; line += 64) fetch_ahead((uintptr_t)at + PREFETCH_BYTES + line);
    if (__builtin_expect(any_below(least, threshold) | (below < 0), 0)) {
      offer_step(items, first, code_bytes, query, wide_query, top);
      threshold = lane_threshold(top->threshold, code_bytes);
    }
  }
  lfr_offer_rows(items, first, last, code_bytes, query, top);
}

AVX2_INLINE void scan_width(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                            const uint8_t* query, lfr_top* top) {
  if (code_bytes > 8 || top->from_memory)
    scan_rows(items, first, last, code_bytes, 1, query, top);
  else
    scan_rows(items, first, last, code_bytes, 0, query, top);
}

AVX2 void lfr_hamming_scan_avx2(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                                const uint8_t* query, lfr_top* top) {
  switch (code_bytes) {
    case 8: scan_width(items, first, last, 8, query, top); break;
    case 16: scan_width(items, first, last, 16, query, top); break;
    case 32: scan_width(items, first, last, 32, query, top); break;
    case 64: scan_width(items, first, last, 64, query, top); break;
    case 128: scan_width(items, first, last, 128, query, top); break;
    default: lfr_offer_rows(items, first, last, code_bytes, query, top);
  }
}

AVX2 static void lfr_hamming_distances_avx2(const uint8_t* items, uint32_t n_items, uint32_t code_bytes,
                                            const uint8_t* query, uint16_t* distances) {
  for (uint32_t i = 0; i < n_items; i++)
    distances[i] = (uint16_t)lfr_distance(items + (size_t)i * code_bytes, query, code_bytes);
}

/* ---- bit planes: the portable loops, with popcnt ------------------------------------------------------------- */

AVX2 static void lfr_plane_mismatches_avx2(const lfr_planes* block, const uint64_t* mask, int64_t factor,
                                           int64_t* mismatches) {
  const uint32_t f = block->code_bits, n_words = block->n_words;
  for (uint32_t j = 0; j < f; j++) {
    const uint64_t* a = block->planes + (size_t)j * LFR_BLOCK_WORDS;
    for (uint32_t k = j + 1; k < f; k++) {
      const uint64_t* b = block->planes + (size_t)k * LFR_BLOCK_WORDS;
      int64_t count = 0;
      for (uint32_t w = 0; w < n_words; w++)
        count += __builtin_popcountll((a[w] ^ b[w]) & (mask ? mask[w] : ~UINT64_C(0)));
      mismatches[(size_t)j * f + k] += factor * count;
    }
  }
}

AVX2 static void lfr_plane_counts_avx2(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* counts) {
  for (uint32_t k = 0; k < block->code_bits; k++) {
    const uint64_t* plane = block->planes + (size_t)k * LFR_BLOCK_WORDS;
    int64_t count = 0;
    for (uint32_t w = 0; w < block->n_words; w++)
      count += __builtin_popcountll(plane[w] & (mask ? mask[w] : ~UINT64_C(0)));
    counts[k] += factor * count;
  }
}

const lfr_variant lfr_avx2 = {lfr_hamming_scan_avx2, lfr_hamming_batch_avx2, lfr_hamming_distances_avx2,
                              lfr_plane_mismatches_avx2, lfr_plane_counts_avx2};

#endif
