/* AVX2 + popcnt. Every function carries the target attribute itself: the rest is compiled at the ABI floor. */
#include "lfr_impl.h"

#ifdef LFR_HAVE_AVX2
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,popcnt")))
#define AVX2_INLINE LFR_INLINE AVX2

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
      lfr_scan_body(items, first, first + rows, code_bytes, query, top);
  }
  lfr_scan_body(items, first, first + SCALAR_ROWS, code_bytes, query, top);
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

/* Beyond this, rows come from memory and are asked for ahead; below it that only costs time (measured on Zen 3:
 * 6 % in cache; 2048 bytes ahead is the best of 512 .. 8192 for 80 MB). */
#define CACHE_BYTES ((size_t)16 << 20)
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
  lfr_scan_body(items, first, last, code_bytes, query, top);
}

AVX2_INLINE void scan_width(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                            const uint8_t* query, lfr_top* top) {
  if (code_bytes > 16 || (size_t)(last - first) * code_bytes > CACHE_BYTES)
    scan_rows(items, first, last, code_bytes, 1, query, top);
  else
    scan_rows(items, first, last, code_bytes, 0, query, top);
}

AVX2 static void scan(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes, const uint8_t* query,
                      lfr_top* top) {
  switch (code_bytes) {
    case 8: scan_width(items, first, last, 8, query, top); break;
    case 16: scan_width(items, first, last, 16, query, top); break;
    case 32: scan_width(items, first, last, 32, query, top); break;
    case 64: scan_width(items, first, last, 64, query, top); break;
    case 128: scan_width(items, first, last, 128, query, top); break;
    default: lfr_scan_body(items, first, last, code_bytes, query, top);
  }
}

/* ---- many queries: blocks of 256 items as bit planes ------------------------------------------------------- */

#define MAX_SLICED_BITS 128 /* beyond it the tables no longer fit the first-level cache */
#define MAX_GROUPS ((MAX_SLICED_BITS + 2) / 3)

/* For a group of three planes and each of the 8 values of the query's three bits: how many of the three differ,
 * 0 .. 3, for 256 items at once, as a high and a low bit; the low one depends on the parity of the three query bits
 * only. Shared by all queries. */
typedef struct group_table {
  __m256i high[8];
  __m256i low[2];
} group_table;

/* Where a query finds its entries, in bytes from the start of a table. */
typedef struct group_offsets {
  uint16_t high;
  uint16_t low;
} group_offsets;

/* Swaps the upper `width` bits of each 2*width field of *low with the lower ones of *high. */
AVX2_INLINE void swap_fields(__m256i* low, __m256i* high, int width, uint64_t lower_fields) {
  const __m256i mask = _mm256_set1_epi64x((long long)lower_fields);
  const __m256i swap = _mm256_and_si256(_mm256_xor_si256(_mm256_srli_epi64(*low, width), *high), mask);
  *low = _mm256_xor_si256(*low, _mm256_slli_epi64(swap, width));
  *high = _mm256_xor_si256(*high, swap);
}

/* Three of the six steps of a 64 x 64 bit transposition, on 8 rows that lie `unit` apart and stay in registers. */
AVX2_INLINE void transpose_eight(__m256i* rows, int unit, const uint64_t* lower_fields) {
  __m256i r[8];
  for (int i = 0; i < 8; i++) r[i] = rows[i * unit];
#pragma GCC unroll 3
  for (int step = 0; step < 3; step++) {
    const int apart = 4 >> step;
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
      if (!(i & apart)) swap_fields(&r[i], &r[i + apart], unit * apart, lower_fields[step]);
  }
  for (int i = 0; i < 8; i++) rows[i * unit] = r[i];
}

