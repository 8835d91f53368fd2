/* Every status of lfr.h, provoked on purpose, and the choice of the instruction set. */
#include "test.h"

enum { F = 64, CODE_BYTES = F / 8, N = 3, LENGTHS = 5 };

static const uint32_t bad_code_bits[LENGTHS] = {0, 4, 12, 1032, UINT32_MAX};
static uint8_t items[N * CODE_BYTES], code[CODE_BYTES], query[CODE_BYTES];
static int64_t gram[F * F], vector[F];

/* Runs first: nothing else has used the library yet. */
static void test_environment(void) {
  CHECK(lfr_isa_selected() == LFR_ISA_PORTABLE, "LIGHTFR_ISA=portable selected %s", lfr_isa_name(lfr_isa_selected()));
}

static void test_isa(void) {
  CHECK(lfr_abi_version() == LFR_ABI_VERSION, "the ABI version is %" PRIu32, lfr_abi_version());
  CHECK(lfr_isa_supported(LFR_ISA_PORTABLE), "portable is not supported");
  for (int isa = -2; isa < 6; isa++) {
    const int known = isa >= LFR_ISA_PORTABLE && isa <= LFR_ISA_NEON;
    CHECK((lfr_isa_name(isa) != NULL) == known, "the name of %d", isa);
    CHECK(known || !lfr_isa_supported(isa), "%d is supported", isa);
    CHECK_STATUS(LFR_OK, lfr_isa_select(LFR_ISA_PORTABLE));
    CHECK_STATUS(lfr_isa_supported(isa) ? LFR_OK : LFR_ERR_ISA, lfr_isa_select(isa));
    CHECK(lfr_isa_selected() == (lfr_isa_supported(isa) ? isa : LFR_ISA_PORTABLE), "after selecting %d", isa);
  }
}

static void test_search_status(void) {
  lfr_hit hits[2];
  uint32_t n_hits[2];
  uint16_t distances[N];
  for (int i = 0; i < LENGTHS; i++) {
    const uint32_t bits = bad_code_bits[i];
    CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_topk(items, N, bits, query, NULL, 1, hits, n_hits));
    CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_topk_batch(items, N, bits, query, 1, NULL, 1, hits, n_hits));
    CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_distances(items, N, bits, query, distances));
  }
  CHECK_STATUS(LFR_ERR_NULL, lfr_distances(NULL, N, F, query, distances));
  CHECK_STATUS(LFR_ERR_NULL, lfr_distances(items, N, F, NULL, distances));
  CHECK_STATUS(LFR_ERR_NULL, lfr_distances(items, N, F, query, NULL));
  CHECK_STATUS(LFR_ERR_NULL, lfr_topk(NULL, N, F, query, NULL, 1, hits, n_hits));
  CHECK_STATUS(LFR_ERR_NULL, lfr_topk(items, N, F, NULL, NULL, 1, hits, n_hits));
  CHECK_STATUS(LFR_ERR_NULL, lfr_topk(items, N, F, query, NULL, 1, NULL, n_hits));
  CHECK_STATUS(LFR_ERR_NULL, lfr_topk(items, N, F, query, NULL, 1, hits, NULL));
  CHECK_STATUS(LFR_ERR_NULL, lfr_topk_batch(NULL, N, F, query, 1, NULL, 1, hits, n_hits));
  CHECK_STATUS(LFR_ERR_NULL, lfr_topk_batch(items, N, F, NULL, 1, NULL, 1, hits, n_hits));
  CHECK_STATUS(LFR_ERR_NULL, lfr_topk_batch(items, N, F, query, 1, NULL, 1, NULL, n_hits));
  CHECK_STATUS(LFR_ERR_NULL, lfr_topk_batch(items, N, F, query, 1, NULL, 1, hits, NULL));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_topk(items, N, F, query, NULL, 0, hits, n_hits));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_topk(items, N, F, query, NULL, UINT32_C(1) << 31, hits, n_hits));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_topk_batch(items, N, F, query, 1, NULL, 0, hits, n_hits));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_topk_batch(items, N, F, query, 1, NULL, UINT32_MAX, hits, n_hits));
}

