/* Exact nearest rows in Hamming space: argument checks, the heap of the best k, and the hand-over to a variant. */
#include "lfr_impl.h"

/* A hit as one number that orders by (cost, item_index): the cost lies in the upper half. */
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

/* The least distance of a row at the present base that can no longer enter. */
static void set_threshold(lfr_top* top) {
  if (top->size < top->capacity) return;
  const uint32_t worst = top->hits[0].distance;
  top->threshold = worst > top->base ? (worst - top->base + 1) / 2 : 0;
}

/*
 * Once the heap is full each accepted hit lowers the sum of its costs, or keeps it and lowers an index within one
 * block, so the number accepted cannot exceed about k times the number of costs in any order of items: there is no bad
 * input order.
 */
void lfr_top_offer(lfr_top* top, uint32_t item_index, uint32_t distance) {
  const lfr_hit hit = {item_index, 2 * distance + top->base};
  if (top->exclude && lfr_bit_at(top->exclude, item_index)) return;
  if (top->size < top->capacity) {
    sift_up(top->hits, top->size++, hit);
  } else if (is_worse(&top->hits[0], &hit)) {
    sift_down(top->hits, top->size, hit);
  }
  set_threshold(top);
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
  lfr_top top = {hits, k, 0, code_bits + 1, 0, 0, exclude};
  return top;
}

/* Scans from here on are longer than the caches. */
#define CACHE_BYTES ((size_t)16 << 20)

/* Without steps there is one, of offset 0. */
static const lfr_step no_offset = {0, 0};

/* Where a step ends: where the next one begins. */
static uint32_t end_of(const lfr_prior* prior, uint32_t step, uint32_t n_items) {
  return step + 1 < prior->n_steps && prior->steps[step + 1].first_item < n_items ? prior->steps[step + 1].first_item
                                                                                  : n_items;
}

static uint32_t base_of(const lfr_prior* prior, uint32_t step) {
  return (uint32_t)(prior->steps[0].offset - prior->steps[step].offset);
}

/* From here on rows of another step are offered. */
static void enter_step(lfr_top* top, uint32_t base) {
  top->base = base;
  set_threshold(top);
}