/* Transposes four 64 x 64 bit matrices, one per 64-bit lane: bit i of lane l is item 4 i + l. */
AVX2_INLINE void transpose_lanes(__m256i* rows) {
  const uint64_t wide[3] = {UINT64_C(0x00000000FFFFFFFF), UINT64_C(0x0000FFFF0000FFFF), UINT64_C(0x00FF00FF00FF00FF)};
  const uint64_t narrow[3] = {UINT64_C(0x0F0F0F0F0F0F0F0F), UINT64_C(0x3333333333333333), UINT64_C(0x5555555555555555)};
  for (int i = 0; i < 8; i++) transpose_eight(rows + i, 8, wide);
  for (int i = 0; i < 8; i++) transpose_eight(rows + 8 * i, 1, narrow);
}

/* Planes of 256 rows of 8 bytes, or of 16 bytes by taking the two words of each row apart. */
AVX2_INLINE void load_planes(const uint8_t* at, uint32_t code_bytes, __m256i* planes) {
  const __m256i* rows = (const __m256i*)at;
  for (int i = 0; code_bytes == 8 && i < 64; i++) planes[i] = _mm256_loadu_si256(rows + i);
  for (int i = 0; code_bytes == 16 && i < 64; i++) {
    const __m256i ab = _mm256_loadu_si256(rows + 2 * i), cd = _mm256_loadu_si256(rows + 2 * i + 1);
    /* unpack gives rows 0 2 1 3; the permutation puts them in order. */
    planes[i] = _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(ab, cd), 0xd8);
    planes[64 + i] = _mm256_permute4x64_epi64(_mm256_unpackhi_epi64(ab, cd), 0xd8);
  }
  for (uint32_t word = 0; word < code_bytes / 8; word++) transpose_lanes(planes + 64 * word);
}

/* Turning one query bit over changes the majority where the other two planes differ. */
AVX2_INLINE void fill_table(__m256i a, __m256i b, __m256i c, group_table* table) {
  const __m256i ones = _mm256_set1_epi8(-1), ab = _mm256_xor_si256(a, b);
  const __m256i majority = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(ab, c));
  table->high[0] = majority;
  table->high[1] = _mm256_xor_si256(majority, _mm256_xor_si256(b, c));
  table->high[2] = _mm256_xor_si256(majority, _mm256_xor_si256(a, c));
  table->high[4] = _mm256_xor_si256(majority, ab);
  table->high[7] = _mm256_xor_si256(majority, ones);
  table->high[6] = _mm256_xor_si256(table->high[1], ones);
  table->high[5] = _mm256_xor_si256(table->high[2], ones);
  table->high[3] = _mm256_xor_si256(table->high[4], ones);
  table->low[0] = _mm256_xor_si256(ab, c);
  table->low[1] = _mm256_xor_si256(table->low[0], ones);
}

/* Planes beyond code_bits are zero, and so are a query's bits there: they never differ. */
AVX2_INLINE void fill_tables(const __m256i* planes, uint32_t code_bits, group_table* tables) {
  const __m256i zero = _mm256_setzero_si256();
  for (uint32_t k = 0; k < code_bits; k += 3)
    fill_table(planes[k], k + 1 < code_bits ? planes[k + 1] : zero, k + 2 < code_bits ? planes[k + 2] : zero,
               &tables[k / 3]);
}

static void query_offsets(const uint8_t* query, uint32_t code_bits, group_offsets* groups) {
  for (uint32_t first = 0; first < code_bits; first += 3) {
    uint32_t bits = 0;
    for (uint32_t k = first; k < first + 3 && k < code_bits; k++)
      bits |= (uint32_t)((query[k >> 3] >> (k & 7)) & 1) << (k - first);
    groups[first / 3].high = (uint16_t)(offsetof(group_table, high) + bits * sizeof(__m256i));
    groups[first / 3].low = (uint16_t)(offsetof(group_table, low) + (uint32_t)__builtin_parity(bits) * sizeof(__m256i));
  }
}

/* A full adder for 256 items: *sum <- *sum + x + y, returns the carry. */
AVX2_INLINE __m256i add_bits(__m256i* sum, __m256i x, __m256i y) {
  const __m256i xy = _mm256_xor_si256(x, y);
  const __m256i carry = _mm256_or_si256(_mm256_and_si256(x, y), _mm256_and_si256(xy, *sum));
  *sum = _mm256_xor_si256(xy, *sum);
  return carry;
}

