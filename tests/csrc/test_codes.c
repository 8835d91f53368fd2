/* Signs, bits and rows against the definitions in lfr.h. */
#include "test.h"

static void test_pack(void) {
  for (size_t n = 0; n <= 1024; n += 8) {
    int8_t *signs = exact(n), *back = exact(n);
    uint8_t* codes = exact_odd(n / 8);
    for (size_t i = 0; i < n; i++) signs[i] = random_below(2) ? 1 : -1;
    CHECK_STATUS(LFR_OK, lfr_pack(signs, n, codes));
    for (size_t i = 0; i < n; i++) CHECK(sign_at(codes, i) == signs[i], "bit %zu of %zu", i, n);
    CHECK_STATUS(LFR_OK, lfr_unpack(codes, n, back));
    CHECK(n == 0 || !memcmp(signs, back, n), "%zu signs did not come back", n);
    free_odd(codes);
    free(back);
    free(signs);
  }
}

static void test_gather(void) {
  for (size_t b = 0; b < n_all_code_bits; b++) {
    enum { N_ITEMS = 37, N_ROWS = 90 };
    const uint32_t f = all_code_bits[b];
    const size_t code_bytes = f / 8;
    uint8_t *items = random_codes(N_ITEMS, f), *rows = exact_odd(N_ROWS * code_bytes);
    uint32_t indices[N_ROWS];
    for (int i = 0; i < N_ROWS; i++) indices[i] = i ? random_below(N_ITEMS) : N_ITEMS - 1;
    CHECK_STATUS(LFR_OK, lfr_gather(items, N_ITEMS, f, indices, N_ROWS, rows));
    for (int i = 0; i < N_ROWS; i++)
      CHECK(!memcmp(rows + i * code_bytes, items + indices[i] * code_bytes, code_bytes), "row %d, %" PRIu32 " bits", i,
            f);
    free_odd(rows);
    free_odd(items);
  }
}

const test code_tests[] = {{"pack and unpack follow the bit order of lfr.h and undo each other", test_pack},
                           {"gather copies the rows asked for", test_gather},
                           {NULL, NULL}};
