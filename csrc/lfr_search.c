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

static int is_excluded(lfr_top* top, uint32_t row) {
  if (!top->exclude) return 0;
  return lfr_bit_at(top->exclude, top->open ? lfr_open_item(top->open, row, &top->block) : row);
}

/* Says whether the hit entered. */
static int enter(lfr_top* top, lfr_hit hit) {
  if (top->size < top->capacity) {
    sift_up(top->hits, top->size++, hit);
  } else {
    if (!is_worse(&top->hits[0], &hit)) return 0;
    sift_down(top->hits, top->size, hit);
  }
  return 1;
}

/*
 * Once the heap is full each accepted hit lowers the sum of its costs, or keeps it and lowers an index within one
 * block, so the number accepted cannot exceed about k times the number of costs in any order of items: there is no bad
 * input order.
 */
void lfr_top_offer(lfr_top* top, uint32_t row, uint32_t distance) {
  const lfr_hit hit = {row, 2 * distance + top->base};
  if (is_excluded(top, row)) return;
  enter(top, hit);
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

/* Scans from here on are longer than the caches. */
#define CACHE_BYTES ((size_t)16 << 20)

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

/* What a search goes through: the rows of open items, step by step, and behind them the row of the closed ones. */
typedef struct catalogue {
  const uint8_t* items;
  uint32_t n_rows, n_items, code_bits; /* n_rows: without the shared one */
  const lfr_prior* prior;
  const lfr_open* open; /* NULL: rows are items, and none is shared */
} catalogue;

static catalogue start_catalogue(const uint8_t* items, uint32_t n_rows, uint32_t code_bits, const lfr_prior* prior,
                                 const lfr_open* open) {
  static const lfr_step no_offset = {0, 0};
  static const lfr_prior flat = {&no_offset, 1};
  const catalogue at = {items,     open ? open->n_open : n_rows, open ? open->n_items : n_rows,
                        code_bits, prior ? prior : &flat,        open};
  return at;
}

/* The first item of a step, or the number of items behind the last step that has any. */
static uint32_t first_item(const catalogue* at, uint32_t step) {
  const uint32_t first = step < at->prior->n_steps ? at->prior->steps[step].first_item : at->n_items;
  return first < at->n_items ? first : at->n_items;
}

/* The same as a row. */
static uint32_t first_row(const catalogue* at, uint32_t step) {
  const uint32_t item = first_item(at, step);
  return at->open ? lfr_open_before(at->open, item) : item;
}

static lfr_top start_top(const catalogue* at, const uint8_t* exclude, uint32_t k, lfr_hit* hits) {
  const int from_memory = (size_t)at->n_rows * (at->code_bits / 8) > CACHE_BYTES;
  lfr_top top = {hits, k, 0, at->code_bits + 1, 0, from_memory, exclude, at->open, 0};
  return top;
}

/* Offers the closed items of a step, which all have this cost, by ascending index; says whether all of them entered. */
static int offer_closed_of(const catalogue* at, uint32_t step, uint32_t cost, lfr_top* top) {
  const uint32_t first = first_item(at, step), last = first_item(at, step + 1) - 1;
  for (uint32_t w = first / 64; w <= last / 64; w++) {
    uint64_t closed = ~lfr_bitmap_word(at->open->bitmap, at->n_items, w);
    if (top->exclude) closed &= ~lfr_bitmap_word(top->exclude, at->n_items, w);
    if (w == first / 64) closed &= ~UINT64_C(0) << (first % 64);
    if (w == last / 64) closed &= ~UINT64_C(0) >> (63 - last % 64);
    for (; closed; closed &= closed - 1) {
      const lfr_hit hit = {64 * w + (uint32_t)__builtin_ctzll(closed), cost};
      if (!enter(top, hit)) return 0;
    }
  }
  return 1;
}

/* The closed items ascend by (cost, item_index), so that none enters behind one that did not. */
static void offer_closed(const catalogue* at, const uint8_t* query, lfr_top* top) {
  const uint32_t code_bytes = at->code_bits / 8;
  const uint32_t distance = lfr_distance(at->items + (size_t)at->n_rows * code_bytes, query, code_bytes);
  for (uint32_t i = 0; first_item(at, i) < at->n_items; i++) {
    const uint32_t cost = 2 * distance + base_of(at->prior, i);
    if (top->size == top->capacity && top->hits[0].distance < cost) return;
    if (!offer_closed_of(at, i, cost, top)) return;
  }
}

/* Makes rows items, which keeps their order, offers the closed items, sorts the hits, best first, and makes costs
 * distances again. Returns the number of hits. */
static uint32_t finish_top(const catalogue* at, const uint8_t* query, lfr_top* top) {
  for (uint32_t i = 0; at->open && i < top->size; i++)
    top->hits[i].item_index = lfr_open_item(at->open, top->hits[i].item_index, &top->block);
  if (at->open) offer_closed(at, query, top);
  sort_hits(top->hits, top->size);
  for (uint32_t i = 0; i < top->size; i++) {
    lfr_hit* hit = &top->hits[i];
    hit->distance = (hit->distance - base_of(at->prior, step_of(at->prior, hit->item_index))) / 2;
  }
  return top->size;
}

static int check_topk(const uint8_t* items, uint32_t n_rows, uint32_t code_bits, const void* query,
                      const lfr_prior* prior, const lfr_open* open, uint32_t k, const void* hits,
                      const uint32_t* n_hits) {
  int status = check_search(items, n_rows, code_bits, query, hits);
  if (status == LFR_OK) status = check_prior(prior);
  if (status == LFR_OK && open) status = lfr_check_open(open);
  if (status != LFR_OK) return status;
  if (!n_hits) return LFR_ERR_NULL;
  return k < 1 || k > INT32_MAX || (open && n_rows - 1 != open->n_open) ? LFR_ERR_COUNT : LFR_OK;
}

int lfr_topk(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query, const uint8_t* exclude,
             uint32_t k, lfr_hit* hits, uint32_t* n_hits) {
  return lfr_topk_open(items, n_items, code_bits, query, exclude, NULL, NULL, k, hits, n_hits);
}

int lfr_topk_prior(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query,
                   const uint8_t* exclude, const lfr_prior* prior, uint32_t k, lfr_hit* hits, uint32_t* n_hits) {
  return lfr_topk_open(items, n_items, code_bits, query, exclude, prior, NULL, k, hits, n_hits);
}

int lfr_topk_open(const uint8_t* items, uint32_t n_rows, uint32_t code_bits, const uint8_t* query,
                  const uint8_t* exclude, const lfr_prior* prior, const lfr_open* open, uint32_t k, lfr_hit* hits,
                  uint32_t* n_hits) {
  const int status = check_topk(items, n_rows, code_bits, query, prior, open, k, hits, n_hits);
  if (status != LFR_OK) return status;
  *n_hits = 0;
  if (n_rows == 0) return LFR_OK; /* pointers may be NULL, to which nothing must be added, not even 0 */
  const catalogue at = start_catalogue(items, n_rows, code_bits, prior, open);
  lfr_top top = start_top(&at, exclude, k, hits);
  for (uint32_t i = 0, row = 0, next; row < at.n_rows; i++, row = next) {
    enter_step(&top, base_of(at.prior, i));
    if (top.threshold == 0) break; /* nor can rows of later steps enter: their offsets are no higher */
    next = first_row(&at, i + 1);
    lfr_current()->scan(items, row, next, code_bits / 8, query, &top);
  }
  *n_hits = finish_top(&at, query, &top);
  return LFR_OK;
}

static void batch_some(const catalogue* at, const uint8_t* queries, uint32_t n_queries, const uint8_t* excludes,
                       uint32_t k, lfr_hit* hits, uint32_t* n_hits) {
  const size_t exclude_bytes = lfr_bitmap_bytes(at->n_items), code_bytes = at->code_bits / 8;
  lfr_top tops[LFR_BATCH_QUERIES];
  for (uint32_t j = 0; j < n_queries; j++)
    tops[j] = start_top(at, excludes ? excludes + j * exclude_bytes : NULL, k, hits + (size_t)j * k);
  for (uint32_t i = 0, row = 0, next; row < at->n_rows; i++, row = next) {
    for (uint32_t j = 0; j < n_queries; j++) enter_step(&tops[j], base_of(at->prior, i));
    next = first_row(at, i + 1);
    lfr_current()->batch(at->items, row, next, at->code_bits / 8, queries, n_queries, tops);
  }
  for (uint32_t j = 0; j < n_queries; j++) n_hits[j] = finish_top(at, queries + j * code_bytes, &tops[j]);
}

int lfr_topk_batch(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* queries,
                   uint32_t n_queries, const uint8_t* excludes, uint32_t k, lfr_hit* hits, uint32_t* n_hits) {
  return lfr_topk_batch_open(items, n_items, code_bits, queries, n_queries, excludes, NULL, NULL, k, hits, n_hits);
}

int lfr_topk_batch_prior(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* queries,
                         uint32_t n_queries, const uint8_t* excludes, const lfr_prior* prior, uint32_t k, lfr_hit* hits,
                         uint32_t* n_hits) {
  return lfr_topk_batch_open(items, n_items, code_bits, queries, n_queries, excludes, prior, NULL, k, hits, n_hits);
}

int lfr_topk_batch_open(const uint8_t* items, uint32_t n_rows, uint32_t code_bits, const uint8_t* queries,
                        uint32_t n_queries, const uint8_t* excludes, const lfr_prior* prior, const lfr_open* open,
                        uint32_t k, lfr_hit* hits, uint32_t* n_hits) {
  if (n_queries == 0) return LFR_OK;
  const int status = check_topk(items, n_rows, code_bits, queries, prior, open, k, hits, n_hits);
  if (status != LFR_OK) return status;
  memset(n_hits, 0, n_queries * sizeof *n_hits);
  if (n_rows == 0) return LFR_OK; /* as in lfr_topk_open */
  const catalogue at = start_catalogue(items, n_rows, code_bits, prior, open);
  for (uint32_t done = 0; done < n_queries;) {
    uint32_t some = n_queries - done < LFR_BATCH_QUERIES ? n_queries - done : LFR_BATCH_QUERIES;
    batch_some(&at, queries + (size_t)done * (code_bits / 8), some,
               excludes ? excludes + done * lfr_bitmap_bytes(at.n_items) : NULL, k, hits + (size_t)done * k,
               n_hits + done);
    done += some;
  }
  return LFR_OK;
}