static void test_prior_status(void) {
  lfr_hit hits[2];
  uint32_t n_hits[2];
  const lfr_step good[2] = {{0, 5}, {1, 5}}, late[1] = {{1, 5}}, again[2] = {{0, 5}, {0, 4}},
                 rising[2] = {{0, 5}, {1, 6}};
  const lfr_step high[1] = {{0, LFR_MAX_OFFSET + 1}}, low[1] = {{0, -LFR_MAX_OFFSET - 1}};
  const lfr_step limits[2] = {{0, LFR_MAX_OFFSET}, {1, -LFR_MAX_OFFSET}};
  const struct {
    int status;
    lfr_prior prior;
  } cases[] = {{LFR_OK, {good, 2}},         {LFR_OK, {limits, 2}},        {LFR_ERR_NULL, {NULL, 1}},
               {LFR_ERR_COUNT, {good, 0}},  {LFR_ERR_COUNT, {good, 65}},  {LFR_ERR_VALUE, {late, 1}},
               {LFR_ERR_VALUE, {again, 2}}, {LFR_ERR_VALUE, {rising, 2}}, {LFR_ERR_VALUE, {high, 1}},
               {LFR_ERR_VALUE, {low, 1}}};
  for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
    const lfr_prior* prior = &cases[i].prior;
    CHECK_STATUS(cases[i].status, lfr_topk_prior(items, N, F, query, NULL, prior, 1, hits, n_hits));
    CHECK_STATUS(cases[i].status, lfr_topk_batch_prior(items, N, F, query, 1, NULL, prior, 1, hits, n_hits));
  }
}

static void test_code_status(void) {
  int8_t signs[F];
  uint32_t indices[2] = {0, N};
  uint8_t rows[2 * CODE_BYTES];
  memset(signs, 1, sizeof signs);
  CHECK_STATUS(LFR_ERR_NULL, lfr_pack(NULL, F, code));
  CHECK_STATUS(LFR_ERR_NULL, lfr_pack(signs, F, NULL));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_pack(signs, F - 1, code));
  CHECK_STATUS(LFR_ERR_NULL, lfr_unpack(NULL, F, signs));
  CHECK_STATUS(LFR_ERR_NULL, lfr_unpack(code, F, NULL));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_unpack(code, F - 4, signs));
  for (int bad = -128; bad < 128; bad++) {
    signs[F - 1] = (int8_t)bad;
    CHECK_STATUS(bad == 1 || bad == -1 ? LFR_OK : LFR_ERR_VALUE, lfr_pack(signs, F, code));
  }
  for (int i = 0; i < LENGTHS; i++)
    CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_gather(items, N, bad_code_bits[i], indices, 1, rows));
  CHECK_STATUS(LFR_ERR_NULL, lfr_gather(NULL, N, F, indices, 1, rows));
  CHECK_STATUS(LFR_ERR_NULL, lfr_gather(items, N, F, NULL, 1, rows));
  CHECK_STATUS(LFR_ERR_NULL, lfr_gather(items, N, F, indices, 1, NULL));
  CHECK_STATUS(LFR_ERR_INDEX, lfr_gather(items, N, F, indices, 2, rows));
  indices[1] = UINT32_MAX;
  CHECK_STATUS(LFR_ERR_INDEX, lfr_gather(items, N, F, indices, 2, rows));
}

static void test_fit_status(void) {
  const int32_t targets[N] = {1, 2, 3};
  const lfr_fit_terms good = {.code_bits = F, .n_rows = N, .rows = items, .targets = targets, .row_factor = 1};
  lfr_fit_terms terms = good;
  CHECK_STATUS(LFR_OK, lfr_fit_prepare(&good, gram, vector));
  CHECK_STATUS(LFR_ERR_NULL, lfr_fit_prepare(NULL, gram, vector));
  CHECK_STATUS(LFR_ERR_NULL, lfr_fit_prepare(&good, NULL, vector));
  CHECK_STATUS(LFR_ERR_NULL, lfr_fit_prepare(&good, gram, NULL));
  CHECK_STATUS(LFR_ERR_NULL, (terms.rows = NULL, lfr_fit_prepare(&terms, gram, vector)));
  terms = good;
  CHECK_STATUS(LFR_ERR_NULL, (terms.targets = NULL, lfr_fit_prepare(&terms, gram, vector)));
  terms = good;
  CHECK_STATUS(LFR_ERR_VALUE, (terms.row_factor = -1, lfr_fit_prepare(&terms, gram, vector)));
  terms = good;
  CHECK_STATUS(LFR_ERR_VALUE, (terms.balance = -1, lfr_fit_prepare(&terms, gram, vector)));
  for (int i = 0; i < LENGTHS; i++) {
    terms = good;
    terms.code_bits = bad_code_bits[i];
    CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_fit_prepare(&terms, gram, vector));
    CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_fit_sweep(gram, vector, bad_code_bits[i], 1, code, NULL, NULL));
    CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_gram(items, N, bad_code_bits[i], gram, vector));
  }
  CHECK_STATUS(LFR_ERR_NULL, lfr_fit_sweep(NULL, vector, F, 1, code, NULL, NULL));
  CHECK_STATUS(LFR_ERR_NULL, lfr_fit_sweep(gram, NULL, F, 1, code, NULL, NULL));
  CHECK_STATUS(LFR_ERR_NULL, lfr_fit_sweep(gram, vector, F, 1, NULL, NULL, NULL));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_fit_sweep(gram, vector, F, 0, code, NULL, NULL));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_fit_sweep(gram, vector, F, 65536, code, NULL, NULL));
  CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_fit_start(vector, F + 4, code));
  CHECK_STATUS(LFR_ERR_NULL, lfr_fit_start(NULL, F, code));
  CHECK_STATUS(LFR_ERR_NULL, lfr_fit_start(vector, F, NULL));
  CHECK_STATUS(LFR_ERR_NULL, lfr_gram(NULL, N, F, gram, vector));
  CHECK_STATUS(LFR_ERR_NULL, lfr_gram(items, N, F, NULL, vector));
  CHECK_STATUS(LFR_ERR_NULL, lfr_gram(items, N, F, gram, NULL));
}

