/* WebAssembly with 128-bit SIMD. A module cannot ask the machine: it is built with SIMD or without. */
#include "lfr_impl.h"

#ifdef LFR_HAVE_WASM
#include <wasm_simd128.h>

#define MAX_REGISTERS (LFR_MAX_CODE_BITS / 128) /* registers that the widest row takes */

/* ---- rows as they lie in memory ---------------------------------------------------------------------------- */

/* Mismatches of each byte, 0 .. 8. */
LFR_INLINE v128_t mismatched_bytes(const uint8_t* at, v128_t query) {
  return wasm_i8x16_popcnt(wasm_v128_xor(wasm_v128_load(at), query));
}

/* Sums of neighbouring bytes, in 16 bits each. */
LFR_INLINE v128_t add_neighbours(v128_t bytes) { return wasm_u16x8_extadd_pairwise_u8x16(bytes); }

/* The same of two registers, in bytes again and in order: no sum is above 128, so none is cut off. */
LFR_INLINE v128_t join(v128_t low, v128_t high) {
  return wasm_u8x16_narrow_i16x8(add_neighbours(low), add_neighbours(high));
}

/* Distances of 8 rows of 8 bytes, in order. */
LFR_INLINE v128_t distances_of_8_bytes(const uint8_t* at, v128_t query) {
  const v128_t low = join(mismatched_bytes(at, query), mismatched_bytes(at + 16, query));
  const v128_t high = join(mismatched_bytes(at + 32, query), mismatched_bytes(at + 48, query));
  return add_neighbours(join(low, high));
}

/* Mismatches of a row of `wide` registers, byte by byte: at most 64, with 8 registers. */
LFR_INLINE v128_t mismatched_row(const uint8_t* row, const v128_t* query, uint32_t wide) {
  v128_t sum = mismatched_bytes(row, query[0]);
  for (uint32_t i = 1; i < wide; i++) sum = wasm_i8x16_add(sum, mismatched_bytes(row + 16 * i, query[i]));
  return sum;
}

/* Mismatches of two rows, 8 sums for each, in bytes: at most 128. */
LFR_INLINE v128_t join_rows(const uint8_t* at, const v128_t* query, uint32_t code_bytes) {
  const uint32_t wide = code_bytes / 16;
  return join(mismatched_row(at, query, wide), mismatched_row(at + code_bytes, query, wide));
}

/* Distances of 8 rows of 16 or 32 bytes, in order: halves of a distance fit a byte. */
LFR_INLINE v128_t distances_of_32_bytes(const uint8_t* at, const v128_t* query, uint32_t code_bytes) {
  const v128_t first = join_rows(at, query, code_bytes), second = join_rows(at + 2 * code_bytes, query, code_bytes);
  const v128_t third = join_rows(at + 4 * code_bytes, query, code_bytes);
  const v128_t fourth = join_rows(at + 6 * code_bytes, query, code_bytes);
  return add_neighbours(join(join(first, second), join(third, fourth)));
}

/* As `join`, of numbers of 16 bits. */
LFR_INLINE v128_t join_wide(v128_t low, v128_t high) {
  return wasm_i16x8_narrow_i32x4(wasm_i32x4_extadd_pairwise_i16x8(low), wasm_i32x4_extadd_pairwise_i16x8(high));
}

/* The same of rows of any whole number of registers. */
LFR_INLINE v128_t distances_of_wide(const uint8_t* at, const v128_t* query, uint32_t code_bytes) {
  const v128_t first = add_neighbours(join_rows(at, query, code_bytes));
  const v128_t second = add_neighbours(join_rows(at + 2 * code_bytes, query, code_bytes));
  const v128_t third = add_neighbours(join_rows(at + 4 * code_bytes, query, code_bytes));
  const v128_t fourth = add_neighbours(join_rows(at + 6 * code_bytes, query, code_bytes));
  return join_wide(join_wide(first, second), join_wide(third, fourth));
}

#define VECTOR_ROWS 8

LFR_INLINE v128_t distances_of_rows(const uint8_t* at, const v128_t* query, uint32_t code_bytes) {
  if (code_bytes == 8) return distances_of_8_bytes(at, query[0]);
  return code_bytes <= 32 ? distances_of_32_bytes(at, query, code_bytes) : distances_of_wide(at, query, code_bytes);
}

/* The query repeated over a register, or over as many registers as one row takes. */
LFR_INLINE void load_query(const uint8_t* query, uint32_t code_bytes, v128_t* out) {
  if (code_bytes == 8) out[0] = wasm_v128_load64_splat(query);
  for (uint32_t i = 0; i < code_bytes / 16; i++) out[i] = wasm_v128_load(query + 16 * i);
}

LFR_INLINE int is_vector_width(uint32_t code_bytes) { return code_bytes == 8 || code_bytes % 16 == 0; }

#define STEP_ROWS 32

/* The least distance of a step of rows, then one compare and branch; only a step with a near row is gone through.
 * `code_bytes` is a constant in most calls, so that each of those widths gets a loop of its own. */
