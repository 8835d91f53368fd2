/* The refinement of a user code, against the definition in lfr.h written with signs and without any table. */
#include "test.h"

typedef struct refinement {
  uint32_t n_items, f, n_rows;
  uint8_t *items, *rows;
  uint16_t* weights; /* or NULL */
  lfr_temperature temperature;
} refinement;

static uint32_t naive_distance(const uint8_t* a, const uint8_t* b, uint32_t f) {
  uint32_t distance = 0;
  for (uint32_t k = 0; k < f; k++) distance += sign_at(a, k) != sign_at(b, k);
  return distance;
}

static uint64_t mass_at(uint32_t distance, uint32_t down) {
  uint64_t mass = UINT64_C(1) << 30;
  while (distance--) mass = mass * down >> 16;
  return mass;
}

/* The largest y with 2^(y / 65536) <= x as 16 squarings see it: the fraction bits come one by one. */
static int64_t naive_log2(uint64_t x) {
  int whole = 0;
  while (x >> whole > 1) whole++;
  uint64_t mantissa = whole >= 31 ? x >> (whole - 31) : x << (31 - whole);
  int64_t fraction = 0;
  for (int i = 0; i < 16; i++) {
    mantissa = (mantissa * mantissa) >> 31;
    fraction *= 2;
    if (mantissa >= UINT64_C(1) << 32) {
      mantissa /= 2;
      fraction++;
    }
  }
  return (int64_t)whole * 65536 + fraction;
}

static int naive_gains(const refinement* at, const uint8_t* code, uint32_t k) {
  uint64_t same = 0, differ = 0;
  int64_t votes = 0, total = 0;
  for (uint32_t i = 0; i < at->n_items; i++) {
    const uint8_t* row = at->items + (size_t)i * (at->f / 8);
    const uint64_t mass = mass_at(naive_distance(row, code, at->f), at->temperature.down);
    if (sign_at(row, k) == sign_at(code, k))
      same += mass;
    else
      differ += mass;
  }
  for (uint32_t i = 0; i < at->n_rows; i++) {
    const int64_t weight = at->weights ? at->weights[i] : 1;
    votes += weight * sign_at(at->rows + (size_t)i * (at->f / 8), k);
    total += weight;
  }
  const uint64_t now = same + differ;
  const uint64_t then = ((same >> 8) * at->temperature.down + (differ >> 8) * at->temperature.up) >> 8;
  const int64_t change = now && then ? naive_log2(then) - naive_log2(now) : 0;
  return -at->temperature.step * sign_at(code, k) * votes - total * change > 0;
}

static void naive_refine(const refinement* at, uint32_t max_sweeps, uint8_t* code) {
  for (uint32_t sweep = 0; sweep < max_sweeps; sweep++) {
    int flips = 0;
    for (uint32_t k = 0; k < at->f; k++)
      if (naive_gains(at, code, k)) code[k / 8] ^= (uint8_t)(1 << (k % 8)), flips++;
    if (!flips) break;
  }
}

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
    {"a refinement refuses bad temperatures, counts, lengths and pointers", test_refine_status},
    {NULL, NULL}};
