/* The user fit against its definition in lfr.h, written with signs and plain loops. */
#include "test.h"

static void check_sweeps(const fit_problem* problem, uint32_t max_sweeps, const uint8_t* start) {
  int8_t expected[LFR_MAX_CODE_BITS];
  uint32_t sweeps = 0, differ = 0;
  int64_t loss = 0;
  uint8_t* code = exact_odd(problem->f / 8);
  memcpy(code, start, problem->f / 8);
  for (uint32_t k = 0; k < problem->f; k++) expected[k] = (int8_t)sign_at(start, k);
  const uint32_t expected_sweeps = naive_sweeps(problem, max_sweeps, expected);
  CHECK_STATUS(LFR_OK, lfr_fit_sweep(problem->Q, problem->l, problem->f, max_sweeps, code, &sweeps, &loss));
  for (uint32_t k = 0; k < problem->f; k++) differ += sign_at(code, k) != expected[k];
  CHECK(differ == 0, "%" PRIu32 " of %" PRIu32 " bits differ after %" PRIu32 " sweeps", differ, problem->f, sweeps);
  CHECK(sweeps == expected_sweeps, "%" PRIu32 " sweeps, not %" PRIu32, sweeps, expected_sweeps);
  CHECK(loss == naive_loss(problem, expected), "loss %" PRId64 ", not %" PRId64, loss, naive_loss(problem, expected));
  free_odd(code);
}

static void check_prepare(const fit_problem* problem) {
  const size_t bytes = (size_t)problem->f * problem->f * sizeof(int64_t);
  int64_t *quadratic = exact(bytes), *linear = exact(problem->f * sizeof *linear);
  naive_prepare(problem);
  FOR_EACH_ISA(isa) {
    CHECK_STATUS(LFR_OK, lfr_fit_prepare(&problem->terms, quadratic, linear));
    CHECK(!memcmp(quadratic, problem->Q, bytes), "%s: quadratic of %" PRIu32 " rows of %" PRIu32 " bits", isa,
          problem->terms.n_rows, problem->f);
    CHECK(!memcmp(linear, problem->l, problem->f * sizeof *linear),
          "%s: linear of %" PRIu32 " rows of %" PRIu32 " bits", isa, problem->terms.n_rows, problem->f);
  }
  free(linear);
  free(quadratic);
}

/* Bits of `which`: 1 weights, 2 gram, 4 extra and column sums, 8 balance. */
static void fit_once(uint32_t f, uint32_t n, uint32_t which) {
  uint8_t *rows = random_codes(n, f), *catalogue = random_codes(20, f), *start = random_codes(1, f);
  int32_t* targets = exact(n * sizeof *targets);
  uint16_t* weights = exact(n * sizeof *weights);
  int64_t *gram = exact((size_t)f * f * sizeof *gram), *extra = exact(f * sizeof *extra);
  fit_problem problem = {f,
                         {.code_bits = f, .n_rows = n, .rows = rows, .targets = targets},
                         exact((size_t)f * f * sizeof(int64_t)),
                         exact(f * sizeof(int64_t))};
  for (uint32_t i = 0; i < n; i++) {
    targets[i] = (int32_t)random_between(-1000, 1000);
    weights[i] = (uint16_t)(random_below(4) ? random_below(300) : random_below(2) * 65535);
  }
  naive_gram(catalogue, 20, f, NULL, gram);
  for (uint32_t k = 0; k < f; k++) extra[k] = random_between(-5000, 5000);
  problem.terms.row_factor = random_between(0, 30);
  problem.terms.target_factor = random_between(-3, 30);
  problem.terms.gram_factor = random_between(-2, 30);
  if (which & 1) problem.terms.weights = weights;
  if (which & 2) problem.terms.gram = gram;
  if (which & 4) problem.terms.extra = extra, problem.terms.column_sums = gram;
  problem.terms.column_factor = random_between(-9, 9);
  if (which & 8) problem.terms.balance = random_between(1, 50);
  check_prepare(&problem);
  check_sweeps(&problem, 1, start);
  check_sweeps(&problem, 30, start);
  free(problem.l);
  free(problem.Q);
  free(extra);
  free(gram);
  free(weights);
  free(targets);
  free_odd(start);
  free_odd(catalogue);
  free_odd(rows);
}

