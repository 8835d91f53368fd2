/* Open rows: everything equals what the full matrix gives, in which each closed item has a copy of the shared row. The
 * other tests hold the functions of the full matrix to their definitions. */
#include "test.h"

typedef enum bitmap_kind { NONE, ALL, PREFIX, NEARLY_A_PREFIX, SOME, FEW, N_KINDS } bitmap_kind;

typedef struct catalogue {
  uint32_t f;
  bitmap_kind kind;
  lfr_open open;
  uint32_t* before;
  uint8_t *bitmap, *rows, *full;
} catalogue;

static int is_open(bitmap_kind kind, uint32_t i, uint32_t n_items) {
  switch (kind) {
    case NONE: return 0;
    case ALL: return 1;
    case PREFIX: return i < n_items / 3;
    case NEARLY_A_PREFIX: return i + random_below(1 + n_items / 8) < n_items / 3;
    case FEW: return random_below(50) == 0;
    default: return (int)random_below(2);
  }
}

static catalogue new_catalogue(uint32_t n_items, uint32_t f, bitmap_kind kind) {
  const size_t bitmap_bytes = ((size_t)n_items + 7) / 8, code_bytes = f / 8;
  catalogue made = {.f = f, .kind = kind, .bitmap = exact(bitmap_bytes)};
  memset(made.bitmap, 0, bitmap_bytes);
  for (uint32_t i = 0; i < n_items; i++) made.bitmap[i / 8] |= (uint8_t)(is_open(kind, i, n_items) << (i % 8));
  made.before = exact((n_items / LFR_OPEN_BLOCK + 1) * sizeof *made.before);
  uint32_t n_open = UINT32_MAX;
  CHECK_STATUS(LFR_OK, lfr_open_count(made.bitmap, n_items, made.before, &n_open));
  made.open = (lfr_open){made.bitmap, made.before, n_items, n_open};
  made.rows = random_codes(n_open + 1, f);
  made.full = exact_odd(n_items * code_bytes);
  for (uint32_t i = 0, row = 0; i < n_items; i++) {
    const uint32_t at = (made.bitmap[i / 8] >> (i % 8)) & 1 ? row++ : n_open;
    memcpy(made.full + i * code_bytes, made.rows + at * code_bytes, code_bytes);
  }
  return made;
}

static void free_catalogue(catalogue* self) {
  free(self->bitmap);
  free(self->before);
  free_odd(self->rows);
  free_odd(self->full);
}

static void visit_catalogues(void (*visit)(const catalogue*)) {
  const uint32_t counts[] = {1, 7, 8, 64, 65, 300, 511, 512, 513, 1030};
  const uint32_t lengths[] = {8, 64, 72, 128, 256};
  for (size_t c = 0; c < N_ELEMENTS(counts); c++)
    for (size_t b = 0; b < N_ELEMENTS(lengths); b++)
      for (bitmap_kind kind = NONE; kind < N_KINDS; kind++) {
        catalogue made = new_catalogue(counts[c], lengths[b], kind);
        visit(&made);
        free_catalogue(&made);
      }
}

/* Falls slowly, so that it mixes with distances. Some steps begin behind the last item. */
static lfr_prior new_prior(uint32_t n_items, lfr_step* steps) {
  const uint32_t n = 1 + random_below(LFR_MAX_STEPS);
  for (uint32_t i = 0; i < n; i++) {
    steps[i].first_item = i ? steps[i - 1].first_item + 1 + random_below(1 + n_items / 8) : 0;
    steps[i].offset = (i ? steps[i - 1].offset : 20) - (int32_t)random_below(3);
  }
  const lfr_prior prior = {steps, n};
  return prior;
}

enum { QUERIES = 30 };

static void check_searches(const catalogue* at, const uint8_t* excludes, const lfr_prior* prior, uint32_t k) {
  const uint32_t n = at->open.n_items, n_rows = at->open.n_open + 1;
  uint8_t* queries = random_codes(QUERIES, at->f);
  lfr_hit *expected = exact(QUERIES * k * sizeof *expected), *hits = exact(QUERIES * k * sizeof *hits);
  uint32_t n_expected[QUERIES], n_hits[QUERIES];
  CHECK_STATUS(LFR_OK,
               lfr_topk_batch_prior(at->full, n, at->f, queries, QUERIES, excludes, prior, k, expected, n_expected));
  FOR_EACH_ISA(isa) {
    CHECK_STATUS(LFR_OK, lfr_topk_open(at->rows, n_rows, at->f, queries, excludes, prior, &at->open, k, hits, n_hits));
    CHECK(n_hits[0] == n_expected[0] && !memcmp(hits, expected, n_hits[0] * sizeof *hits),
          "%s: %" PRIu32 " items of %" PRIu32 " bits, bitmap %d, k %" PRIu32, isa, n, at->f, at->kind, k);
    CHECK_STATUS(LFR_OK, lfr_topk_batch_open(at->rows, n_rows, at->f, queries, QUERIES, excludes, prior, &at->open, k,
                                             hits, n_hits));
    for (uint32_t j = 0; j < QUERIES; j++)
      CHECK(n_hits[j] == n_expected[j] && !memcmp(hits + j * k, expected + j * k, n_hits[j] * sizeof *hits),
            "%s: batch, %" PRIu32 " items of %" PRIu32 " bits, bitmap %d, k %" PRIu32, isa, n, at->f, at->kind, k);
  }
  free(hits);
  free(expected);
  free_odd(queries);
}

