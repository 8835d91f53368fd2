/* Private to csrc/: what the variants share. Not installed. */
#ifndef LFR_IMPL_H
#define LFR_IMPL_H

#if !defined(__GNUC__)
#error "lightfr needs GCC or Clang, since it uses their builtins and attributes: compile csrc/ with one of them"
#endif
#if !defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L
#error "lightfr is written in C11: compile csrc/ as C with -std=c11 or later"
#endif

#include <string.h>

#include "lfr.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "lightfr reads codes as little-endian words: big-endian machines are not supported"
#endif

#if defined(__x86_64__) || defined(__i386__)
#define LFR_HAVE_AVX2 1
#endif
/* 64-bit ARM always has NEON. 32-bit ARM runs the portable code. */
#if defined(__aarch64__)
#define LFR_HAVE_NEON 1
#endif
#if defined(__wasm_simd128__)
#define LFR_HAVE_WASM 1
#endif

/* always_inline, so that what is written once is compiled with the instruction set of the function it lands in. */
#define LFR_INLINE static inline __attribute__((always_inline))

#define LFR_BLOCK_ITEMS 256 /* items per bit-plane block: one bit each of an AVX2 register */
#define LFR_BLOCK_WORDS (LFR_BLOCK_ITEMS / 64)

/*
 * The best k so far: a max-heap by (cost, item_index), so that the root is the first to go. The cost of a row is
 * 2 distance + base, where base is the largest offset less that of the row's step: the higher the score, the lower the
 * cost. While the heap fills, `distance` of a hit holds its cost.
 */
typedef struct lfr_top {
  lfr_hit* hits;
  uint32_t capacity;
  uint32_t size;
  uint32_t threshold; /* only a distance below this can enter now; f + 1 until the heap is full */
  uint32_t base;      /* of the rows that are offered now */
  int from_memory;    /* whether the whole scan is longer than the caches */
  const uint8_t* exclude;
  const lfr_open* open; /* NULL: rows are items. Otherwise hits hold rows until all open ones were offered */
  uint32_t block;       /* of the last row whose item was looked up */
} lfr_top;

/* Offers one row. Rows of one block may come in any order; blocks come by ascending index. */
void lfr_top_offer(lfr_top* top, uint32_t row, uint32_t distance);

#define LFR_OPEN_WORDS (LFR_OPEN_BLOCK / 64)

/* Bytes of a bitmap of so many items. In a size_t of 32 bits, n_items + 7 would begin again at 0. */
LFR_INLINE size_t lfr_bitmap_bytes(uint32_t n_items) { return (size_t)n_items / 8 + (n_items % 8 != 0); }

/* LFR_OK, or LFR_ERR_NULL. */
int lfr_check_open(const lfr_open* open);

/* Items 64 w .. 64 w + 63 of a bitmap; those behind its last byte are clear. */
uint64_t lfr_bitmap_word(const uint8_t* bitmap, uint32_t n_items, uint32_t w);

/* How many items before this one are open; n_items may be asked for. */
uint32_t lfr_open_before(const lfr_open* open, uint32_t item_index);

/* The item of a row below n_open. Looks for it from block *near on, and leaves its block there. */
uint32_t lfr_open_item(const lfr_open* open, uint32_t row, uint32_t* near);

/* One query against the rows [first, last). */
typedef void (*lfr_scan_fn)(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                            const uint8_t* query, lfr_top* top);

#define LFR_BATCH_QUERIES 64 /* queries that share one pass, so that what each needs stays on the stack */

/* Up to LFR_BATCH_QUERIES queries against the rows [first, last), tops[j] for query j. */
typedef void (*lfr_batch_fn)(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                             const uint8_t* queries, uint32_t n_queries, lfr_top* tops);

typedef void (*lfr_distances_fn)(const uint8_t* items, uint32_t n_items, uint32_t code_bytes, const uint8_t* query,
                                 uint16_t* distances);

/* Rows of up to one block as bit planes: planes[k * LFR_BLOCK_WORDS + w] holds bit k of rows 64w .. 64w+63. */
typedef struct lfr_planes {
  uint32_t code_bits;
  uint32_t n_words; /* words in use per plane */
  const uint64_t* planes;
} lfr_planes;

/* At most LFR_BLOCK_ITEMS rows as planes, which are written to `planes`: code_bits * LFR_BLOCK_WORDS words. */
lfr_planes lfr_to_planes(const uint8_t* rows, uint32_t n_rows, uint32_t code_bits, uint64_t* planes);

/* Copies what stands above the diagonal of an f x f matrix to below it. */
void lfr_mirror(int64_t* matrix, uint32_t f);

/* mismatches[j * f + k] += factor * (rows of `mask` in which bits j and k differ), for j < k. A NULL mask: all. */
typedef void (*lfr_mismatches_fn)(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* mismatches);

/* counts[k] += factor * (rows of `mask` in which bit k is set). A NULL mask: all. */
typedef void (*lfr_counts_fn)(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* counts);

