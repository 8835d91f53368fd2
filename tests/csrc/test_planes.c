/* Gram and column sums against their definition in lfr.h, written with signs and plain loops. */
#include "test.h"

const uint32_t row_counts[] = {0, 1, 7, 63, 64, 65, 128, 166, 255, 256, 257, 600};
const size_t n_row_counts = N_ELEMENTS(row_counts);

/* An oracle of f * f * n steps is left out beyond this many, to keep the run short under an emulator. */
#define MAX_ORACLE_STEPS (80 * 1000 * 1000)

int oracle_is_too_slow(uint32_t f, uint32_t n) { return (uint64_t)f * f * n > MAX_ORACLE_STEPS; }

static void check_gram(uint32_t f, uint32_t n) {
  const size_t bytes = (size_t)f * f * sizeof(int64_t);
  uint8_t* items = random_codes(n, f);
  int64_t *expected = exact(bytes), *gram = exact(bytes), *column_sums = exact(f * sizeof *column_sums);
  naive_gram(items, n, f, NULL, expected);
  FOR_EACH_ISA(isa) {
    CHECK_STATUS(LFR_OK, lfr_gram(items, n, f, gram, column_sums));
    CHECK(!memcmp(gram, expected, bytes), "%s: gram of %" PRIu32 " rows of %" PRIu32 " bits", isa, n, f);
    for (uint32_t k = 0; k < f; k++) {
      int64_t sum = 0;
      for (uint32_t i = 0; i < n; i++) sum += sign_at(items + (size_t)i * (f / 8), k);
      CHECK(column_sums[k] == sum, "%s: column %" PRIu32 " of %" PRIu32 " rows of %" PRIu32 " bits", isa, k, n, f);
    }
  }
  free(column_sums);
  free(gram);
  free(expected);
  free_odd(items);
}

static void test_gram(void) {
  for (size_t b = 0; b < n_all_code_bits; b++)
    for (size_t c = 0; c < n_row_counts; c++)
      if (!oracle_is_too_slow(all_code_bits[b], row_counts[c])) check_gram(all_code_bits[b], row_counts[c]);
}

const test plane_tests[] = {{"gram and column sums equal sums of products of signs", test_gram}, {NULL, NULL}};
