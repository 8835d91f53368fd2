/* Searches of one query and of many: with exclusions, priors and open rows. */
#include "fuzz.h"

typedef struct search {
  uint32_t f, code_bytes, n_items, n_rows, n_queries, k;
  int is_valid;
  uint8_t *rows, *full, *queries, *excludes; /* full: each item's row */
  const lfr_prior* prior;
  const lfr_open* open;
} search;

/* The prior of lfr.h: 1 .. 64 steps from row 0 on, ascending, none higher than the one before. */
static int is_prior(const lfr_step* steps, uint32_t n) {
  if (!steps || n < 1 || n > LFR_MAX_STEPS || steps[0].first_item) return 0;
  for (uint32_t i = 0; i < n; i++) {
    if (steps[i].offset > LFR_MAX_OFFSET || steps[i].offset < -LFR_MAX_OFFSET) return 0;
    if (i && (steps[i].first_item <= steps[i - 1].first_item || steps[i].offset > steps[i - 1].offset)) return 0;
  }
  return 1;
}

static const lfr_prior* make_prior(input* in, int* is_valid) {
  if (number(in, 1)) return NULL;
  const uint32_t n = number(in, LFR_MAX_STEPS + 2), spoilt = number(in, 255), is_steep = number(in, 3) == 3;
  lfr_step* steps = room(in, n * sizeof *steps);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t length = number(in, 255), fall = number(in, 255);
    steps[i].first_item = i ? steps[i - 1].first_item + 1 + length % 64 : 0;
    steps[i].offset = (i ? steps[i - 1].offset : (int32_t)length) - (int32_t)(is_steep ? fall * 64 : fall % 8);
  }
  if (spoilt < n) fill(in, &steps[spoilt], sizeof *steps);
  const lfr_prior prior = {perhaps(in, steps), n};
  *is_valid &= is_prior(prior.steps, n);
  return copy(in, &prior, sizeof prior);
}

/* A bitmap of any bytes, whose end is dirty at times: then it must be refused, and is cleaned. */
static const lfr_open* make_open(input* in, uint32_t n_items) {
  uint8_t* bitmap = content(in, (n_items + 7) / 8);
  uint32_t* before = room(in, (n_items / LFR_OPEN_BLOCK + 1) * sizeof *before);
  uint32_t n_open = 0, counted = UINT32_MAX;
  const int is_clean = n_items % 8 == 0 || bitmap[n_items / 8] >> (n_items % 8) == 0;
  REQUIRE_STATUS(is_clean, lfr_open_count(bitmap, n_items, before, &counted));
  if (!is_clean) {
    bitmap[n_items / 8] &= (uint8_t)((1u << (n_items % 8)) - 1);
    REQUIRE_STATUS(1, lfr_open_count(bitmap, n_items, before, &counted));
  }
  for (uint32_t i = 0; i < n_items; i++) n_open += sign_at(bitmap, i) > 0;
  REQUIRE(counted == n_open);
  const lfr_open open = {bitmap, before, n_items, n_open};
  return copy(in, &open, sizeof open);
}

/* Each closed item gets a copy of the last row. */
static uint8_t* full_matrix(input* in, const search* at) {
  if (!at->open) return at->rows;
  uint8_t* full = odd_room(in, (size_t)at->n_items * at->code_bytes);
  for (uint32_t i = 0, row = 0; i < at->n_items; i++) {
    const uint32_t from = sign_at(at->open->bitmap, i) > 0 ? row++ : at->open->n_open;
    memcpy(full + i * at->code_bytes, at->rows + from * at->code_bytes, at->code_bytes);
  }
  return full;
}

static search make_search(input* in, uint32_t most_queries) {
  search at = {.f = code_length(in)};
  at.n_items = few(in, 70, 600);
  at.n_queries = few(in, most_queries / 16, most_queries);
  const uint32_t ways = number(in, 255);
  at.k = number(in, 255) * (ways & 1 ? 3 : 1);
  at.is_valid = is_code_length(at.f);
  if (!at.is_valid) at.f = 64; /* content for a length; search_status tries the bad ones */
  at.code_bytes = at.f / 8;
  at.is_valid = at.k >= 1;
  at.prior = make_prior(in, &at.is_valid);
  at.open = ways & 2 ? make_open(in, at.n_items) : NULL;
  at.n_rows = at.open ? at.open->n_open + 1 : at.n_items;
  at.queries = codes(in, at.n_queries * at.code_bytes);
  at.rows = codes(in, (size_t)at.n_rows * at.code_bytes);
  at.excludes = ways & 4 ? content(in, at.n_queries * ((at.n_items + 7) / 8)) : NULL;
  /* Real catalogues cluster: ties and equal rows come of rows that repeat. */
  for (uint32_t i = 1; ways & 8 && i < at.n_rows; i++)
    if (at.rows[i * at.code_bytes] % 4) memcpy(at.rows + i * at.code_bytes, at.rows, at.code_bytes - 1);
  at.full = full_matrix(in, &at);
  return at;
}