/* What is accepted here must also be accepted by the sweep, and stay clean under the sanitizers there. */
static int prepare_and_sweep(const lfr_fit_terms* terms) {
  int64_t loss;
  const int status = lfr_fit_prepare(terms, gram, vector);
  return status == LFR_OK ? lfr_fit_sweep(gram, vector, F, 3, code, NULL, &loss) : status;
}

/* The greatest sizes of an entry and of a linear term that are accepted alone: f (f entry + linear) < 2^61. */
static const int64_t most_entry = (INT64_C(1) << 61) / (F * F) - 1, most_linear = (INT64_C(1) << 61) / F - 1;

/* `*factor`, a field of `terms`, is accepted up to `most`, and refused from the next number on; of either sign. */
static void check_edge(lfr_fit_terms* terms, int64_t* factor, int64_t most) {
  const int64_t away = most < 0 ? -1 : 1;
  for (int64_t beyond = -1; beyond <= 2; beyond++) {
    *factor = most + beyond * away;
    CHECK_STATUS(beyond > 0 ? LFR_ERR_OVERFLOW : LFR_OK, prepare_and_sweep(terms));
  }
  *factor = 0;
}

/* A gram and column sums of -1 and 1 count as 2, for they are looked at coarsely. */
static void test_fit_overflow(void) {
  const int32_t targets[N] = {1, -1, 1};
  const uint16_t weights[N] = {65535, 0, 1};
  static int64_t units[F * F], extra[F];
  for (int i = 0; i < F * F; i++) units[i] = i % 2 ? -1 : 1;
  lfr_fit_terms terms = {.code_bits = F, .n_rows = N, .rows = items, .targets = targets};
  check_edge(&terms, &terms.balance, most_entry);
  check_edge(&terms, &terms.row_factor, most_entry / N);
  check_edge(&terms, &terms.target_factor, most_linear / N);
  check_edge(&terms, &terms.target_factor, -(most_linear / N));
  terms.weights = weights;
  check_edge(&terms, &terms.row_factor, most_entry / 65536);
  check_edge(&terms, &terms.target_factor, most_linear / (N * 65535));
  terms.weights = NULL;
  terms.gram = units;
  check_edge(&terms, &terms.gram_factor, most_entry / 2);
  check_edge(&terms, &terms.gram_factor, -(most_entry / 2));
  terms.column_sums = units;
  check_edge(&terms, &terms.column_factor, -(most_linear / 2));
  terms.extra = extra;
  check_edge(&terms, &extra[F - 1], -most_linear);
  /* One unit decides: a rounded sum of 2^61 - 64 would be 2^61. */
  terms.balance = most_entry;
  check_edge(&terms, &extra[F - 1], 1 - F);
}

