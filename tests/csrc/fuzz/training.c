/* The fit of a user code and its refinement. */
#include "fuzz.h"

enum { ORACLE_STEPS = 40000 }; /* f * f * n of one input: more would be slow and find no more */

static int64_t small_or_any(input* in) { return number(in, 7) ? (int64_t)number(in, 200) - 100 : number64(in); }

static int64_t* small_or_any_numbers(input* in, size_t n) {
  const int is_any = number(in, 7) == 7;
  int64_t* numbers = room(in, n * sizeof *numbers);
  const int64_t any = number64(in);
  for (size_t i = 0; i < n; i++) numbers[i] = (int64_t)number(in, 255) - 128;
  if (is_any && n) numbers[number(in, (uint32_t)n - 1)] = any;
  return numbers;
}

/* ---- the rule by which a fit is refused ---- */

static double size_of(int64_t x) { return x < 0 ? -(double)x : (double)x; }

static double largest(const int64_t* numbers, size_t n) {
  double most = 0;
  for (size_t i = 0; numbers && i < n; i++) most = size_of(numbers[i]) > most ? size_of(numbers[i]) : most;
  return most;
}

/* f (f entry + linear) of lfr_fit_prepare. At `least` 1, a term of zeros counts as one. */
static double bound_of(const lfr_fit_terms* terms, double least) {
  const double f = terms->code_bits;
  double weights = 0, targets = 0;
  for (uint32_t i = 0; i < terms->n_rows; i++) {
    const double weight = terms->weights ? terms->weights[i] : 1, value = weight * size_of(terms->targets[i]);
    weights += weight;
    targets = value > targets ? value : targets;
  }
  const double gram = largest(terms->gram, (size_t)(f * f)), columns = largest(terms->column_sums, (size_t)f);
  const double products = targets * terms->n_rows;
  const double entry = size_of(terms->row_factor) * (weights > least ? weights : least) + size_of(terms->balance) +
                       (terms->gram ? size_of(terms->gram_factor) * (gram > least ? gram : least) : 0);
  const double linear = size_of(terms->target_factor) * (products > least ? products : least) +
                        (terms->column_sums ? size_of(terms->column_factor) * (columns > least ? columns : least) : 0) +
                        (terms->extra ? largest(terms->extra, (size_t)f) + least : 0);
  return f * (f * entry + linear);
}

/* What overflows is refused, and nothing below half the limit is: sizes are looked at coarsely. */
static void require_bound(const lfr_fit_terms* terms, int status) {
  const double limit = (double)(INT64_C(1) << 61), rounding = 1e-9;
  if (status == LFR_OK) REQUIRE(bound_of(terms, 0) <= limit * (1 + rounding));
  if (status == LFR_ERR_OVERFLOW) REQUIRE(bound_of(terms, 1) >= limit / 2 * (1 - rounding));
}

/* ---- fits ---- */

static lfr_fit_terms make_terms(input* in) {
  const uint32_t which = number(in, 255), f = number(in, 63) ? 8 * (1 + few(in, 2, 9)) : code_length(in);
  const size_t squared = is_code_length(f) ? (size_t)f * f : 0;
  lfr_fit_terms terms = {.code_bits = f, .n_rows = few(in, 20, 300)};
  terms.n_rows %= squared && squared < ORACLE_STEPS ? 1 + ORACLE_STEPS / (uint32_t)squared : 2;
  int32_t* targets = content(in, terms.n_rows * sizeof *targets);
  for (uint32_t i = 0; which & 1 && i < terms.n_rows; i++) targets[i] %= 1000;
  terms.rows = perhaps(in, codes(in, terms.n_rows * (squared ? f / 8 : 1)));
  terms.targets = perhaps(in, targets);
  terms.row_factor = small_or_any(in);
  if (which & 2 && terms.row_factor < -1) terms.row_factor = -1 - terms.row_factor;
  terms.target_factor = small_or_any(in);
  terms.gram_factor = small_or_any(in);
  terms.column_factor = small_or_any(in);
  if (which & 4) terms.balance = small_or_any(in);
  if (which & 8) terms.weights = content(in, terms.n_rows * sizeof(uint16_t));
  if (which & 16) terms.gram = small_or_any_numbers(in, squared);
  if (which & 32) terms.column_sums = small_or_any_numbers(in, squared ? f : 0);
  if (which & 64) terms.extra = small_or_any_numbers(in, squared ? f : 0);
  return terms;
}