static void require_hits(const search* at, uint32_t query, const lfr_hit* hits, uint32_t n_hits, const lfr_hit* ranking,
                         uint32_t n_ranked) {
  const uint32_t expected = n_ranked < at->k ? n_ranked : at->k;
  REQUIRE(n_hits == expected);
  REQUIRE(same_bytes(hits + (size_t)query * at->k, ranking, expected * sizeof *hits));
}

static uint32_t ranking_of(const search* at, uint32_t query, lfr_hit* ranking) {
  const uint8_t* exclude = at->excludes ? at->excludes + query * ((at->n_items + 7) / 8) : NULL;
  return naive_ranking(at->full, at->n_items, at->code_bytes, at->queries + query * at->code_bytes, exclude, at->prior,
                       ranking);
}

static void search_distances(input* in, const search* at) {
  uint16_t* distances = room(in, at->n_rows * sizeof *distances);
  FOR_EACH_VARIANT {
    REQUIRE_STATUS(1, lfr_distances(at->rows, at->n_rows, at->f, at->queries, distances));
    for (uint32_t i = 0; i < at->n_rows; i++)
      REQUIRE(distances[i] == naive_distance(at->rows + i * at->code_bytes, at->queries, at->code_bytes));
  }
}

/* A bad length, k, number of rows or pointer is refused, whatever else holds. */
static void search_status(input* in, const search* at) {
  lfr_hit* hits = room(in, (at->k ? at->k : 1) * sizeof *hits);
  uint32_t n_hits = 0, length = code_length(in), k = number(in, 9) ? at->k : number(in, UINT32_MAX);
  if (is_code_length(length)) length = at->f;
  if (k <= INT32_MAX) k = at->k;
  const uint32_t n_rows = at->n_rows + (at->open && number(in, 9) == 9);
  const uint8_t *rows = perhaps(in, at->rows), *query = perhaps(in, at->queries);
  lfr_hit* to = perhaps(in, hits);
  uint32_t* count = perhaps(in, &n_hits);
  const int is_valid = at->is_valid && length == at->f && k == at->k && n_rows == at->n_rows && query && count &&
                       (at->n_rows == 0 || (rows && to));
  REQUIRE_STATUS(is_valid, lfr_topk_open(rows, n_rows, length, query, at->excludes, at->prior, at->open, k, to, count));
  REQUIRE_STATUS(is_valid,
                 lfr_topk_batch_open(rows, n_rows, length, query, 1, at->excludes, at->prior, at->open, k, to, count));
}

void fuzz_search(input* in) {
  search at = make_search(in, 0);
  at.n_queries = 1;
  at.queries = codes(in, at.code_bytes);
  if (at.excludes || number(in, 1)) at.excludes = content(in, (at.n_items + 7) / 8);
  search_status(in, &at);
  if (!at.is_valid) return;
  search_distances(in, &at);
  lfr_hit *ranking = room(in, at.n_items * sizeof *ranking), *hits = room(in, at.k * sizeof *hits);
  const uint32_t n_ranked = ranking_of(&at, 0, ranking);
  FOR_EACH_VARIANT {
    uint32_t n_hits = UINT32_MAX;
    REQUIRE_STATUS(
        1, lfr_topk_open(at.rows, at.n_rows, at.f, at.queries, at.excludes, at.prior, at.open, at.k, hits, &n_hits));
    require_hits(&at, 0, hits, n_hits, ranking, n_ranked);
    if (at.open) continue;
    REQUIRE_STATUS(1, lfr_topk_prior(at.rows, at.n_rows, at.f, at.queries, at.excludes, at.prior, at.k, hits, &n_hits));
    require_hits(&at, 0, hits, n_hits, ranking, n_ranked);
    if (at.prior) continue;
    REQUIRE_STATUS(1, lfr_topk(at.rows, at.n_rows, at.f, at.queries, at.excludes, at.k, hits, &n_hits));
    require_hits(&at, 0, hits, n_hits, ranking, n_ranked);
  }
}

