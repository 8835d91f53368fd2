/* Exact nearest rows in Hamming space: argument checks, the heap of the best k, and the hand-over to a variant. */
#include "lfr_impl.h"

/* A hit as one number that orders by (distance, item_index): the distance lies in the upper half. */
static uint64_t key_of(const lfr_hit* hit) {
  uint64_t key;
  memcpy(&key, hit, sizeof key);
  return key;
}

static int is_worse(const lfr_hit* a, const lfr_hit* b) { return key_of(a) > key_of(b); }

static void sift_down(lfr_hit* hits, uint32_t size, lfr_hit hit) {
  uint32_t at = 0, child = 1;
  while (child + 1 < size) {
    child += (uint32_t)is_worse(&hits[child + 1], &hits[child]);
    if (!is_worse(&hits[child], &hit)) break;
    hits[at] = hits[child];
    at = child;
    child = 2 * at + 1;
  }
  if (child + 1 == size && is_worse(&hits[child], &hit)) {
    hits[at] = hits[child];
    at = child;
  }
  hits[at] = hit;
}

static void sift_up(lfr_hit* hits, uint32_t at, lfr_hit hit) {
  while (at > 0 && is_worse(&hit, &hits[(at - 1) / 2])) {
    hits[at] = hits[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  hits[at] = hit;
}

/*
 * Once the heap is full each accepted hit lowers the sum of its distances, or keeps it and lowers an index within one
 * block, so the number accepted cannot exceed about k * (f + 1) in any order of items: there is no bad input order.
 */
void lfr_top_offer(lfr_top* top, uint32_t item_index, uint32_t distance) {
  const lfr_hit hit = {item_index, distance};
  if (top->exclude && lfr_bit_at(top->exclude, item_index)) return;
  if (top->size < top->capacity) {
    sift_up(top->hits, top->size++, hit);
  } else if (is_worse(&top->hits[0], &hit)) {
    sift_down(top->hits, top->size, hit);
  }
  if (top->size == top->capacity) top->threshold = top->hits[0].distance;
}

static void sort_hits(lfr_hit* hits, uint32_t size) {
  while (size > 1) {
    lfr_hit worst = hits[0];
    size--;
    sift_down(hits, size, hits[size]);
    hits[size] = worst;
  }
}

static lfr_top start_top(uint32_t code_bits, const uint8_t* exclude, uint32_t k, lfr_hit* hits) {
  lfr_top top = {hits, k, 0, code_bits + 1, exclude};
  return top;
}

static int check_search(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const void* query,
                        const void* output) {
  if (!lfr_code_bits_valid(code_bits)) return LFR_ERR_CODE_BITS;
  if ((!items && n_items) || !query || (!output && n_items)) return LFR_ERR_NULL;
  return LFR_OK;
}

int lfr_distances(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query,
                  uint16_t* distances) {
  int status = check_search(items, n_items, code_bits, query, distances);
  if (status == LFR_OK) lfr_current()->distances(items, n_items, code_bits / 8, query, distances);
  return status;
}

int lfr_topk(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query, const uint8_t* exclude,
             uint32_t k, lfr_hit* hits, uint32_t* n_hits) {
  int status = check_search(items, n_items, code_bits, query, hits);
  if (status != LFR_OK) return status;
  if (!n_hits) return LFR_ERR_NULL;
  if (k < 1 || k > INT32_MAX) return LFR_ERR_COUNT;
  *n_hits = 0;
  if (n_items == 0) return LFR_OK; /* pointers may be NULL, to which nothing must be added, not even 0 */
  lfr_top top = start_top(code_bits, exclude, k, hits);
  lfr_current()->scan(items, 0, n_items, code_bits / 8, query, &top);
  sort_hits(hits, top.size);
  *n_hits = top.size;
  return LFR_OK;
}

static void batch_some(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* queries,
                       uint32_t n_queries, const uint8_t* excludes, uint32_t k, lfr_hit* hits, uint32_t* n_hits) {
  const size_t exclude_bytes = ((size_t)n_items + 7) / 8;
  lfr_top tops[LFR_BATCH_QUERIES];
  for (uint32_t j = 0; j < n_queries; j++)
    tops[j] = start_top(code_bits, excludes ? excludes + j * exclude_bytes : NULL, k, hits + (size_t)j * k);
  lfr_current()->batch(items, n_items, code_bits / 8, queries, n_queries, tops);
  for (uint32_t j = 0; j < n_queries; j++) {
    sort_hits(tops[j].hits, tops[j].size);
    n_hits[j] = tops[j].size;
  }
}

int lfr_topk_batch(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* queries,
                   uint32_t n_queries, const uint8_t* excludes, uint32_t k, lfr_hit* hits, uint32_t* n_hits) {
  if (n_queries == 0) return LFR_OK;
  int status = check_search(items, n_items, code_bits, queries, hits);
  if (status != LFR_OK) return status;
  if (!n_hits) return LFR_ERR_NULL;
  if (k < 1 || k > INT32_MAX) return LFR_ERR_COUNT;
  memset(n_hits, 0, n_queries * sizeof *n_hits);
  if (n_items == 0) return LFR_OK; /* as in lfr_topk */
  for (uint32_t done = 0; done < n_queries;) {
    uint32_t some = n_queries - done < LFR_BATCH_QUERIES ? n_queries - done : LFR_BATCH_QUERIES;
    batch_some(items, n_items, code_bits, queries + (size_t)done * (code_bits / 8), some,
               excludes ? excludes + (size_t)done * (((size_t)n_items + 7) / 8) : NULL, k, hits + (size_t)done * k,
               n_hits + done);
    done += some;
  }
  return LFR_OK;
}