static void search_catalogue(const catalogue* at) {
  const uint32_t n = at->open.n_items, ks[] = {1, 10, n + 3};
  const size_t bytes = QUERIES * (((size_t)n + 7) / 8);
  lfr_step steps[LFR_MAX_STEPS];
  uint8_t* excludes = exact(bytes);
  random_bytes(excludes, bytes);
  for (size_t i = 0; i < N_ELEMENTS(ks); i++)
    for (int way = 0; way < 4; way++) {
      const lfr_prior prior = new_prior(n, steps);
      check_searches(at, way & 1 ? excludes : NULL, way & 2 ? &prior : NULL, ks[i]);
    }
  free(excludes);
}

static void test_searches(void) { visit_catalogues(search_catalogue); }

static void gather_and_count(const catalogue* at) {
  const uint32_t n = at->open.n_items, n_rows = at->open.n_open + 1, f = at->f;
  uint32_t *indices = exact(n * sizeof *indices), *rows = exact(n * sizeof *rows);
  uint8_t* gathered = exact_odd((size_t)n * (f / 8));
  for (uint32_t i = 0; i < n; i++) indices[i] = i;
  CHECK_STATUS(LFR_OK, lfr_open_rows(&at->open, indices, n, rows));
  CHECK_STATUS(LFR_OK, lfr_gather(at->rows, n_rows, f, rows, n, gathered));
  CHECK(!memcmp(gathered, at->full, (size_t)n * (f / 8)), "rows of %" PRIu32 " items, bitmap %d", n, at->kind);
  const size_t bytes = ((size_t)f * f + f) * sizeof(int64_t);
  int64_t *expected = exact(bytes), *found = exact(bytes);
  FOR_EACH_ISA(isa) {
    CHECK_STATUS(LFR_OK, lfr_gram(at->full, n, f, expected, expected + (size_t)f * f));
    CHECK_STATUS(LFR_OK, lfr_gram_open(at->rows, n_rows, f, n - at->open.n_open, found, found + (size_t)f * f));
    CHECK(!memcmp(found, expected, bytes), "%s: gram of %" PRIu32 " items, bitmap %d", isa, n, at->kind);
  }
  free(found);
  free(expected);
  free_odd(gathered);
  free(rows);
  free(indices);
}

static void test_rows_and_gram(void) { visit_catalogues(gather_and_count); }

static void refine_catalogue(const catalogue* at) {
  const lfr_temperature temperature = {14773, 56056, 76619};
  const uint32_t n = at->open.n_items, n_rows = at->open.n_open + 1, f = at->f, n_rated = n < 12 ? n : 12;
  uint8_t *start = random_codes(1, f), *expected = exact_odd(f / 8), *code = exact_odd(f / 8);
  uint16_t *of_items = exact(n * sizeof *of_items), *of_rows = exact(n_rows * sizeof *of_rows);
  FOR_EACH_ISA(isa) {
    memcpy(expected, start, f / 8);
    memcpy(code, start, f / 8);
    CHECK_STATUS(LFR_OK, lfr_refine(at->full, n, f, at->full, NULL, n_rated, &temperature, 3, of_items, expected));
    CHECK_STATUS(LFR_OK, lfr_refine_open(at->rows, n_rows, f, n - at->open.n_open, at->full, NULL, n_rated,
                                         &temperature, 3, of_rows, code));
    CHECK(!memcmp(code, expected, f / 8), "%s: refined by %" PRIu32 " items, bitmap %d", isa, n, at->kind);
  }
  free(of_rows);
  free(of_items);
  free_odd(code);
  free_odd(expected);
  free_odd(start);
}

static void test_refine(void) { visit_catalogues(refine_catalogue); }

