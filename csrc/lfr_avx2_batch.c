/* AVX2: many queries over one catalogue, by blocks of 256 items as bit planes. */
#include "lfr_impl.h"

#ifdef LFR_HAVE_AVX2
#include <immintrin.h>

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
    for (uint32_t k = first; k < first + 3 && k < code_bits; k++) bits |= (uint32_t)lfr_bit_at(query, k) << (k - first);
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
      lfr_hamming_scan_avx2(items, first, first + LFR_BLOCK_ITEMS, code_bytes, queries + j * code_bytes, &tops[j]);
    } else if (threshold > 0) {
      const lookup at = {tables, groups[j], (code_bits + 2) / 3};
      const __m256i far = not_nearer(at, code_bits, threshold);
      if (_mm256_movemask_epi8(_mm256_cmpeq_epi8(far, _mm256_set1_epi8(-1))) != -1)
        offer_near(far, items, first, code_bytes, queries + j * code_bytes, &tops[j]);
    }
  }
}

AVX2_INLINE void batch_sliced(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bits,
                              const uint8_t* queries, uint32_t n_queries, lfr_top* tops) {
  group_offsets groups[LFR_BATCH_QUERIES][MAX_GROUPS];
  for (uint32_t j = 0; j < n_queries; j++) query_offsets(queries + j * (code_bits / 8), code_bits, groups[j]);
  for (; last - first >= LFR_BLOCK_ITEMS; first += LFR_BLOCK_ITEMS)
    batch_block(items, first, code_bits, queries, (const group_offsets(*)[MAX_GROUPS])groups, n_queries, tops);
  for (uint32_t j = 0; j < n_queries; j++)
    lfr_hamming_scan_avx2(items, first, last, code_bits / 8, queries + j * (code_bits / 8), &tops[j]);
}

/* Below this many queries, turning a block into planes costs more than it saves. */
#define MIN_SLICED_QUERIES 24

AVX2 void lfr_hamming_batch_avx2(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                                 const uint8_t* queries, uint32_t n_queries, lfr_top* tops) {
  if (code_bytes == 8 && n_queries >= MIN_SLICED_QUERIES)
    batch_sliced(items, first, last, 64, queries, n_queries, tops);
  else if (code_bytes == 16 && n_queries >= MIN_SLICED_QUERIES)
    batch_sliced(items, first, last, 128, queries, n_queries, tops);
  else
    lfr_hamming_batch_by(lfr_hamming_scan_avx2, items, first, last, code_bytes, queries, n_queries, tops);
}

#endif