/* Bounds whose low 64 bits alone would look small. */
static void test_fit_bounds_do_not_wrap(void) {
  enum { MANY = 1 << 18 };
  static int64_t least[F * F];
  for (int i = 0; i < F * F; i++) least[i] = INT64_MIN;
  const lfr_fit_terms wrapping[] = {
      {.gram = least, .gram_factor = INT64_MIN},                  /* 2^126 */
      {.gram = least, .gram_factor = 2},                          /* 2^64 */
      {.column_sums = least, .column_factor = 1, .extra = least}, /* 2^64 */
      {.row_factor = INT64_MAX, .balance = INT64_MAX},
      {.row_factor = INT64_C(1) << 52},    /* f f entry = 2^64 */
      {.target_factor = INT64_C(1) << 58}, /* f linear = 2^64 */
  };
  for (size_t i = 0; i < N_ELEMENTS(wrapping); i++) {
    lfr_fit_terms terms = wrapping[i];
    terms.code_bits = F;
    CHECK_STATUS(LFR_ERR_OVERFLOW, lfr_fit_prepare(&terms, gram, vector));
  }
  /* n_rows max |w t| = 2^18 * 2^15 * 2^31 = 2^64 */
  uint8_t* rows = exact(MANY * CODE_BYTES);
  int32_t* targets = exact(MANY * sizeof *targets);
  uint16_t* weights = exact(MANY * sizeof *weights);
  memset(rows, 0, MANY * CODE_BYTES);
  for (int i = 0; i < MANY; i++) targets[i] = INT32_MIN, weights[i] = 1 << 15;
  const lfr_fit_terms many = {
      .code_bits = F, .n_rows = MANY, .rows = rows, .targets = targets, .weights = weights, .target_factor = 1};
  CHECK_STATUS(LFR_ERR_OVERFLOW, lfr_fit_prepare(&many, gram, vector));
  free(weights);
  free(targets);
  free(rows);
}

/* A sweep may be given sums that lfr_fit_prepare did not make: f (f entry + linear) < 3 * 2^61. */
static void test_sweep_overflow(void) {
  enum { LEAST_ENTRY = 1, LEAST_LINEAR = 1 }; /* what zeros count as */
  const int64_t limit = (INT64_C(3) << 55) - 1;
  const int64_t entry = (limit - LEAST_LINEAR) / F, linear = limit - F * LEAST_ENTRY;
  const struct {
    int64_t entry, linear;
    int status;
  } cases[] = {
      {-entry, 0, LFR_OK},
      {-entry - 1, 0, LFR_ERR_OVERFLOW},
      {0, -linear, LFR_OK},
      {0, -linear - 1, LFR_ERR_OVERFLOW},
      {-entry, -(limit - F * entry), LFR_OK},
      {-entry, -(limit - F * entry) - 1, LFR_ERR_OVERFLOW},
      {INT64_MIN, 0, LFR_ERR_OVERFLOW},
      {INT64_MAX, 0, LFR_ERR_OVERFLOW},
      {INT64_C(1) << 61, 0, LFR_ERR_OVERFLOW},
      {INT64_C(1) << 52, 0, LFR_ERR_OVERFLOW}, /* f f entry = 2^64 */
      {0, INT64_MIN, LFR_ERR_OVERFLOW},
      {0, INT64_MAX, LFR_ERR_OVERFLOW},
      {0, -(INT64_C(1) << 58), LFR_ERR_OVERFLOW}, /* f linear = 2^64 */
  };
  static int64_t quadratic[F * F], terms[F];
  for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
    int64_t loss;
    /* Once with one number of that size, which must not be overlooked, and once with nothing else. */
    for (int k = 0; k < F * F; k++) quadratic[k] = 0;
    for (int k = 0; k < F; k++) terms[k] = 0;
    quadratic[1] = quadratic[F] = cases[i].entry;
    terms[F - 1] = cases[i].linear;
    CHECK_STATUS(cases[i].status, lfr_fit_sweep(quadratic, terms, F, 3, code, NULL, &loss));
    for (int k = 0; k < F * F; k++) quadratic[k] = cases[i].entry;
    for (int k = 0; k < F; k++) terms[k] = cases[i].linear;
    CHECK_STATUS(cases[i].status, lfr_fit_sweep(quadratic, terms, F, 3, code, NULL, &loss));
  }
}