/* The gram of a fit is symmetric. */
static void mirror(int64_t* matrix, size_t f) {
  for (size_t j = 0; matrix && j < f; j++)
    for (size_t k = j + 1; k < f; k++) matrix[k * f + j] = matrix[j * f + k];
}

static void require_sweeps(input* in, const fit_problem* problem, uint32_t max_sweeps, const uint8_t* start) {
  const uint32_t f = problem->f;
  int8_t expected[LFR_MAX_CODE_BITS];
  uint8_t* code = odd_room(in, f / 8);
  uint32_t sweeps = 0;
  int64_t loss = 0;
  memcpy(code, start, f / 8);
  for (uint32_t k = 0; k < f; k++) expected[k] = (int8_t)sign_at(start, k);
  REQUIRE_STATUS(1, lfr_fit_sweep(problem->Q, problem->l, f, max_sweeps, code, &sweeps, &loss));
  REQUIRE(sweeps == naive_sweeps(problem, max_sweeps, expected));
  for (uint32_t k = 0; k < f; k++) REQUIRE(sign_at(code, k) == expected[k]);
  REQUIRE(loss == naive_loss(problem, expected));
}

void fuzz_fit(input* in) {
  const lfr_fit_terms terms = make_terms(in);
  const uint32_t f = is_code_length(terms.code_bits) ? terms.code_bits : 0;
  const size_t bytes = (size_t)f * f * sizeof(int64_t);
  mirror((int64_t*)terms.gram, f);
  int64_t *quadratic = room(in, bytes), *linear = room(in, f * sizeof *linear);
  const fit_problem problem = {f, terms, room(in, bytes), room(in, f * sizeof *linear)};
  int64_t *to = perhaps(in, quadratic), *to_linear = perhaps(in, linear);
  const int has_pointers = to && to_linear && (terms.n_rows == 0 || (terms.rows && terms.targets));
  const int is_valid = f && has_pointers && terms.row_factor >= 0 && terms.balance >= 0;
  int first = -1;
  FOR_EACH_VARIANT {
    const int status = lfr_fit_prepare(&terms, to, to_linear);
    if (first < 0 && status == LFR_OK) naive_prepare(&problem);
    if (first < 0) first = status;
    REQUIRE(status == first);
    if (is_valid) require_bound(&terms, status);
    REQUIRE_STATUS(is_valid && status != LFR_ERR_OVERFLOW, status);
    if (status != LFR_OK) continue;
    REQUIRE(same_bytes(quadratic, problem.Q, bytes) && same_bytes(linear, problem.l, f * sizeof *linear));
  }
  if (first == LFR_OK) require_sweeps(in, &problem, 1 + number(in, 7), codes(in, f / 8));
}

/* Sums that lfr_fit_prepare did not make. */
void fuzz_sweep(input* in) {
  const uint32_t f = number(in, 63) ? 8 * (1 + few(in, 2, 5)) : code_length(in), n = is_code_length(f) ? f : 0;
  if (n > 128) return;                   /* 8 MB of numbers find no more than 100 KB */
  const uint32_t ways = number(in, 255); /* without symmetry sweeps may go on for ever */
  const uint32_t max_sweeps = ways & 15 && number(in, 20) == 0 ? number(in, 65537) : number(in, 21);
  int64_t *quadratic = small_or_any_numbers(in, (size_t)n * n), *linear = small_or_any_numbers(in, n);
  if (ways & 15) mirror(quadratic, n);
  for (size_t k = 0; ways & 16 && k < n; k++) quadratic[k * n + k] = ways & 32 ? INT64_MIN : INT64_MAX;
  uint8_t *start = codes(in, n / 8), *code = odd_room(in, n / 8), *to = perhaps(in, code);
  const int64_t *entries = perhaps(in, quadratic), *terms = perhaps(in, linear);
  const int is_valid = n && entries && terms && to && max_sweeps >= 1 && max_sweeps <= 65535;
  if (n) memcpy(code, start, n / 8);
  const int status = lfr_fit_sweep(entries, terms, f, max_sweeps, to, NULL, NULL);
  REQUIRE_STATUS(is_valid && status != LFR_ERR_OVERFLOW, status);
  if (n) memcpy(code, start, n / 8);
  REQUIRE_STATUS(n && terms && to, lfr_fit_start(terms, f, to));
  for (uint32_t k = 0; n && terms && to && k < n; k++)
    REQUIRE(sign_at(code, k) == (linear[k] > 0 ? 1 : linear[k] < 0 ? -1 : sign_at(start, k)));
  const fit_problem problem = {n, {.code_bits = n}, quadratic, linear};
  if (status == LFR_OK && ways & 15) require_sweeps(in, &problem, max_sweeps < 20 ? max_sweeps : 20, start);
}

