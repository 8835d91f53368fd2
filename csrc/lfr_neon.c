/* NEON, for 64-bit ARM, where every machine has it: no target attribute and no probe are needed. */
#include "lfr_impl.h"

#ifdef LFR_HAVE_NEON
#include <arm_neon.h>

#define MAX_REGISTERS (LFR_MAX_CODE_BITS / 128) /* registers that the widest row takes */

/* ---- rows as they lie in memory ---------------------------------------------------------------------------- */

/* Mismatches of each byte, 0 .. 8. */
LFR_INLINE uint8x16_t mismatched_bytes(const uint8_t* at, uint8x16_t query) {
  return vcntq_u8(veorq_u8(vld1q_u8(at), query));
}

/* The same for a row of `wide` registers, byte by byte: at most 64, with 8 registers. */
LFR_INLINE uint8x16_t mismatched_row(const uint8_t* row, const uint8x16_t* query, uint32_t wide) {
  uint8x16_t sum = mismatched_bytes(row, query[0]);
  for (uint32_t i = 1; i < wide; i++) sum = vaddq_u8(sum, mismatched_bytes(row + 16 * i, query[i]));
  return sum;
}

/* Adds neighbouring bytes of 2 n registers into n, keeping their order. */
LFR_INLINE void add_neighbours(uint8x16_t* sums, uint32_t n) {
#pragma GCC unroll 8
  for (uint32_t i = 0; i < n; i++) sums[i] = vpaddq_u8(sums[2 * i], sums[2 * i + 1]);
}

/* Distances of 16 rows of 8 bytes, in order. A byte holds them: they are at most 64. */
LFR_INLINE uint8x16_t distances_of_8_bytes(const uint8_t* at, uint8x16_t query) {
  uint8x16_t sums[8];
#pragma GCC unroll 8
  for (uint32_t i = 0; i < 8; i++) sums[i] = mismatched_bytes(at + 16 * i, query);
  add_neighbours(sums, 4);
  add_neighbours(sums, 2);
  add_neighbours(sums, 1);
  return sums[0];
}

/* The same for rows of 16 bytes, whose distances are at most 128: first 8 bytes of counts for each row, then as above.
 */
LFR_INLINE uint8x16_t distances_of_16_bytes(const uint8_t* at, uint8x16_t query) {
  uint8x16_t sums[8];
#pragma GCC unroll 8
  for (uint32_t i = 0; i < 8; i++)
    sums[i] = vpaddq_u8(mismatched_bytes(at + 32 * i, query), mismatched_bytes(at + 32 * i + 16, query));
  add_neighbours(sums, 4);
  add_neighbours(sums, 2);
  add_neighbours(sums, 1);
  return sums[0];
}

LFR_INLINE uint8x16_t narrow_distances(const uint8_t* at, const uint8x16_t* query, uint32_t code_bytes) {
  return code_bytes == 8 ? distances_of_8_bytes(at, query[0]) : distances_of_16_bytes(at, query[0]);
}

/* Distances of 8 rows of 32 bytes or more, in order. Bytes hold at most 128 until they are widened. */
LFR_INLINE uint16x8_t wide_distances(const uint8_t* at, const uint8x16_t* query, uint32_t code_bytes) {
  const uint32_t wide = code_bytes / 16;
  uint16x8_t sums[4];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; i++)
    sums[i] = vpaddlq_u8(vpaddq_u8(mismatched_row(at + 2 * i * code_bytes, query, wide),
                                   mismatched_row(at + (2 * i + 1) * code_bytes, query, wide)));
  return vpaddq_u16(vpaddq_u16(sums[0], sums[1]), vpaddq_u16(sums[2], sums[3]));
}

/* The query repeated over a register, or over as many registers as one row takes. */
LFR_INLINE void load_query(const uint8_t* query, uint32_t code_bytes, uint8x16_t* out) {
  if (code_bytes == 8) out[0] = vcombine_u8(vld1_u8(query), vld1_u8(query));
  for (uint32_t i = 0; i < code_bytes / 16; i++) out[i] = vld1q_u8(query + 16 * i);
}

#define STEP_ROWS 32

LFR_INLINE uint32_t least_of_step(const uint8_t* at, const uint8x16_t* query, uint32_t code_bytes) {
  if (code_bytes <= 16)
    return vminvq_u8(
        vminq_u8(narrow_distances(at, query, code_bytes), narrow_distances(at + 16 * code_bytes, query, code_bytes)));
  uint16x8_t least = wide_distances(at, query, code_bytes);
  for (uint32_t i = 8; i < STEP_ROWS; i += 8)
    least = vminq_u16(least, wide_distances(at + i * code_bytes, query, code_bytes));
  return vminvq_u16(least);
}

/* The least distance of a step of rows, then one compare and branch; only a step with a near row is gone through.
 * `code_bytes` is a constant in most calls, so that each of those widths gets a loop of its own. */
LFR_INLINE void scan_rows(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                          const uint8_t* query, lfr_top* top) {
  uint8x16_t wide_query[MAX_REGISTERS];
  load_query(query, code_bytes, wide_query);
  const uint8_t* at = items + (size_t)first * code_bytes;
  for (; last - first >= STEP_ROWS; first += STEP_ROWS, at += STEP_ROWS * code_bytes)
    if (__builtin_expect(least_of_step(at, wide_query, code_bytes) < top->threshold, 0))
      lfr_offer_rows(items, first, first + STEP_ROWS, code_bytes, query, top);
  lfr_offer_rows(items, first, last, code_bytes, query, top);
}