static void test_upload_status(void) {
  enum { ELEMENTS = 16 };
  int32_t gradients[N * F] = {0}, targets[N] = {0}, sums[ELEMENTS] = {0}, memory[ELEMENTS] = {0};
  uint8_t random[2 * ELEMENTS] = {0}, nonzero[2] = {0xff, 0x7f}, positive[2] = {0, 0x80}, codes[2] = {0};
  for (int i = 0; i < LENGTHS; i++)
    CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_row_gradients(items, N, bad_code_bits[i], code, targets, 1, gradients));
  CHECK_STATUS(LFR_ERR_NULL, lfr_row_gradients(NULL, N, F, code, targets, 1, gradients));
  CHECK_STATUS(LFR_ERR_NULL, lfr_row_gradients(items, N, F, NULL, targets, 1, gradients));
  CHECK_STATUS(LFR_ERR_NULL, lfr_row_gradients(items, N, F, code, NULL, 1, gradients));
  CHECK_STATUS(LFR_ERR_NULL, lfr_row_gradients(items, N, F, code, targets, 1, NULL));
  CHECK_STATUS(LFR_ERR_VALUE, lfr_row_gradients(items, N, F, code, targets, 0, gradients));
  CHECK_STATUS(LFR_ERR_VALUE, lfr_row_gradients(items, N, F, code, targets, -1, gradients));
  CHECK_STATUS(LFR_ERR_VALUE, lfr_row_gradients(items, N, F, code, targets, (1 << 19) + 1, gradients));
  targets[N - 1] = (1 << 30) + 1;
  CHECK_STATUS(LFR_ERR_VALUE, lfr_row_gradients(items, N, F, code, targets, 1, gradients));
  targets[N - 1] = INT32_MIN;
  CHECK_STATUS(LFR_ERR_VALUE, lfr_row_gradients(items, N, F, code, targets, 1, gradients));
  CHECK_STATUS(LFR_ERR_NULL, lfr_ternary(NULL, ELEMENTS, 1, random, nonzero, positive));
  CHECK_STATUS(LFR_ERR_NULL, lfr_ternary(gradients, ELEMENTS, 1, NULL, nonzero, positive));
  CHECK_STATUS(LFR_ERR_NULL, lfr_ternary(gradients, ELEMENTS, 1, random, NULL, positive));
  CHECK_STATUS(LFR_ERR_NULL, lfr_ternary(gradients, ELEMENTS, 1, random, nonzero, NULL));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_ternary(gradients, 12, 1, random, nonzero, positive));
  CHECK_STATUS(LFR_ERR_VALUE, lfr_ternary(gradients, ELEMENTS, 0, random, nonzero, positive));
  CHECK_STATUS(LFR_ERR_VALUE, lfr_ternary(gradients, ELEMENTS, (1 << 24) + 1, random, nonzero, positive));
  const uint32_t index[1] = {0};
  CHECK_STATUS(LFR_ERR_NULL, lfr_ternary_add(NULL, positive, index, 1, ELEMENTS, 1, sums));
  CHECK_STATUS(LFR_ERR_NULL, lfr_ternary_add(nonzero, NULL, index, 1, ELEMENTS, 1, sums));
  CHECK_STATUS(LFR_ERR_NULL, lfr_ternary_add(nonzero, positive, index, 1, ELEMENTS, 1, NULL));
  CHECK_STATUS(LFR_ERR_NULL, lfr_ternary_add(nonzero, positive, NULL, 1, ELEMENTS, 1, sums));
  CHECK_STATUS(LFR_ERR_CODE_BITS, lfr_ternary_add(nonzero, positive, index, 1, 9, 1, sums));
  CHECK_STATUS(LFR_ERR_INDEX, lfr_ternary_add(nonzero, nonzero, index, 1, ELEMENTS, 0, sums));
  CHECK_STATUS(LFR_ERR_VALUE, lfr_ternary_add(nonzero, positive, index, 1, ELEMENTS, 1, sums));
  for (int i = 0; i < ELEMENTS; i++) CHECK(sums[i] == 0, "sum %d was changed before the bad element was seen", i);
  positive[1] = 0;
  CHECK_STATUS(LFR_ERR_OVERFLOW,
               (sums[3] = INT32_MIN, lfr_ternary_add(nonzero, positive, index, 1, ELEMENTS, 1, sums)));
  CHECK_STATUS(LFR_ERR_OVERFLOW, (sums[3] = INT32_MAX, lfr_ternary_add(nonzero, nonzero, index, 1, ELEMENTS, 1, sums)));
  CHECK(sums[0] == 0, "a sum was changed before the one that overflows was seen");
  /* One row named twice: what is left above the sum must hold both. */
  const uint32_t twice[2] = {0, 0};
  const uint8_t all[2] = {0xff, 0xff};
  sums[3] = INT32_MAX - 1;
  CHECK_STATUS(LFR_ERR_OVERFLOW, lfr_ternary_add(all, all, twice, 2, 8, 1, sums));
  CHECK_STATUS(LFR_OK, lfr_ternary_add(all, all, index, 1, 8, 1, sums));
  const uint8_t none[2] = {0, 0};
  sums[3] = INT32_MIN + 1;
  CHECK_STATUS(LFR_ERR_OVERFLOW, lfr_ternary_add(all, none, twice, 2, 8, 1, sums));
  sums[3] = INT32_MIN + 2;
  CHECK_STATUS(LFR_OK, lfr_ternary_add(all, none, twice, 2, 8, 1, sums));
  CHECK(sums[3] == INT32_MIN && sums[0] == -1, "a row named twice is added twice");
  CHECK_STATUS(LFR_ERR_NULL, lfr_aggregate(NULL, ELEMENTS, 4, memory, codes));
  CHECK_STATUS(LFR_ERR_NULL, lfr_aggregate(sums, ELEMENTS, 4, NULL, codes));
  CHECK_STATUS(LFR_ERR_NULL, lfr_aggregate(sums, ELEMENTS, 4, memory, NULL));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_aggregate(sums, ELEMENTS - 1, 4, memory, codes));
  CHECK_STATUS(LFR_ERR_COUNT, lfr_aggregate(sums, ELEMENTS, 32, memory, codes));
}