/* ---- refinement ---- */

static uint32_t mostly(input* in, uint32_t least, uint32_t most) {
  return number(in, 31) ? least + number(in, most - least) : number(in, UINT32_MAX);
}

static int is_temperature(const lfr_temperature* t) {
  return t && t->step >= 1 && t->step <= 1 << 20 && t->down >= 1 && t->down <= 65535 && t->up >= 65537 &&
         t->up <= 131072;
}

/* The last row stands for n_closed items: in the oracle's matrix it is repeated. */
void fuzz_refine(input* in) {
  const uint32_t f = 8 * (1 + few(in, 2, 8)), n_rows = few(in, 12, 30), n_rated = number(in, 12);
  const uint32_t n_closed = number(in, 31) ? number(in, 20) : number(in, UINT32_MAX), ways = number(in, 255);
  const uint32_t max_sweeps = mostly(in, 1, 5), sweeps = max_sweeps < 5 ? max_sweeps : 5;
  const lfr_temperature made = {(int32_t)mostly(in, 1, 1 << 20), mostly(in, 1, 65535), mostly(in, 65537, 131072)};
  const lfr_temperature* temperature = perhaps(in, &made);
  const uint64_t n_items = n_rows ? (uint64_t)n_rows - 1 + n_closed : 0;
  uint8_t *items = codes(in, n_rows * (f / 8)), *rows = codes(in, n_rated * (f / 8)), *start = codes(in, f / 8);
  uint8_t *code = odd_room(in, f / 8), *expected = odd_room(in, f / 8);
  uint16_t* weights = ways & 1 ? content(in, n_rated * sizeof *weights) : NULL;
  uint16_t* scratch = room(in, n_rows * sizeof *scratch);
  const uint8_t *from = perhaps(in, items), *rated = perhaps(in, rows);
  uint16_t* distances = perhaps(in, scratch);
  uint8_t* to = perhaps(in, code);
  const int is_valid = is_temperature(temperature) && n_items <= 1 << 24 && max_sweeps >= 1 && max_sweeps <= 65535 &&
                       to && (n_rated == 0 || rated) && (n_rows == 0 || (from && distances));
  const int is_small = n_items <= 60;
  refinement at = {is_small ? (uint32_t)n_items : 0, f, n_rated, NULL, rows, weights, made};
  at.items = odd_room(in, at.n_items * (f / 8));
  for (uint32_t i = 0; i < at.n_items; i++)
    memcpy(at.items + i * (f / 8), items + (i < n_rows ? i : n_rows - 1) * (f / 8), f / 8);
  memcpy(expected, start, f / 8);
  if (is_valid && is_small) naive_refine(&at, sweeps, expected);
  FOR_EACH_VARIANT {
    memcpy(code, start, f / 8);
    /* A climb ends when nothing gains, so the most sweeps that are allowed are tried too, but only once. */
    const uint32_t most = is_valid ? sweeps : max_sweeps;
    REQUIRE_STATUS(is_valid, lfr_refine_open(from, n_rows, f, n_closed, rated, weights, n_rated, temperature, most,
                                             distances, to));
    if (is_valid && is_small) REQUIRE(same_bytes(code, expected, f / 8));
    if (!is_valid || n_closed != 1) continue;
    memcpy(code, start, f / 8);
    REQUIRE_STATUS(1, lfr_refine(from, n_rows, f, rated, weights, n_rated, temperature, sweeps, distances, to));
    REQUIRE(same_bytes(code, expected, f / 8));
  }
}