LFR_INLINE void scan_rows(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                          const uint8_t* query, lfr_top* top) {
  v128_t wide_query[MAX_REGISTERS];
  load_query(query, code_bytes, wide_query);
  const uint8_t* at = items + (size_t)first * code_bytes;
  for (; last - first >= STEP_ROWS; first += STEP_ROWS, at += STEP_ROWS * code_bytes) {
    v128_t least = distances_of_rows(at, wide_query, code_bytes);
#pragma clang loop unroll(disable)
    for (uint32_t i = VECTOR_ROWS; i < STEP_ROWS; i += VECTOR_ROWS)
      least = wasm_i16x8_min(least, distances_of_rows(at + i * code_bytes, wide_query, code_bytes));
    const v128_t below = wasm_i16x8_lt(least, wasm_i16x8_splat((int16_t)top->threshold));
    if (__builtin_expect(wasm_v128_any_true(below), 0))
      lfr_offer_rows(items, first, first + STEP_ROWS, code_bytes, query, top);
  }
  lfr_offer_rows(items, first, last, code_bytes, query, top);
}

static void lfr_hamming_scan_wasm(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                                  const uint8_t* query, lfr_top* top) {
  switch (code_bytes) {
    case 8: scan_rows(items, first, last, 8, query, top); break;
    case 16: scan_rows(items, first, last, 16, query, top); break;
    case 32: scan_rows(items, first, last, 32, query, top); break;
    default:
      if (is_vector_width(code_bytes))
        scan_rows(items, first, last, code_bytes, query, top);
      else
        lfr_hamming_scan_portable(items, first, last, code_bytes, query, top);
  }
}

static void lfr_hamming_batch_wasm(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                                   const uint8_t* queries, uint32_t n_queries, lfr_top* tops) {
  lfr_hamming_batch_by(lfr_hamming_scan_wasm, items, first, last, code_bytes, queries, n_queries, tops);
}

static void lfr_hamming_distances_wasm(const uint8_t* items, uint32_t n_items, uint32_t code_bytes,
                                       const uint8_t* query, uint16_t* out) {
  uint32_t i = 0;
  if (is_vector_width(code_bytes)) {
    v128_t wide_query[MAX_REGISTERS];
    load_query(query, code_bytes, wide_query);
    for (; n_items - i >= VECTOR_ROWS; i += VECTOR_ROWS)
      wasm_v128_store(out + i, distances_of_rows(items + (size_t)i * code_bytes, wide_query, code_bytes));
  }
  lfr_hamming_distances_portable(items + (size_t)i * code_bytes, n_items - i, code_bytes, query, out + i);
}

/* ---- bit planes -------------------------------------------------------------------------------------------- */

/* Set bits of (a ^ b) & mask, two words at a time, byte by byte; a NULL mask: all. */
LFR_INLINE v128_t differing_bytes(const uint64_t* a, const uint64_t* b, const uint64_t* mask) {
  v128_t differ = wasm_v128_xor(wasm_v128_load(a), wasm_v128_load(b));
  if (mask) differ = wasm_v128_and(differ, wasm_v128_load(mask));
  return wasm_i8x16_popcnt(differ);
}

/* Rows of a whole block in which two planes differ, at most 256. */
LFR_INLINE int64_t count_differing(const uint64_t* a, const uint64_t* b, const uint64_t* mask) {
  const v128_t bytes =
      wasm_i8x16_add(differing_bytes(a, b, mask), differing_bytes(a + 2, b + 2, mask ? mask + 2 : NULL));
  const v128_t sums = wasm_i32x4_extadd_pairwise_i16x8(add_neighbours(bytes));
  const v128_t halves = wasm_i64x2_add(sums, wasm_i64x2_shr(sums, 32));
  return (uint32_t)(wasm_i64x2_extract_lane(halves, 0) + wasm_i64x2_extract_lane(halves, 1));
}

/* Whole blocks only: others are few, and short. */
static void lfr_plane_mismatches_wasm(const lfr_planes* block, const uint64_t* mask, int64_t factor,
                                      int64_t* mismatches) {
  if (block->n_words != LFR_BLOCK_WORDS) {
    lfr_plane_mismatches_portable(block, mask, factor, mismatches);
    return;
  }
  const uint32_t f = block->code_bits;
  for (uint32_t j = 0; j < f; j++) {
    const uint64_t* a = block->planes + (size_t)j * LFR_BLOCK_WORDS;
    for (uint32_t k = j + 1; k < f; k++)
      mismatches[(size_t)j * f + k] += factor * count_differing(a, block->planes + (size_t)k * LFR_BLOCK_WORDS, mask);
  }
}

/* Each plane is counted once: too little to gain. */
const lfr_variant lfr_wasm = {lfr_hamming_scan_wasm, lfr_hamming_batch_wasm, lfr_hamming_distances_wasm,
                              lfr_plane_mismatches_wasm, lfr_plane_counts_portable};

#endif