static void lfr_hamming_scan_neon(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                                  const uint8_t* query, lfr_top* top) {
  switch (code_bytes) {
    case 8: scan_rows(items, first, last, 8, query, top); break;
    case 16: scan_rows(items, first, last, 16, query, top); break;
    case 32: scan_rows(items, first, last, 32, query, top); break;
    case 64: scan_rows(items, first, last, 64, query, top); break;
    default:
      if (code_bytes % 16 == 0)
        scan_rows(items, first, last, code_bytes, query, top);
      else
        lfr_hamming_scan_portable(items, first, last, code_bytes, query, top);
  }
}

static void lfr_hamming_batch_neon(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                                   const uint8_t* queries, uint32_t n_queries, lfr_top* tops) {
  lfr_hamming_batch_by(lfr_hamming_scan_neon, items, first, last, code_bytes, queries, n_queries, tops);
}

/* ---- distances --------------------------------------------------------------------------------------------- */

/* 16 distances from `at` on. */
LFR_INLINE void store_distances(const uint8_t* at, const uint8x16_t* query, uint32_t code_bytes, uint16_t* out) {
  if (code_bytes <= 16) {
    const uint8x16_t narrow = narrow_distances(at, query, code_bytes);
    vst1q_u16(out, vmovl_u8(vget_low_u8(narrow)));
    vst1q_u16(out + 8, vmovl_high_u8(narrow));
  } else {
    vst1q_u16(out, wide_distances(at, query, code_bytes));
    vst1q_u16(out + 8, wide_distances(at + 8 * code_bytes, query, code_bytes));
  }
}

LFR_INLINE void distances_of_rows(const uint8_t* items, uint32_t n_items, uint32_t code_bytes, const uint8_t* query,
                                  uint16_t* out) {
  uint8x16_t wide_query[MAX_REGISTERS];
  load_query(query, code_bytes, wide_query);
  uint32_t i = 0;
  for (; n_items - i >= 16; i += 16) store_distances(items + (size_t)i * code_bytes, wide_query, code_bytes, out + i);
  lfr_hamming_distances_portable(items + (size_t)i * code_bytes, n_items - i, code_bytes, query, out + i);
}

static void lfr_hamming_distances_neon(const uint8_t* items, uint32_t n_items, uint32_t code_bytes,
                                       const uint8_t* query, uint16_t* out) {
  if (code_bytes == 8)
    distances_of_rows(items, n_items, 8, query, out);
  else if (code_bytes == 16)
    distances_of_rows(items, n_items, 16, query, out);
  else if (code_bytes % 16 == 0)
    distances_of_rows(items, n_items, code_bytes, query, out);
  else
    lfr_hamming_distances_portable(items, n_items, code_bytes, query, out);
}

/* ---- bit planes -------------------------------------------------------------------------------------------- */

/* Set bits of (a ^ b) & mask, byte by byte; a NULL mask: all. */
LFR_INLINE uint8x16_t differing_bytes(const uint64_t* a, const uint64_t* b, const uint64_t* mask) {
  uint64x2_t differ = veorq_u64(vld1q_u64(a), vld1q_u64(b));
  if (mask) differ = vandq_u64(differ, vld1q_u64(mask));
  return vcntq_u8(vreinterpretq_u8_u64(differ));
}

/* Rows in which two planes differ, at most 256: two words at a time, then the odd one. */
LFR_INLINE int64_t count_differing(const uint64_t* a, const uint64_t* b, const uint64_t* mask, uint32_t n_words) {
  uint8x16_t sums = vdupq_n_u8(0);
  uint32_t w = 0;
  for (; w + 2 <= n_words; w += 2) sums = vaddq_u8(sums, differing_bytes(a + w, b + w, mask ? mask + w : NULL));
  int64_t count = vaddlvq_u8(sums);
  if (w < n_words) count += __builtin_popcountll((a[w] ^ b[w]) & (mask ? mask[w] : ~UINT64_C(0)));
  return count;
}

/* n_words is a constant wherever this is called. */
LFR_INLINE void mismatch_words(const lfr_planes* block, uint32_t n_words, const uint64_t* mask, int64_t factor,
                               int64_t* mismatches) {
  const uint32_t f = block->code_bits;
  for (uint32_t j = 0; j < f; j++) {
    const uint64_t* a = block->planes + (size_t)j * LFR_BLOCK_WORDS;
    for (uint32_t k = j + 1; k < f; k++) {
      const uint64_t* b = block->planes + (size_t)k * LFR_BLOCK_WORDS;
      mismatches[(size_t)j * f + k] += factor * count_differing(a, b, mask, n_words);
    }
  }
}

static void lfr_plane_mismatches_neon(const lfr_planes* block, const uint64_t* mask, int64_t factor,
                                      int64_t* mismatches) {
  switch (block->n_words) {
    case 2: mismatch_words(block, 2, mask, factor, mismatches); break;
    case 3: mismatch_words(block, 3, mask, factor, mismatches); break;
    case 4: mismatch_words(block, 4, mask, factor, mismatches); break;
    default: lfr_plane_mismatches_portable(block, mask, factor, mismatches);
  }
}

/* Each plane is counted once: too little to gain. */
const lfr_variant lfr_neon = {lfr_hamming_scan_neon, lfr_hamming_batch_neon, lfr_hamming_distances_neon,
                              lfr_plane_mismatches_neon, lfr_plane_counts_portable};

#endif