static void test_fit(void) {
  uint32_t which = 0;
  for (size_t b = 0; b < n_all_code_bits; b++)
    for (size_t c = 0; c < n_row_counts; c++, which++)
      if (!oracle_is_too_slow(all_code_bits[b], row_counts[c])) fit_once(all_code_bits[b], row_counts[c], which % 16);
  for (which = 0; which < 16; which++) fit_once(64, 166, which);
}

/* With nothing to fit every g is zero, and with one pair of bits that want to differ only the first may flip. */
static void test_zero_keeps_the_bit(void) {
  enum { F = 64 };
  int64_t quadratic[F * F] = {0}, linear[F] = {0};
  uint8_t start[F / 8], code[F / 8];
  random_bytes(start, sizeof start);
  memcpy(code, start, sizeof code);
  uint32_t sweeps = 0;
  CHECK_STATUS(LFR_OK, lfr_fit_sweep(quadratic, linear, F, 9, code, &sweeps, NULL));
  CHECK(!memcmp(code, start, sizeof code) && sweeps == 1, "a fit to nothing changed the code");
  start[0] |= 3;
  memcpy(code, start, sizeof code);
  quadratic[1] = quadratic[F] = 5;
  CHECK_STATUS(LFR_OK, lfr_fit_sweep(quadratic, linear, F, 9, code, &sweeps, NULL));
  start[0] &= 0xfe;
  CHECK(!memcmp(code, start, sizeof code) && sweeps == 2, "bit 0 should flip, and bit 1 see it");
}

/* Rows of weight zero count for nothing, and do not let a factor through that could overflow. */
static void test_zero_weights(void) {
  enum { F = 64, N = 70 };
  uint8_t* rows = random_codes(N, F);
  const uint16_t weights[N] = {0};
  int32_t targets[N];
  int64_t quadratic[F * F], linear[F];
  for (int i = 0; i < N; i++) targets[i] = i % 2 ? INT32_MAX : INT32_MIN;
  lfr_fit_terms terms = {.code_bits = F,
                         .n_rows = N,
                         .rows = rows,
                         .targets = targets,
                         .weights = weights,
                         .row_factor = INT64_C(1) << 47,
                         .target_factor = -(INT64_C(1) << 53),
                         .balance = 3};
  CHECK_STATUS(LFR_OK, lfr_fit_prepare(&terms, quadratic, linear));
  for (int i = 0; i < F * F; i++) CHECK(quadratic[i] == 3, "entry %d is %" PRId64, i, quadratic[i]);
  for (int i = 0; i < F; i++) CHECK(linear[i] == 0, "linear %d is %" PRId64, i, linear[i]);
  terms.row_factor = INT64_MAX;
  CHECK_STATUS(LFR_ERR_OVERFLOW, lfr_fit_prepare(&terms, quadratic, linear));
  terms.row_factor = 0;
  terms.target_factor = INT64_MIN;
  CHECK_STATUS(LFR_ERR_OVERFLOW, lfr_fit_prepare(&terms, quadratic, linear));
  free_odd(rows);
}

static void test_diagonal_is_ignored(void) {
  const int64_t diagonals[] = {1, INT64_MAX, INT64_MIN};
  enum { F = 72 };
  static int64_t Q[F * F], l[F];
  const fit_problem problem = {F, {.code_bits = F}, Q, l};
  uint8_t* start = random_codes(1, F);
  for (uint32_t j = 0; j < F; j++) l[j] = random_between(-50, 50);
  for (uint32_t j = 0; j < F; j++)
    for (uint32_t k = 0; k < j; k++) Q[j * F + k] = Q[k * F + j] = random_between(-20, 20);
  for (size_t i = 0; i < N_ELEMENTS(diagonals); i++) {
    for (uint32_t k = 0; k < F; k++) Q[k * F + k] = diagonals[i];
    check_sweeps(&problem, 30, start);
  }
  free_odd(start);
}

const test fit_tests[] = {{"a fit equals the definition, with and without each term", test_fit},
                          {"a zero vote keeps the bit, and later bits see earlier flips", test_zero_keeps_the_bit},
                          {"rows of weight zero count for nothing and hide no overflow", test_zero_weights},
                          {"a sweep ignores the diagonal, whatever stands there", test_diagonal_is_ignored},
                          {NULL, NULL}};
