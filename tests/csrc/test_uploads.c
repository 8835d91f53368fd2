/* What a device uploads and what a server adds up, against the definitions in lfr.h. */
#include "test.h"

/* ---- uploads ----------------------------------------------------------------------------------------------- */

static void check_gradients(uint32_t f, uint32_t n, int32_t scale, int64_t most) {
  uint8_t *rows = random_codes(n, f), *code = random_codes(1, f);
  int32_t *targets = exact(n * sizeof *targets), *gradients = exact((size_t)n * f * sizeof *gradients);
  for (uint32_t i = 0; i < n; i++) targets[i] = (int32_t)(i ? random_between(-most, most) : -most);
  if (n) memcpy(rows, code, f / 8); /* the greatest similarity there is */
  CHECK_STATUS(LFR_OK, lfr_row_gradients(rows, n, f, code, targets, scale, gradients));
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t* row = rows + (size_t)i * (f / 8);
    int64_t similarity = 0;
    for (uint32_t k = 0; k < f; k++) similarity += sign_at(code, k) * sign_at(row, k);
    for (uint32_t k = 0; k < f; k++) {
      const int64_t expected = (targets[i] - scale * similarity) * sign_at(code, k) + scale * (int64_t)sign_at(row, k);
      CHECK(gradients[(size_t)i * f + k] == expected, "element %" PRIu32 " of row %" PRIu32 ", %" PRIu32 " bits", k, i,
            f);
    }
  }
  free(gradients);
  free(targets);
  free_odd(code);
  free_odd(rows);
}

static void test_row_gradients(void) {
  for (size_t b = 0; b < n_all_code_bits; b++)
    for (uint32_t n = 0; n < 70; n += 23) {
      check_gradients(all_code_bits[b], n, 1, 100);
      check_gradients(all_code_bits[b], n, 1 << 19, 1 << 30);
    }
}

/* Rows of 8 elements, added to the matrix in reverse order. sums[j] starts at j - 7. */
static void check_ternary_add(const uint8_t* nonzero, const uint8_t* positive, uint32_t n_rows, int32_t* sums) {
  uint32_t* indices = exact(n_rows * sizeof *indices);
  for (uint32_t i = 0; i < n_rows; i++) indices[i] = n_rows - 1 - i;
  CHECK_STATUS(LFR_OK, lfr_ternary_add(nonzero, positive, indices, n_rows, 8, n_rows, sums));
  for (size_t i = 0; i < (size_t)n_rows * 8; i++) {
    const size_t place = (size_t)indices[i / 8] * 8 + i % 8;
    const int32_t added = (sign_at(nonzero, i) > 0) * sign_at(positive, i);
    CHECK(sums[place] == (int32_t)place - 7 + added, "sum %zu", place);
  }
  free(indices);
}

static void check_ternary(const int32_t* gradients, size_t n, int32_t full, const uint8_t* random) {
  uint8_t *nonzero = exact_odd(n / 8), *positive = exact_odd(n / 8);
  int32_t* sums = exact(n * sizeof *sums);
  CHECK_STATUS(LFR_OK, lfr_ternary(gradients, n, full, random, nonzero, positive));
  for (size_t i = 0; i < n; i++) {
    const int expected = naive_ternary(gradients[i], full, random[2 * i] + 256 * random[2 * i + 1]);
    CHECK((sign_at(nonzero, i) > 0) == (expected != 0) && (sign_at(positive, i) > 0) == (expected > 0),
          "element %zu, g %" PRId32 ", full %" PRId32, i, gradients[i], full);
    sums[i] = (int32_t)i - 7;
  }
  check_ternary_add(nonzero, positive, (uint32_t)(n / 8), sums);
  free(sums);
  free_odd(positive);
  free_odd(nonzero);
}

static void test_ternary(void) {
  const int32_t fulls[] = {1, 24, 64, 1000, 1 << 24}, edges[] = {0, 1, -1, INT32_MAX, INT32_MIN, 1 << 24, -(1 << 24)};
  for (size_t n = 0; n <= 512; n += 8)
    for (size_t c = 0; c < N_ELEMENTS(fulls); c++) {
      int32_t* gradients = exact(n * sizeof *gradients);
      uint8_t* random = exact_odd(2 * n);
      random_bytes(random, 2 * n);
      for (size_t i = 0; i < n; i++) {
        gradients[i] = (int32_t)random_between(-fulls[c], fulls[c]);
        if (i % 3 == 0) gradients[i] = edges[random_below(N_ELEMENTS(edges))];
        if (i % 5 == 0) random[2 * i] = random[2 * i + 1] = (uint8_t)(i % 2 ? 0 : 255);
      }
      check_ternary(gradients, n, fulls[c], random);
      free_odd(random);
      free(gradients);
    }
}