static int batch_once(const search* at, int isa, lfr_hit* hits, uint32_t* n_hits) {
  if (at->open || isa % 2) /* lfr_topk_batch and its kin hand over to this one */
    return lfr_topk_batch_open(at->rows, at->n_rows, at->f, at->queries, at->n_queries, at->excludes, at->prior,
                               at->open, at->k, hits, n_hits);
  if (at->prior)
    return lfr_topk_batch_prior(at->rows, at->n_rows, at->f, at->queries, at->n_queries, at->excludes, at->prior, at->k,
                                hits, n_hits);
  return lfr_topk_batch(at->rows, at->n_rows, at->f, at->queries, at->n_queries, at->excludes, at->k, hits, n_hits);
}

void fuzz_batch(input* in) {
  const search at = make_search(in, 70);
  lfr_hit *hits = room(in, (size_t)at.n_queries * at.k * sizeof *hits), *ranking = room(in, at.n_items * sizeof *hits);
  uint32_t* n_hits = room(in, at.n_queries * sizeof *n_hits);
  if (at.n_queries == 0 || !at.is_valid) {
    REQUIRE_STATUS(at.n_queries == 0, batch_once(&at, 0, hits, n_hits));
    return;
  }
  lfr_hit* others = room(in, (size_t)at.n_queries * at.k * sizeof *hits);
  uint32_t* n_others = room(in, at.n_queries * sizeof *n_others);
  lfr_isa_select(LFR_ISA_PORTABLE);
  REQUIRE_STATUS(1, batch_once(&at, 0, hits, n_hits));
  FOR_EACH_VARIANT {
    REQUIRE_STATUS(1, batch_once(&at, isa_, others, n_others));
    for (uint32_t j = 0; j < at.n_queries; j++) {
      REQUIRE(n_others[j] == n_hits[j]);
      REQUIRE(same_bytes(others + (size_t)j * at.k, hits + (size_t)j * at.k, n_hits[j] * sizeof *hits));
    }
  }
  /* The oracle sorts: of many queries it looks at three, the first and the last among them. */
  for (uint32_t j = 0; j < at.n_queries; j += at.n_queries < 4 ? 1 : (at.n_queries - 1) / 2)
    require_hits(&at, j, hits, n_hits[j], ranking, ranking_of(&at, j, ranking));
}

void fuzz_open(input* in) {
  const uint32_t f = 8 * (1 + few(in, 2, 8));
  const uint32_t n_items = few(in, 90, 2100), n = number(in, 20);
  const lfr_open* open = make_open(in, n_items);
  uint32_t *indices = content(in, n * sizeof *indices), *rows = room(in, n * sizeof *rows);
  int is_valid = 1;
  for (uint32_t i = 0; i < n; i++) {
    if (n_items && indices[i] % 64) indices[i] %= n_items;
    is_valid &= indices[i] < n_items;
  }
  const lfr_open* with = perhaps(in, open);
  const uint32_t* wanted = perhaps(in, indices);
  uint32_t* to = perhaps(in, rows);
  is_valid &= with && (n == 0 || (wanted && to));
  REQUIRE_STATUS(is_valid, lfr_open_rows(with, wanted, n, to));
  for (uint32_t i = 0; is_valid && i < n; i++) {
    uint32_t before = 0;
    for (uint32_t j = 0; j < indices[i]; j++) before += sign_at(open->bitmap, j) > 0;
    REQUIRE(rows[i] == (sign_at(open->bitmap, indices[i]) > 0 ? before : open->n_open));
  }
  if (n_items > 100) return; /* the oracle of the gram takes f * f * n_items steps */
  search at = {.code_bytes = f / 8, .n_items = n_items, .open = open};
  at.rows = codes(in, (open->n_open + 1) * at.code_bytes);
  at.full = full_matrix(in, &at);
  int64_t *expected = room(in, (size_t)f * f * sizeof *expected), *gram = room(in, (size_t)f * f * sizeof *gram);
  int64_t* sums = room(in, f * sizeof *sums);
  naive_gram(at.full, n_items, f, NULL, expected);
  FOR_EACH_VARIANT {
    REQUIRE_STATUS(1, lfr_gram_open(at.rows, open->n_open + 1, f, n_items - open->n_open, gram, sums));
    REQUIRE(same_bytes(gram, expected, (size_t)f * f * sizeof *gram));
    REQUIRE_STATUS(1, lfr_gram(at.full, n_items, f, gram, sums));
    REQUIRE(same_bytes(gram, expected, (size_t)f * f * sizeof *gram));
    for (uint32_t k = 0; k < f; k++) {
      int64_t sum = 0;
      for (uint32_t i = 0; i < n_items; i++) sum += sign_at(at.full + i * at.code_bytes, k);
      REQUIRE(sums[k] == sum);
    }
  }
}
