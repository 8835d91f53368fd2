/* Search against an oracle that sorts all pairs (cost, item_index), where the cost of a row is twice its distance less
 * its offset. Without a prior that is the order by distance. */
#include "test.h"

/* ---- priors ------------------------------------------------------------------------------------------------ */

typedef enum prior_kind { NO_PRIOR, GENTLE, STEEP, SHORT, N_PRIORS } prior_kind;

/* Gentle steps mix with distances, steep ones decide alone, short ones are one row long at first. `steps` has room. */
static lfr_prior new_prior(prior_kind kind, uint32_t n_items, lfr_step* steps) {
  const uint32_t n = kind == SHORT ? LFR_MAX_STEPS : 1 + random_below(LFR_MAX_STEPS);
  uint32_t first = 0;
  int32_t offset = kind == STEEP ? LFR_MAX_OFFSET : (int32_t)random_below(64) - 32;
  for (uint32_t i = 0; i < n; i++) {
    steps[i].first_item = first;
    steps[i].offset = offset;
    first += 1 + (kind == SHORT ? i / 4 : random_below(1 + n_items / 8));
    offset -= (int32_t)(kind == STEEP ? 1 + random_below(2 * LFR_MAX_OFFSET / LFR_MAX_STEPS) : random_below(5));
  }
  const lfr_prior prior = {steps, n};
  return prior;
}

/* ---- catalogues -------------------------------------------------------------------------------------------- */

typedef enum catalogue { RANDOM, CLUSTERED, EQUAL, OPPOSITE, NEARER_AND_NEARER, N_CATALOGUES } catalogue;
static const char* const catalogue_names[] = {"random", "clustered", "equal", "opposite", "nearer and nearer"};

typedef enum exclusion { NONE, HALF, ALL, N_EXCLUSIONS } exclusion;

static void copy_with_flips(const uint8_t* from, uint32_t code_bits, uint32_t flips, uint8_t* to) {
  memcpy(to, from, code_bits / 8);
  for (uint32_t i = 0; i < flips; i++) {
    const uint32_t k = random_below(code_bits);
    to[k / 8] ^= (uint8_t)(1u << (k % 8));
  }
}

/* Learned codes cluster: a few centres with a few bits turned over. */
static void fill_clustered(uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query) {
  uint8_t centres[4][LFR_MAX_CODE_BITS / 8];
  random_bytes(centres[0], sizeof centres);
  copy_with_flips(query, code_bits, code_bits / 8, centres[0]);
  for (uint32_t i = 0; i < n_items; i++)
    copy_with_flips(centres[random_below(4)], code_bits, random_below(4), items + (size_t)i * (code_bits / 8));
}

/* Row i differs from the query in the first f - i * f / (n - 1) bits: from f down to 0. */
static void fill_nearer(uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query) {
  for (uint32_t i = 0; i < n_items; i++) {
    uint8_t* row = items + (size_t)i * (code_bits / 8);
    const uint32_t differ = n_items > 1 ? code_bits - i * code_bits / (n_items - 1) : code_bits;
    memcpy(row, query, code_bits / 8);
    for (uint32_t k = 0; k < differ; k++) row[k / 8] ^= (uint8_t)(1u << (k % 8));
  }
}

static void fill_catalogue(catalogue kind, uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query) {
  const uint32_t code_bytes = code_bits / 8;
  switch (kind) {
    case CLUSTERED: fill_clustered(items, n_items, code_bits, query); break;
    case NEARER_AND_NEARER: fill_nearer(items, n_items, code_bits, query); break;
    case EQUAL:
      for (uint32_t i = 0; i < n_items; i++) memcpy(items + (size_t)i * code_bytes, query, code_bytes);
      break;
    case OPPOSITE: /* the greatest distance there is, which narrow counters must hold */
      for (size_t i = 0; i < (size_t)n_items * code_bytes; i++) items[i] = (uint8_t)~query[i % code_bytes];
      break;
    default: random_bytes(items, (size_t)n_items * code_bytes);
  }
}

