/* The meaning of every operation. The other variants must equal this one bit for bit. */
#include "lfr_impl.h"

static void scan(const uint8_t* items, uint32_t first, uint32_t last, uint32_t code_bytes, const uint8_t* query,
                 lfr_top* top) {
  lfr_scan_body(items, first, last, code_bytes, query, top);
}

static void batch(const uint8_t* items, uint32_t n_items, uint32_t code_bytes, const uint8_t* queries,
                  uint32_t n_queries, lfr_top* tops) {
  lfr_batch_body(scan, items, n_items, code_bytes, queries, n_queries, tops);
}

static void distances(const uint8_t* items, uint32_t n_items, uint32_t code_bytes, const uint8_t* query,
                      uint16_t* out) {
  lfr_distances_body(items, n_items, code_bytes, query, out);
}

static void mismatch(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* mismatches) {
  lfr_mismatch_body(block, mask, factor, mismatches);
}

static void count(const lfr_planes* block, const uint64_t* mask, int64_t factor, int64_t* counts) {
  lfr_count_body(block, mask, factor, counts);
}

const lfr_variant lfr_portable = {scan, batch, distances, mismatch, count};
