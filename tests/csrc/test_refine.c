/* The refinement of a user code, against the definition in lfr.h written with signs and without any table. */
#include "test.h"

static void check_refine(const refinement* at, uint32_t max_sweeps) {
  uint8_t *start = random_codes(1, at->f), *expected = exact_odd(at->f / 8), *code = exact_odd(at->f / 8);
  uint16_t* distances = exact(at->n_items * sizeof *distances);
  memcpy(expected, start, at->f / 8);
  naive_refine(at, max_sweeps, expected);
  FOR_EACH_ISA(isa) {
    memcpy(code, start, at->f / 8);
    CHECK_STATUS(LFR_OK, lfr_refine(at->items, at->n_items, at->f, at->rows, at->weights, at->n_rows, &at->temperature,
                                    max_sweeps, distances, code));
    CHECK(!memcmp(code, expected, at->f / 8), "%s, f %" PRIu32 ", %" PRIu32 " items", isa, at->f, at->n_items);
  }
  free(distances);
  free_odd(code);
  free_odd(expected);
  free_odd(start);
}

static void refine_once(uint32_t n_items, uint32_t f, uint32_t n_rows, int weighted, lfr_temperature temperature) {
  refinement at = {n_items, f, n_rows, random_codes(n_items, f), random_codes(n_rows, f), NULL, temperature};
  uint16_t* weights = exact(n_rows * sizeof *weights);
  for (uint32_t i = 0; i < n_rows; i++) weights[i] = (uint16_t)random_below(weighted > 1 ? 65536 : 700);
  if (weighted) at.weights = weights;
  check_refine(&at, 1);
  check_refine(&at, 7);
  free(weights);
  free_odd(at.rows);
  free_odd(at.items);
}

static void test_refine(void) {
  const lfr_temperature temperatures[] = {{14773, 56056, 76619}, {5909, 61565, 69763}, {1 << 20, 1, 131072}};
  const uint32_t lengths[] = {8, 24, 64, 72, 128};
  for (size_t b = 0; b < N_ELEMENTS(lengths); b++)
    for (size_t t = 0; t < N_ELEMENTS(temperatures); t++)
      for (int weighted = 0; weighted < 3; weighted++)
        for (uint32_t n = 0; n < 60; n += 19) refine_once(n, lengths[b], n / 3, weighted, temperatures[t]);
}

static void test_nothing_rated(void) {
  uint8_t *items = random_codes(20, 64), *code = random_codes(1, 64), before[8];
  uint16_t distances[20];
  const lfr_temperature temperature = {14773, 56056, 76619};
  memcpy(before, code, 8);
  CHECK_STATUS(LFR_OK, lfr_refine(items, 20, 64, NULL, NULL, 0, &temperature, 5, distances, code));
  CHECK(!memcmp(before, code, 8), "a code was refined toward nothing");
  free_odd(code);
  free_odd(items);
}

/* Then the votes decide alone. NULL is no address to go on from, which the sanitizers see. */
static void test_no_items(void) {
  enum { F = 64, N = 3 };
  uint8_t *rows = random_codes(N, F), *code = random_codes(1, F);
  const lfr_temperature temperature = {14773, 56056, 76619};
  CHECK_STATUS(LFR_OK, lfr_refine(NULL, 0, F, rows, NULL, N, &temperature, 5, NULL, code));
  for (uint32_t k = 0; k < F; k++) {
    const int votes = sign_at(rows, k) + sign_at(rows, F + k) + sign_at(rows, 2 * F + k);
    CHECK(sign_at(code, k) == (votes > 0 ? 1 : -1), "bit %" PRIu32 " does not follow %d votes", k, votes);
  }
  free_odd(code);
  free_odd(rows);
}

static void test_refine_status(void) {
  uint8_t items[16] = {0}, code[8] = {0};
  uint16_t distances[2];
  const lfr_temperature good = {14773, 56056, 76619};
  const lfr_temperature bad[] = {{0, 56056, 76619},     {(1 << 20) + 1, 56056, 76619}, {14773, 0, 76619},
                                 {14773, 65536, 76619}, {14773, 56056, 65536},         {14773, 56056, 131073}};
  for (size_t i = 0; i < N_ELEMENTS(bad); i++)
    CHECK_STATUS(LFR_ERR_VALUE, lfr_refine(items, 2, 64, items, NULL, 1, &bad[i], 1, distances, code));
  CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_refine(items, 2, 60, items, NULL, 1, &good, 1, distances, code));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_refine(items, 2, 64, items, NULL, 1, &good, 0, distances, code));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_refine(items, (1 << 24) + 1, 64, items, NULL, 1, &good, 1, distances, code));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_refine(items, 2, 64, items, NULL, (1 << 24) + 1, &good, 1, distances, code));
  CHECK_STATUS(LFR_ERR_NULL, lfr_refine(NULL, 2, 64, items, NULL, 1, &good, 1, distances, code));
  CHECK_STATUS(LFR_ERR_NULL, lfr_refine(items, 2, 64, NULL, NULL, 1, &good, 1, distances, code));
  CHECK_STATUS(LFR_ERR_NULL, lfr_refine(items, 2, 64, items, NULL, 1, NULL, 1, distances, code));
  CHECK_STATUS(LFR_ERR_NULL, lfr_refine(items, 2, 64, items, NULL, 1, &good, 1, NULL, code));
  CHECK_STATUS(LFR_ERR_NULL, lfr_refine(items, 2, 64, items, NULL, 1, &good, 1, distances, NULL));
}

const test refine_tests[] = {
    {"a refined code equals the definition on every variant", test_refine},
    {"a refinement without ratings changes nothing", test_nothing_rated},
    {"a refinement without items follows the ratings", test_no_items},
    {"a refinement refuses bad temperatures, counts, lengths and pointers", test_refine_status},
    {NULL, NULL}};