static uint8_t* new_exclusion(exclusion kind, uint32_t n_items) {
  const size_t n = ((size_t)n_items + 7) / 8;
  if (kind == NONE) return NULL;
  uint8_t* bitmap = exact(n);
  random_bytes(bitmap, n);
  if (kind == ALL) memset(bitmap, 0xff, n);
  return bitmap;
}

/* ---- one query --------------------------------------------------------------------------------------------- */

typedef struct search_case {
  uint32_t code_bits, n_items;
  catalogue kind;
  exclusion excluded;
  prior_kind prior;
} search_case;

static void check_hits(const search_case* at, const char* isa, uint32_t k, const lfr_hit* hits, uint32_t n_hits,
                       const lfr_hit* ranking, uint32_t n_ranked) {
  const uint32_t expected = n_ranked < k ? n_ranked : k;
  uint32_t same = 0;
  while (n_hits == expected && same < expected && !memcmp(&hits[same], &ranking[same], sizeof *hits)) same++;
  CHECK(n_hits == expected && same == expected,
        "%s: %" PRIu32 " bits, %" PRIu32 " %s items, exclusion %d, prior %d, k %" PRIu32 ": %" PRIu32
        " hits, not %" PRIu32 ", of which %" PRIu32 " are right",
        isa, at->code_bits, at->n_items, catalogue_names[at->kind], at->excluded, at->prior, k, n_hits, expected, same);
}

static void search_once(const search_case* at, const uint8_t* items, const uint8_t* query) {
  const uint32_t n = at->n_items, ks[] = {1, 10, n, n + 5, 1000};
  uint8_t* exclude = new_exclusion(at->excluded, n);
  lfr_step steps[LFR_MAX_STEPS];
  const lfr_prior made = new_prior(at->prior, n, steps), *prior = at->prior == NO_PRIOR ? NULL : &made;
  lfr_hit* ranking = exact(n * sizeof *ranking);
  const uint32_t n_ranked = naive_ranking(items, n, at->code_bits / 8, query, exclude, prior, ranking);
  for (size_t i = 0; i < N_ELEMENTS(ks); i++) {
    if (ks[i] == 0) continue;
    lfr_hit* hits = exact(ks[i] * sizeof *hits);
    FOR_EACH_ISA(isa) {
      uint32_t n_hits = UINT32_MAX;
      CHECK_STATUS(LFR_OK, lfr_topk_prior(items, n, at->code_bits, query, exclude, prior, ks[i], hits, &n_hits));
      check_hits(at, isa, ks[i], hits, n_hits, ranking, n_ranked);
      if (prior) continue;
      CHECK_STATUS(LFR_OK, lfr_topk(items, n, at->code_bits, query, exclude, ks[i], hits, &n_hits));
      check_hits(at, isa, ks[i], hits, n_hits, ranking, n_ranked);
    }
    free(hits);
  }
  free(ranking);
  free(exclude);
}

static void check_distances(const search_case* at, const uint8_t* items, const uint8_t* query) {
  const uint32_t code_bytes = at->code_bits / 8;
  uint16_t* distances = exact(at->n_items * sizeof *distances);
  FOR_EACH_ISA(isa) {
    memset(distances, 0xff, at->n_items * sizeof *distances);
    CHECK_STATUS(LFR_OK, lfr_distances(items, at->n_items, at->code_bits, query, distances));
    uint32_t same = 0;
    while (same < at->n_items &&
           distances[same] == naive_distance(items + (size_t)same * code_bytes, query, code_bytes))
      same++;
    CHECK(same == at->n_items, "%s: %" PRIu32 " bits, %" PRIu32 " %s items: the distance of row %" PRIu32 " is wrong",
          isa, at->code_bits, at->n_items, catalogue_names[at->kind], same);
  }
  free(distances);
}

/* Calls `visit` for every code length, number of items and catalogue. */
static void visit_catalogues(void (*visit)(search_case*, const uint8_t* items, const uint8_t* query)) {
  const uint32_t counts[] = {0, 1, 7, 31, 32, 33, 39, 40, 41, 63, 64, 65, 255, 256, 257, 1000};
  for (size_t b = 0; b < n_all_code_bits; b++)
    for (size_t c = 0; c < N_ELEMENTS(counts); c++)
      for (catalogue kind = 0; kind < N_CATALOGUES; kind++) {
        search_case at = {all_code_bits[b], counts[c], kind, NONE, NO_PRIOR};
        uint8_t* items = exact_odd((size_t)counts[c] * (at.code_bits / 8));
        uint8_t* query = exact_odd(at.code_bits / 8);
        random_bytes(query, at.code_bits / 8);
        fill_catalogue(kind, items, counts[c], at.code_bits, query);
        visit(&at, items, query);
        free_odd(query);
        free_odd(items);
      }
}