/* The last step that begins at or before an item. */
static uint32_t step_of(const lfr_prior* prior, uint32_t item_index) {
  uint32_t low = 0, high = prior->n_steps;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (prior->steps[middle].first_item <= item_index)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* Sorts the hits, best first, and makes costs distances again. */
static void finish_top(lfr_top* top, const lfr_prior* prior) {
  sort_hits(top->hits, top->size);
  for (uint32_t i = 0; i < top->size; i++) {
    lfr_hit* hit = &top->hits[i];
    hit->distance = (hit->distance - base_of(prior, step_of(prior, hit->item_index))) / 2;
  }
}

static int check_prior(const lfr_prior* prior) {
  if (!prior) return LFR_OK;
  if (!prior->steps) return LFR_ERR_NULL;
  if (prior->n_steps < 1 || prior->n_steps > LFR_MAX_STEPS) return LFR_ERR_COUNT;
  if (prior->steps[0].first_item != 0) return LFR_ERR_VALUE;
  for (uint32_t i = 0; i < prior->n_steps; i++) {
    const lfr_step* step = &prior->steps[i];
    if (step->offset > LFR_MAX_OFFSET || step->offset < -LFR_MAX_OFFSET) return LFR_ERR_VALUE;
    if (i && (step->first_item <= step[-1].first_item || step->offset > step[-1].offset)) return LFR_ERR_VALUE;
  }
  return LFR_OK;
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
  return lfr_topk_prior(items, n_items, code_bits, query, exclude, NULL, k, hits, n_hits);
}

int lfr_topk_prior(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query,
                   const uint8_t* exclude, const lfr_prior* prior, uint32_t k, lfr_hit* hits, uint32_t* n_hits) {
  int status = check_search(items, n_items, code_bits, query, hits);
  if (status == LFR_OK) status = check_prior(prior);
  if (status != LFR_OK) return status;
  if (!n_hits) return LFR_ERR_NULL;
  if (k < 1 || k > INT32_MAX) return LFR_ERR_COUNT;
  *n_hits = 0;
  if (n_items == 0) return LFR_OK; /* pointers may be NULL, to which nothing must be added, not even 0 */
  const lfr_prior flat = {&no_offset, 1};
  if (!prior) prior = &flat;
  lfr_top top = start_top(code_bits, exclude, k, hits);
  top.from_memory = (size_t)n_items * (code_bits / 8) > CACHE_BYTES;
  for (uint32_t i = 0; i < prior->n_steps && prior->steps[i].first_item < n_items; i++) {
    enter_step(&top, base_of(prior, i));
    if (top.threshold == 0) break; /* nor can rows of later steps enter: their offsets are no higher */
    lfr_current()->scan(items, prior->steps[i].first_item, end_of(prior, i, n_items), code_bits / 8, query, &top);
  }
  finish_top(&top, prior);
  *n_hits = top.size;
  return LFR_OK;
}

static void batch_some(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* queries,
                       uint32_t n_queries, const uint8_t* excludes, const lfr_prior* prior, uint32_t k, lfr_hit* hits,
                       uint32_t* n_hits) {
  const size_t exclude_bytes = ((size_t)n_items + 7) / 8;
  lfr_top tops[LFR_BATCH_QUERIES];
  for (uint32_t j = 0; j < n_queries; j++)
    tops[j] = start_top(code_bits, excludes ? excludes + j * exclude_bytes : NULL, k, hits + (size_t)j * k);
  for (uint32_t i = 0; i < prior->n_steps && prior->steps[i].first_item < n_items; i++) {
    for (uint32_t j = 0; j < n_queries; j++) enter_step(&tops[j], base_of(prior, i));
    lfr_current()->batch(items, prior->steps[i].first_item, end_of(prior, i, n_items), code_bits / 8, queries,
                         n_queries, tops);
  }
  for (uint32_t j = 0; j < n_queries; j++) {
    finish_top(&tops[j], prior);
    n_hits[j] = tops[j].size;
  }
}

int lfr_topk_batch(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* queries,
                   uint32_t n_queries, const uint8_t* excludes, uint32_t k, lfr_hit* hits, uint32_t* n_hits) {
  return lfr_topk_batch_prior(items, n_items, code_bits, queries, n_queries, excludes, NULL, k, hits, n_hits);
}

int lfr_topk_batch_prior(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* queries,
                         uint32_t n_queries, const uint8_t* excludes, const lfr_prior* prior, uint32_t k, lfr_hit* hits,
                         uint32_t* n_hits) {
  if (n_queries == 0) return LFR_OK;
  int status = check_search(items, n_items, code_bits, queries, hits);
  if (status == LFR_OK) status = check_prior(prior);
  if (status != LFR_OK) return status;
  if (!n_hits) return LFR_ERR_NULL;
  if (k < 1 || k > INT32_MAX) return LFR_ERR_COUNT;
  memset(n_hits, 0, n_queries * sizeof *n_hits);
  if (n_items == 0) return LFR_OK; /* as in lfr_topk_prior */
  const lfr_prior flat = {&no_offset, 1};
  if (!prior) prior = &flat;
  for (uint32_t done = 0; done < n_queries;) {
    uint32_t some = n_queries - done < LFR_BATCH_QUERIES ? n_queries - done : LFR_BATCH_QUERIES;
    batch_some(items, n_items, code_bits, queries + (size_t)done * (code_bits / 8), some,
               excludes ? excludes + (size_t)done * (((size_t)n_items + 7) / 8) : NULL, prior, k,
               hits + (size_t)done * k, n_hits + done);
    done += some;
  }
  return LFR_OK;
}