/* Over every random number once, a full of a power of two keeps exactly the share |g| / full. */
static void test_ternary_is_unbiased(void) {
  enum { DRAWS = 65536, FULL = 64 };
  int32_t* gradients = exact(DRAWS * sizeof *gradients);
  uint8_t *random = exact(2 * DRAWS), *nonzero = exact(DRAWS / 8), *positive = exact(DRAWS / 8);
  for (int32_t u = 0; u < DRAWS; u++) random[2 * u] = (uint8_t)(u & 255), random[2 * u + 1] = (uint8_t)(u >> 8);
  for (int32_t g = -FULL - 1; g <= FULL + 1; g++) {
    const int32_t size = g < 0 ? -g : g, share = size > FULL ? FULL : size;
    int32_t sum = 0;
    for (int32_t u = 0; u < DRAWS; u++) gradients[u] = g;
    CHECK_STATUS(LFR_OK, lfr_ternary(gradients, DRAWS, FULL, random, nonzero, positive));
    for (size_t i = 0; i < DRAWS; i++) sum += (sign_at(nonzero, i) > 0) * sign_at(positive, i);
    CHECK(sum == (g < 0 ? -1 : 1) * share * (DRAWS / FULL), "g %" PRId32 " sums to %" PRId32, g, sum);
  }
  free(positive);
  free(nonzero);
  free(random);
  free(gradients);
}

/* ---- aggregation ------------------------------------------------------------------------------------------- */

static void check_aggregate(size_t n, uint32_t shift) {
  const int32_t edges[] = {0, 1, -1, 15, -15, 16, -16, 17, -17, INT32_MAX, INT32_MIN};
  int32_t *sums = exact(n * sizeof *sums), *memory = exact(n * sizeof *memory), *before = exact(n * sizeof *before);
  uint8_t *codes = exact_odd(n / 8), *old_codes = exact_odd(n / 8);
  random_bytes(codes, n / 8);
  memcpy(old_codes, codes, n / 8);
  for (size_t i = 0; i < n; i++) {
    before[i] = random_below(2) ? edges[random_below(N_ELEMENTS(edges))] : (int32_t)random_between(-9999, 9999);
    sums[i] = random_below(2) ? edges[random_below(N_ELEMENTS(edges))] : (int32_t)random_between(-9, 9);
    if (i % 4 == 0) sums[i] = before[i] = 0;
    memory[i] = before[i];
  }
  CHECK_STATUS(LFR_OK, lfr_aggregate(sums, n, shift, memory, codes));
  for (size_t i = 0; i < n; i++) {
    const int64_t expected = naive_memory(before[i], shift, sums[i]);
    const int sign = expected > 0 ? 1 : expected < 0 ? -1 : sign_at(old_codes, i);
    CHECK(memory[i] == expected, "memory %" PRId32 ", not %" PRId64 ", from %" PRId32 " >> %" PRIu32 " and %" PRId32,
          memory[i], expected, before[i], shift, sums[i]);
    CHECK(sign_at(codes, i) == sign, "bit %zu for memory %" PRId32, i, memory[i]);
  }
  free_odd(old_codes);
  free_odd(codes);
  free(before);
  free(memory);
  free(sums);
}

static void test_aggregate(void) {
  for (uint32_t shift = 0; shift < 32; shift++)
    for (size_t n = 0; n <= 1024; n += 128) check_aggregate(n, shift);
}

const test upload_tests[] = {
    {"row gradients equal the definition up to the greatest scale and target", test_row_gradients},
    {"ternary rows equal the definition and add up", test_ternary},
    {"ternary rounding is unbiased over all random numbers", test_ternary_is_unbiased},
    {"aggregation decays rounding down, saturates, and keeps bits at zero", test_aggregate},
    {NULL, NULL}};