/* Adds n bits of one weight, in pairs, to the counter's bit of that weight; the carries replace them. */
AVX2_INLINE uint32_t add_all(__m256i* sum, __m256i* bits, uint32_t n) {
#pragma GCC unroll 16
  for (uint32_t i = 0; i < n; i += 2)
    bits[i / 2] = add_bits(sum, bits[i], i + 1 < n ? bits[i + 1] : _mm256_setzero_si256());
  return (n + 1) / 2;
}

/* What one query looks up: constant n_groups, so that groups beyond it fold away. */
typedef struct lookup {
  const group_table* tables;
  const group_offsets* groups;
  uint32_t n_groups;
} lookup;

AVX2_INLINE __m256i entry(const group_table* table, uint16_t offset) {
  return _mm256_load_si256((const __m256i*)((const char*)table + offset));
}

/* Four groups from g on, added to the counter; three carries of weight 4 come out. */
AVX2_INLINE void add_4_groups(lookup at, uint32_t g, __m256i* count, __m256i* fours) {
  __m256i low[4], high[6];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; i++) {
    const int real = g + i < at.n_groups;
    low[i] = real ? entry(&at.tables[g + i], at.groups[g + i].low) : _mm256_setzero_si256();
    high[i] = real ? entry(&at.tables[g + i], at.groups[g + i].high) : _mm256_setzero_si256();
  }
  add_all(&count[0], low, 4);
  high[4] = low[0];
  high[5] = low[1];
  add_all(&count[1], high, 6);
  for (int i = 0; i < 3; i++) fours[i] = high[i];
}

/* Sixteen groups; three carries of weight 16 come out. Depth first, so that few values wait at a time. */
AVX2_INLINE void add_16_groups(lookup at, uint32_t g, __m256i* count, __m256i* sixteens) {
  __m256i fours[6], eights[6];
#pragma GCC unroll 2
  for (uint32_t half = 0; half < 2; half++) {
    add_4_groups(at, g + 8 * half, count, fours);
    add_4_groups(at, g + 8 * half + 4, count, fours + 3);
    add_all(&count[2], fours, 6);
    for (int i = 0; i < 3; i++) eights[3 * half + i] = fours[i];
  }
  add_all(&count[3], eights, 6);
  for (int i = 0; i < 3; i++) sixteens[i] = eights[i];
}

/*
 * Items of the block at `threshold` (1 .. f) or beyond it, one bit each. The counter starts at f - threshold, so that
 * a carry out of its top bit, of weight f, is the verdict for 256 items at once.
 */
AVX2_INLINE __m256i not_nearer(lookup at, uint32_t code_bits, uint32_t threshold) {
  const uint32_t top = code_bits == 64 ? 5 : 6; /* the counter's top bit: 2^(top+1) = f */
  __m256i count[7], carries[3 * (MAX_GROUPS + 15) / 16];
  const uint32_t start = code_bits - threshold;
#pragma GCC unroll 8
  for (uint32_t bit = 0; bit <= top; bit++) count[bit] = _mm256_set1_epi32(-(int)((start >> bit) & 1));
  uint32_t n = 0;
#pragma GCC unroll 4
  for (uint32_t g = 0; g < at.n_groups; g += 16, n += 3) add_16_groups(at, g, count, carries + n);
#pragma GCC unroll 4
  for (uint32_t bit = 4; bit <= top; bit++) n = add_all(&count[bit], carries, n);
  __m256i far = carries[0];
  for (uint32_t i = 1; i < n; i++) far = _mm256_or_si256(far, carries[i]);
  return far;
}