static void search_each_exclusion(search_case* at, const uint8_t* items, const uint8_t* query) {
  for (at->excluded = NONE; at->excluded < N_EXCLUSIONS; at->excluded++)
    for (at->prior = NO_PRIOR; at->prior < N_PRIORS; at->prior++) search_once(at, items, query);
}

static void distances_of_case(search_case* at, const uint8_t* items, const uint8_t* query) {
  check_distances(at, items, query);
}

static void test_topk(void) { visit_catalogues(search_each_exclusion); }

static void test_distances(void) { visit_catalogues(distances_of_case); }

/* ---- batches ----------------------------------------------------------------------------------------------- */

typedef struct batch_case {
  search_case at;
  uint32_t n_queries, k;
  const uint8_t *items, *queries, *excludes;
} batch_case;

static void check_batch(const batch_case* batch, const char* isa, const lfr_hit* hits, const uint32_t* n_hits,
                        lfr_hit* const* rankings, const uint32_t* n_ranked) {
  for (uint32_t j = 0; j < batch->n_queries; j++)
    check_hits(&batch->at, isa, batch->k, hits + (size_t)j * batch->k, n_hits[j], rankings[j], n_ranked[j]);
}

static void search_batch(const batch_case* batch) {
  const uint32_t n = batch->at.n_items, n_queries = batch->n_queries, code_bytes = batch->at.code_bits / 8;
  lfr_step steps[LFR_MAX_STEPS];
  const lfr_prior made = new_prior(batch->at.prior, n, steps), *prior = batch->at.prior == NO_PRIOR ? NULL : &made;
  lfr_hit** rankings = exact(n_queries * sizeof *rankings);
  uint32_t* n_ranked = exact(n_queries * sizeof *n_ranked);
  for (uint32_t j = 0; j < n_queries; j++) {
    const uint8_t* exclude = batch->excludes ? batch->excludes + (size_t)j * (((size_t)n + 7) / 8) : NULL;
    rankings[j] = exact(n * sizeof **rankings);
    n_ranked[j] = naive_ranking(batch->items, n, code_bytes, batch->queries + (size_t)j * code_bytes, exclude, prior,
                                rankings[j]);
  }
  lfr_hit* hits = exact((size_t)n_queries * batch->k * sizeof *hits);
  uint32_t* n_hits = exact(n_queries * sizeof *n_hits);
  FOR_EACH_ISA(isa) {
    CHECK_STATUS(LFR_OK, lfr_topk_batch_prior(batch->items, n, batch->at.code_bits, batch->queries, n_queries,
                                              batch->excludes, prior, batch->k, hits, n_hits));
    check_batch(batch, isa, hits, n_hits, rankings, n_ranked);
    if (prior) continue;
    CHECK_STATUS(LFR_OK, lfr_topk_batch(batch->items, n, batch->at.code_bits, batch->queries, n_queries,
                                        batch->excludes, batch->k, hits, n_hits));
    check_batch(batch, isa, hits, n_hits, rankings, n_ranked);
  }
  for (uint32_t j = 0; j < n_queries; j++) free(rankings[j]);
  free(rankings);
  free(n_ranked);
  free(hits);
  free(n_hits);
}