static void test_status(void) {
  const uint8_t bitmap[2] = {0x05, 0x01}, dirty[2] = {0x05, 0x08}, rows[4] = {1, 2, 3, 4}, query[1] = {7};
  uint32_t before[1], n_open, n_hits, row;
  const uint32_t within = 10, beyond = 11;
  lfr_hit hits[1];
  CHECK_STATUS(LFR_ERR_VALUE, lfr_open_count(dirty, 11, before, &n_open));
  CHECK_STATUS(LFR_ERR_NULL, lfr_open_count(NULL, 11, before, &n_open));
  CHECK_STATUS(LFR_ERR_NULL, lfr_open_count(bitmap, 11, NULL, &n_open));
  CHECK_STATUS(LFR_ERR_NULL, lfr_open_count(bitmap, 11, before, NULL));
  CHECK_STATUS(LFR_OK, lfr_open_count(NULL, 0, before, &n_open));
  CHECK_STATUS(LFR_OK, lfr_open_count(bitmap, 11, before, &n_open));
  CHECK(n_open == 3 && before[0] == 0, "%" PRIu32 " open items", n_open);
  const lfr_open open = {bitmap, before, 11, n_open}, no_bitmap = {NULL, before, 11, 3},
                 no_counts = {bitmap, NULL, 11, 3};
  CHECK_STATUS(LFR_OK, lfr_open_rows(&open, &within, 1, &row));
  CHECK_STATUS(LFR_ERR_INDEX, lfr_open_rows(&open, &beyond, 1, &row));
  CHECK_STATUS(LFR_ERR_NULL, lfr_open_rows(NULL, &within, 1, &row));
  CHECK_STATUS(LFR_ERR_NULL, lfr_open_rows(&open, NULL, 1, &row));
  CHECK_STATUS(LFR_OK, lfr_topk_open(rows, 4, 8, query, NULL, NULL, &open, 1, hits, &n_hits));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_topk_open(rows, 3, 8, query, NULL, NULL, &open, 1, hits, &n_hits));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_topk_open(rows, 0, 8, query, NULL, NULL, &open, 1, hits, &n_hits));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_topk_batch_open(rows, 5, 8, query, 1, NULL, NULL, &open, 1, hits, &n_hits));
  CHECK_STATUS(LFR_ERR_NULL, lfr_topk_open(rows, 4, 8, query, NULL, NULL, &no_bitmap, 1, hits, &n_hits));
  CHECK_STATUS(LFR_ERR_NULL, lfr_topk_batch_open(rows, 4, 8, query, 1, NULL, NULL, &no_counts, 1, hits, &n_hits));
  const lfr_temperature temperature = {14773, 56056, 76619};
  uint16_t distances[4];
  uint8_t code[1] = {7};
  CHECK_STATUS(LFR_OK, lfr_refine_open(rows, 4, 8, (1 << 24) - 3, rows, NULL, 1, &temperature, 1, distances, code));
  CHECK_STATUS(LFR_ERR_COUNT,
               lfr_refine_open(rows, 4, 8, (1 << 24) - 2, rows, NULL, 1, &temperature, 1, distances, code));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_refine_open(rows, 4, 8, UINT32_MAX, rows, NULL, 1, &temperature, 1, distances, code));
}

/* Elsewhere a size has room for the sum anyway, and half a gigabyte is too much for nothing. */
static void test_largest_bitmap(void) {
  if (sizeof(size_t) > 4) return;
  const uint32_t n_items = UINT32_MAX, last = n_items - 1;
  uint8_t* bitmap = calloc((size_t)1 << 29, 1);
  uint32_t *before = exact((n_items / LFR_OPEN_BLOCK + 1) * sizeof *before), n_open = 0, row = 0;
  CHECK(bitmap != NULL, "no memory for the largest bitmap");
  if (bitmap) {
    bitmap[0] = 1;
    bitmap[last / 8] |= (uint8_t)(1u << (last % 8));
    CHECK_STATUS(LFR_OK, lfr_open_count(bitmap, n_items, before, &n_open));
    CHECK(n_open == 2, "%" PRIu32 " open items", n_open);
    const lfr_open open = {bitmap, before, n_items, n_open};
    CHECK_STATUS(LFR_OK, lfr_open_rows(&open, &last, 1, &row));
    CHECK(row == 1, "the last item has row %" PRIu32, row);
  }
  free(bitmap);
  free(before);
}

const test open_tests[] = {
    {"searches of open rows give the hits of the full matrix, one query and many", test_searches},
    {"rows, codes and gram of open rows are those of the full matrix", test_rows_and_gram},
    {"a code refined against open rows is that of the full matrix", test_refine},
    {"on 32-bit machines too, a bitmap may have the most items", test_largest_bitmap},
    {"open rows refuse bitmaps with a dirty end, other numbers of rows, indices and pointers", test_status},
    {NULL, NULL}};