/* Offers the rows whose bit in `far` is clear. */
AVX2_INLINE void offer_near(__m256i far, const uint8_t* items, uint32_t first, uint32_t code_bytes,
                            const uint8_t* query, lfr_top* top) {
  uint64_t lanes[4];
  _mm256_storeu_si256((__m256i*)lanes, far);
  for (uint32_t lane = 0; lane < 4; lane++) {
    for (uint64_t near = ~lanes[lane]; near; near &= near - 1) {
      const uint32_t item = first + 4 * (uint32_t)__builtin_ctzll(near) + lane;
      const uint32_t distance = lfr_distance(items + (size_t)item * code_bytes, query, code_bytes);
      if (distance <= top->threshold) lfr_top_offer(top, item, distance);
    }
  }
}

/* One block of 256 items for every query. A heap that is not full yet takes any row, so it scans them. */
AVX2_INLINE void batch_block(const uint8_t* items, uint32_t first, uint32_t code_bits, const uint8_t* queries,
                             const group_offsets (*groups)[MAX_GROUPS], uint32_t n_queries, lfr_top* tops) {
  const uint32_t code_bytes = code_bits / 8;
  __m256i planes[MAX_SLICED_BITS];
  group_table tables[MAX_GROUPS];
  load_planes(items + (size_t)first * code_bytes, code_bytes, planes);
  fill_tables(planes, code_bits, tables);
  for (uint32_t j = 0; j < n_queries; j++) {
    const uint32_t threshold = tops[j].threshold;
    if (threshold > code_bits) {
      scan(items, first, first + LFR_BLOCK_ITEMS, code_bytes, queries + j * code_bytes, &tops[j]);
    } else if (threshold > 0) {
      const lookup at = {tables, groups[j], (code_bits + 2) / 3};
      const __m256i far = not_nearer(at, code_bits, threshold);
      if (_mm256_movemask_epi8(_mm256_cmpeq_epi8(far, _mm256_set1_epi8(-1))) != -1)
        offer_near(far, items, first, code_bytes, queries + j * code_bytes, &tops[j]);
    }
  }
}

AVX2_INLINE void batch_sliced(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* queries,
                              uint32_t n_queries, lfr_top* tops) {
  group_offsets groups[LFR_BATCH_QUERIES][MAX_GROUPS];
  for (uint32_t j = 0; j < n_queries; j++) query_offsets(queries + j * (code_bits / 8), code_bits, groups[j]);
  uint32_t first = 0;
  for (; n_items - first >= LFR_BLOCK_ITEMS; first += LFR_BLOCK_ITEMS)
    batch_block(items, first, code_bits, queries, (const group_offsets(*)[MAX_GROUPS])groups, n_queries, tops);
  for (uint32_t j = 0; j < n_queries; j++)
    scan(items, first, n_items, code_bits / 8, queries + j * (code_bits / 8), &tops[j]);
}

/* Below this many queries, turning a block into planes costs more than it saves. */
#define MIN_SLICED_QUERIES 24

AVX2 static void batch(const uint8_t* items, uint32_t n_items, uint32_t code_bytes, const uint8_t* queries,
                       uint32_t n_queries, lfr_top* tops) {
  if (code_bytes == 8 && n_queries >= MIN_SLICED_QUERIES)
    batch_sliced(items, n_items, 64, queries, n_queries, tops);
  else if (code_bytes == 16 && n_queries >= MIN_SLICED_QUERIES)
    batch_sliced(items, n_items, 128, queries, n_queries, tops);
  else
    lfr_batch_body(scan, items, n_items, code_bytes, queries, n_queries, tops);
}

AVX2 static void distances(const uint8_t* items, uint32_t n_items, uint32_t code_bytes, const uint8_t* query,
                           uint16_t* out) {
  lfr_distances_body(items, n_items, code_bytes, query, out);
}

AVX2 static void mismatch(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* mismatches) {
  lfr_mismatch_body(block, mask, factor, mismatches);
}

AVX2 static void count(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* counts) {
  lfr_count_body(block, mask, factor, counts);
}

const lfr_variant lfr_avx2 = {scan, batch, distances, mismatch, count};

#endif