typedef struct lfr_variant {
  lfr_scan_fn scan;
  lfr_batch_fn batch;
  lfr_distances_fn distances;
  lfr_mismatches_fn mismatches;
  lfr_counts_fn counts;
} lfr_variant;

/* What each variant holds is named after the operation and the instruction set: lfr_hamming_scan_avx2. Declared here is
 * what one file of csrc/ calls of another. */
extern const lfr_variant lfr_portable;
void lfr_hamming_scan_portable(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                               const uint8_t* query, lfr_top* top);
void lfr_hamming_distances_portable(const uint8_t* items, uint32_t n_items, uint32_t code_bytes, const uint8_t* query,
                                    uint16_t* distances);
void lfr_plane_mismatches_portable(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* mismatches);
void lfr_plane_counts_portable(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* counts);
/* A batch as scans by `scan`, for every variant. */
void lfr_hamming_batch_by(lfr_scan_fn scan, const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                          const uint8_t* queries, uint32_t n_queries, lfr_top* tops);

#ifdef LFR_HAVE_AVX2
/* Every function of the variant carries the target itself: the rest is compiled at the ABI floor. */
#define AVX2 __attribute__((target("avx2,popcnt")))
#define AVX2_INLINE LFR_INLINE AVX2
extern const lfr_variant lfr_avx2;
void lfr_hamming_scan_avx2(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                           const uint8_t* query, lfr_top* top);
void lfr_hamming_batch_avx2(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                            const uint8_t* queries, uint32_t n_queries, lfr_top* tops);
#endif
#ifdef LFR_HAVE_NEON
extern const lfr_variant lfr_neon;
#endif
#ifdef LFR_HAVE_WASM
extern const lfr_variant lfr_wasm;
#endif

const lfr_variant* lfr_current(void);

LFR_INLINE int lfr_code_bits_valid(uint32_t code_bits) {
  return code_bits >= LFR_MIN_CODE_BITS && code_bits <= LFR_MAX_CODE_BITS && code_bits % 8 == 0;
}

LFR_INLINE int lfr_bit_at(const uint8_t* code, size_t k) { return (code[k >> 3] >> (k & 7)) & 1; }

LFR_INLINE int lfr_sign_at(const uint8_t* code, size_t k) { return lfr_bit_at(code, k) ? 1 : -1; }

LFR_INLINE void lfr_set_bit(uint8_t* code, size_t k, int set) {
  const uint8_t bit = (uint8_t)(1 << (k & 7));
  code[k >> 3] = set ? code[k >> 3] | bit : code[k >> 3] & (uint8_t)~bit;
}

LFR_INLINE uint64_t lfr_load64(const uint8_t* bytes) {
  uint64_t word;
  memcpy(&word, bytes, 8);
  return word;
}

/* The last 1 to 7 bytes of a row, zero-extended; by fixed sizes, which compile to plain loads. */
LFR_INLINE uint64_t lfr_load_tail(const uint8_t* bytes, uint32_t n) {
  uint64_t word = 0;
  uint32_t at = 0;
  if (n & 4) {
    uint32_t four;
    memcpy(&four, bytes, 4);
    word = four;
    at = 4;
  }
  if (n & 2) {
    uint16_t two;
    memcpy(&two, bytes + at, 2);
    word |= (uint64_t)two << (8 * at);
    at += 2;
  }
  if (n & 1) word |= (uint64_t)bytes[at] << (8 * at);
  return word;
}

/*
 * The two pieces of the search that every variant needs inline. There they count with the instructions of the function
 * they land in (popcnt, which x86 lacks at the ABI floor), and know the length of a row, a constant in most loops. As a
 * call, the second one made top-k over 1,682 items take 13 to 17 % longer (NEON under qemu).
 */

/* The Hamming distance of two rows. */
LFR_INLINE uint32_t lfr_distance(const uint8_t* a, const uint8_t* b, uint32_t code_bytes) {
  uint32_t i = 0, distance = 0;
  for (; i + 8 <= code_bytes; i += 8) distance += (uint32_t)__builtin_popcountll(lfr_load64(a + i) ^ lfr_load64(b + i));
  if (i < code_bytes)
    distance +=
        (uint32_t)__builtin_popcountll(lfr_load_tail(a + i, code_bytes - i) ^ lfr_load_tail(b + i, code_bytes - i));
  return distance;
}

/* What lfr_hamming_scan_portable does, for the rows that a variant does not take many at a time. */
LFR_INLINE void lfr_offer_rows(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                               const uint8_t* query, lfr_top* top) {
  const uint8_t* row = items + (size_t)first * code_bytes;
  for (uint32_t i = first; i < last; i++, row += code_bytes) {
    const uint32_t distance = lfr_distance(row, query, code_bytes);
    if (distance < top->threshold) lfr_top_offer(top, i, distance);
  }
}

#endif