/* Nothing to do needs no buffers. */
static void test_empty_inputs(void) {
  const lfr_fit_terms none = {.code_bits = F};
  const uint8_t two_queries[2 * CODE_BYTES] = {0};
  uint32_t n_hits[2] = {9, 9};
  FOR_EACH_ISA(isa) {
    CHECK_STATUS(LFR_OK, lfr_topk(NULL, 0, F, query, NULL, 1, NULL, n_hits));
    CHECK(n_hits[0] == 0, "%s: %" PRIu32 " hits among no items", isa, n_hits[0]);
    CHECK_STATUS(LFR_OK, lfr_topk_batch(NULL, 0, F, query, 0, NULL, 1, NULL, NULL));
    n_hits[0] = n_hits[1] = 9;
    CHECK_STATUS(LFR_OK, lfr_topk_batch(NULL, 0, F, two_queries, 2, NULL, 1, NULL, n_hits));
    CHECK(n_hits[0] == 0 && n_hits[1] == 0, "%s: a batch has hits among no items", isa);
    CHECK_STATUS(LFR_OK, lfr_distances(NULL, 0, F, query, NULL));
    CHECK_STATUS(LFR_OK, lfr_gram(NULL, 0, F, gram, vector));
    CHECK_STATUS(LFR_OK, lfr_fit_prepare(&none, gram, vector));
  }
  CHECK_STATUS(LFR_OK, lfr_pack(NULL, 0, NULL));
  CHECK_STATUS(LFR_OK, lfr_unpack(NULL, 0, NULL));
  CHECK_STATUS(LFR_OK, lfr_gather(NULL, 0, F, NULL, 0, NULL));
  CHECK_STATUS(LFR_OK, lfr_row_gradients(NULL, 0, F, code, NULL, 1, NULL));
  CHECK_STATUS(LFR_OK, lfr_ternary(NULL, 0, 1, NULL, NULL, NULL));
  CHECK_STATUS(LFR_OK, lfr_ternary_add(NULL, NULL, NULL, 0, 8, 0, NULL));
  CHECK_STATUS(LFR_OK, lfr_aggregate(NULL, 0, 4, NULL, NULL));
}

const test status_tests[] = {
    {"LIGHTFR_ISA names the variant of the first call", test_environment},
    {"an unknown or absent instruction set is refused and changes nothing", test_isa},
    {"search refuses bad lengths, pointers and k", test_search_status},
    {"search refuses a prior that is none, or whose steps do not fit", test_prior_status},
    {"pack, unpack and gather refuse bad signs, counts and indices", test_code_status},
    {"fit and gram refuse bad lengths, pointers, factors and sweeps", test_fit_status},
    {"each term of a fit is accepted up to the last number below the bound, and refused from the next",
     test_fit_overflow},
    {"a fit whose bound passes 64 bits is refused", test_fit_bounds_do_not_wrap},
    {"a sweep accepts sums up to the last number below its bound, and refuses the next", test_sweep_overflow},
    {"gradients, ternary rows and aggregation refuse bad values, counts and shifts", test_upload_status},
    {"nothing to do is no error and needs no buffers", test_empty_inputs},
    {NULL, NULL}};