static void make_and_search_batch(uint32_t code_bits, uint32_t n_items, uint32_t n_queries, uint32_t k, uint32_t turn) {
  const exclusion exclusions[] = {NONE, HALF, NONE, ALL};
  const search_case at = {code_bits, n_items, (catalogue)(turn % N_CATALOGUES), exclusions[turn % 4],
                          (prior_kind)(turn / 4 % N_PRIORS)};
  batch_case batch = {at, n_queries, k, NULL, NULL, NULL};
  const uint32_t code_bytes = code_bits / 8;
  uint8_t* items = exact_odd((size_t)n_items * code_bytes);
  uint8_t* queries = exact_odd((size_t)n_queries * code_bytes);
  uint8_t* excludes = new_exclusion(batch.at.excluded, 8 * n_queries * ((n_items + 7) / 8));
  uint8_t first[LFR_MAX_CODE_BITS / 8];
  random_bytes(queries, (size_t)n_queries * code_bytes);
  random_bytes(first, sizeof first);
  fill_catalogue(batch.at.kind, items, n_items, code_bits, n_queries ? queries : first);
  batch.items = items;
  batch.queries = queries;
  batch.excludes = excludes;
  search_batch(&batch);
  free(excludes);
  free_odd(queries);
  free_odd(items);
}

/* Each code length with each batch size; items, k, catalogue and exclusion take turns, out of step with each other. */
static void test_batch(void) {
  const uint32_t batches[] = {0, 1, 23, 24, 63, 64, 65, 130}, counts[] = {257, 600, 1, 256, 33, 511, 0};
  uint32_t turn = 0;
  for (size_t b = 0; b < n_all_code_bits; b++)
    for (size_t q = 0; q < N_ELEMENTS(batches); q++)
      for (int repeat = 0; repeat < 3; repeat++, turn++) {
        const uint32_t n = counts[turn % N_ELEMENTS(counts)], ks[] = {10, 1, n + 5, n ? n : 1, 300};
        make_and_search_batch(all_code_bits[b], n, batches[q], ks[turn / 3 % N_ELEMENTS(ks)], turn);
      }
}

/* 64 and 128 bits have a path of their own for many queries: every catalogue, exclusion and k. */
static void test_batch_of_sliced_lengths(void) {
  const uint32_t counts[] = {255, 256, 257, 600}, ks[] = {1, 10, 256, 605};
  for (uint32_t code_bits = 64; code_bits <= 128; code_bits += 64)
    for (size_t c = 0; c < N_ELEMENTS(counts); c++)
      for (size_t i = 0; i < N_ELEMENTS(ks); i++)
        for (uint32_t turn = 0; turn < 4 * N_CATALOGUES * N_PRIORS; turn += 1 + (turn / 4 % 2))
          make_and_search_batch(code_bits, counts[c], 24, ks[i], turn);
}

/* Row i of block b is 7 - b or 6 - b bits away, so that the worst of the best k changes, and ties, inside each block.
 */
static void fill_with_falling_ties(uint8_t* items, uint32_t n_items, uint32_t code_bytes) {
  memset(items, 0, (size_t)n_items * code_bytes);
  for (uint32_t i = 0; i < n_items; i++)
    items[(size_t)i * code_bytes] = (uint8_t)(0xff >> (1 + i / 256 + (random_below(40) == 0)));
}

static void test_ties_across_blocks(void) {
  enum { N = 1100, QUERIES = 30 };
  for (uint32_t code_bits = 64; code_bits <= 128; code_bits += 64) {
    uint8_t* items = exact_odd((size_t)N * (code_bits / 8));
    uint8_t* queries = exact_odd((size_t)QUERIES * (code_bits / 8));
    memset(queries, 0, (size_t)QUERIES * (code_bits / 8));
    for (uint32_t k = 1; k < 60; k += 3) {
      fill_with_falling_ties(items, N, code_bits / 8);
      const prior_kind prior = k % 2 ? NO_PRIOR : SHORT;
      const batch_case batch = {{code_bits, N, CLUSTERED, NONE, prior}, QUERIES, k, items, queries, NULL};
      search_batch(&batch);
    }
    free_odd(queries);
    free_odd(items);
  }
}

const test search_tests[] = {
    {"top-k equals sorting all pairs, for every length, count, catalogue, exclusion, prior and k", test_topk},
    {"distances equal counting bits", test_distances},
    {"a batch equals sorting all pairs for each query", test_batch},
    {"a batch of 64- and 128-bit codes equals sorting for every catalogue, exclusion and k",
     test_batch_of_sliced_lengths},
    {"ties go to the lower index within and across blocks of a batch", test_ties_across_blocks},
    {NULL, NULL}};
