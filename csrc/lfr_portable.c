/* The meaning of every operation of a variant. The other variants must equal this one bit for bit. */
#include "lfr_impl.h"

void lfr_hamming_scan_portable(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                               const uint8_t* query, lfr_top* top) {
  const uint8_t* row = items + (size_t)first * code_bytes;
  for (uint32_t i = first; i < last; i++, row += code_bytes) {
    const uint32_t distance = lfr_distance(row, query, code_bytes);
    if (distance < top->threshold) lfr_top_offer(top, i, distance);
  }
}

/* Keeps a stretch of items in the first-level cache while every query passes over it. */
void lfr_hamming_batch_by(lfr_scan_fn scan, const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                          const uint8_t* queries, uint32_t n_queries, lfr_top* tops) {
  const uint32_t stretch = 16384 / code_bytes;
  while (first < last) {
    const uint32_t next = last - first > stretch ? first + stretch : last;
    for (uint32_t j = 0; j < n_queries; j++)
      scan(items, first, next, code_bytes, queries + (size_t)j * code_bytes, &tops[j]);
    first = next;
  }
}

static void lfr_hamming_batch_portable(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes,
                                       const uint8_t* queries, uint32_t n_queries, lfr_top* tops) {
  lfr_hamming_batch_by(lfr_hamming_scan_portable, items, first, last, code_bytes, queries, n_queries, tops);
}

void lfr_hamming_distances_portable(const uint8_t* items, uint32_t n_items, uint32_t code_bytes, const uint8_t* query,
                                    uint16_t* distances) {
  for (uint32_t i = 0; i < n_items; i++)
    distances[i] = (uint16_t)lfr_distance(items + (size_t)i * code_bytes, query, code_bytes);
}

void lfr_plane_mismatches_portable(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* mismatches) {
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

void lfr_plane_counts_portable(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* counts) {
  for (uint32_t k = 0; k < block->code_bits; k++) {
    const uint64_t* plane = block->planes + (size_t)k * LFR_BLOCK_WORDS;
    int64_t count = 0;
    for (uint32_t w = 0; w < block->n_words; w++)
      count += __builtin_popcountll(plane[w] & (mask ? mask[w] : ~UINT64_C(0)));
    counts[k] += factor * count;
  }
}

const lfr_variant lfr_portable = {lfr_hamming_scan_portable, lfr_hamming_batch_portable, lfr_hamming_distances_portable,
                                  lfr_plane_mismatches_portable, lfr_plane_counts_portable};
