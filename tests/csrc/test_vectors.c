/* The known answers of vectors/v1, which come of a generator that shares no code with this library. */
#include "test.h"
#include "vector_cases.h" /* before vectors.h, which needs its types */
#include "vectors.h"

#define FOR_EACH_CASE(kind, known) \
  FOR_EACH_ISA(isa)                \
  for (const kind* known = kind##s; known < kind##s + N_ELEMENTS(kind##s); known++)

/* The number of the case stands in every report. */
#define CHECK_SAME(kind, known, actual, expected, bytes) \
  CHECK(memcmp((actual), (expected), (bytes)) == 0, #kind " %td, " #expected ", %s", (known) - kind##s, isa)

/* A copy of exactly this size, at an odd address where that is allowed. */
static uint8_t* odd_copy(const uint8_t* bytes, size_t n) {
  uint8_t* copy = exact_odd(n);
  memcpy(copy, bytes, n);
  return copy;
}

static void test_codes(void) {
  FOR_EACH_CASE(code_case, known) {
    uint8_t* code = exact_odd(known->n / 8);
    int8_t* signs = exact(known->n);
    CHECK_STATUS(LFR_OK, lfr_pack(known->signs, known->n, code));
    CHECK_SAME(code_case, known, code, known->code, known->n / 8);
    CHECK_STATUS(LFR_OK, lfr_unpack(code, known->n, signs));
    CHECK_SAME(code_case, known, signs, known->signs, known->n);
    free_odd(code);
    free(signs);
  }
}

static void test_distances(void) {
  FOR_EACH_CASE(hamming_case, known) {
    uint8_t* codes = odd_copy(known->codes, (size_t)known->n_items * (known->code_bits / 8));
    uint16_t* distances = exact(known->n_items * sizeof *distances);
    CHECK_STATUS(LFR_OK, lfr_distances(codes, known->n_items, known->code_bits, known->query, distances));
    CHECK_SAME(hamming_case, known, distances, known->distances, known->n_items * sizeof *distances);
    free(distances);
    free_odd(codes);
  }
}

static void test_nearest(void) {
  FOR_EACH_CASE(hamming_case, known) {
    lfr_hit* hits = exact(known->k * sizeof *hits);
    uint32_t n_hits = 0;
    CHECK_STATUS(LFR_OK, lfr_topk(known->codes, known->n_items, known->code_bits, known->query, known->excluded,
                                  known->k, hits, &n_hits));
    CHECK(n_hits == known->n_best, "hamming_case %td: %" PRIu32 " hits, %s", known - hamming_cases, n_hits, isa);
    for (uint32_t i = 0; i < n_hits && i < known->n_best; i++)
      CHECK(hits[i].item_index == known->best[2 * i] && hits[i].distance == known->best[2 * i + 1],
            "hamming_case %td: hit %" PRIu32 ", %s", known - hamming_cases, i, isa);
    free(hits);
  }
}

static void test_gram(void) {
  FOR_EACH_CASE(gram_case, known) {
    const size_t f = known->code_bits;
    int64_t *gram = exact(f * f * sizeof *gram), *sums = exact(f * sizeof *sums);
    CHECK_STATUS(LFR_OK, lfr_gram(known->codes, known->n_items, known->code_bits, gram, sums));
    CHECK_SAME(gram_case, known, gram, known->gram, f * f * sizeof *gram);
    CHECK_SAME(gram_case, known, sums, known->column_sums, f * sizeof *sums);
    free(gram);
    free(sums);
  }
}

/* What a fit needs and makes. */
typedef struct fit {
  lfr_fit_terms terms;
  uint8_t* rows;
  int32_t* targets;
  int64_t *gram, *column_sums, *extra, *quadratic, *linear;
} fit;

static fit new_fit(const uint8_t* codes, uint32_t n_items, uint32_t code_bits, const uint32_t* rated, uint32_t n) {
  const size_t f = code_bits;
  fit made = {.rows = exact_odd(n * f / 8),
              .targets = exact(n * sizeof(int32_t)),
              .gram = exact(f * f * sizeof(int64_t)),
              .column_sums = exact(f * sizeof(int64_t)),
              .extra = exact(f * sizeof(int64_t)),
              .quadratic = exact(f * f * sizeof(int64_t)),
              .linear = exact(f * sizeof(int64_t))};
  CHECK_STATUS(LFR_OK, lfr_gather(codes, n_items, code_bits, rated, n, made.rows));
  made.terms = (lfr_fit_terms){.code_bits = code_bits, .n_rows = n, .rows = made.rows, .targets = made.targets};
  return made;
}

static void free_fit(fit* made) {
  free_odd(made->rows);
  free(made->targets);
  free(made->gram);
  free(made->column_sums);
  free(made->extra);
  free(made->quadratic);
  free(made->linear);
}

/* The factors of docs/protocol.md. */
static fit prepared_fit(const fit_case* known) {
  fit made = new_fit(known->codes, known->n_items, known->code_bits, known->rated, known->n_rated);
  int64_t catalogue = 0, n_near = 0;
  for (uint32_t i = 0; i < known->n_rated; i++) {
    made.targets[i] = known->targets[i];
    if (known->targets[i] < 0) continue; /* A dislike. */
    catalogue += known->weights[i];
    n_near++;
  }
  catalogue = 2 * (catalogue + 16 * (n_near < 32 ? 32 - n_near : 0));
  CHECK_STATUS(LFR_OK, lfr_gram(known->codes, known->n_items, known->code_bits, made.gram, made.column_sums));
  for (uint32_t k = 0; k < known->code_bits; k++) made.extra[k] = 80 * known->mean_pull[k];
  made.terms.weights = known->weights;
  made.terms.row_factor = made.terms.target_factor = known->n_items;
  made.terms.gram = made.gram;
  made.terms.gram_factor = catalogue + 80;
  made.terms.column_sums = made.column_sums;
  made.terms.column_factor = -catalogue * ((4 * (int64_t)known->code_bits + 5) / 10);
  made.terms.extra = made.extra;
  CHECK_STATUS(LFR_OK, lfr_fit_prepare(&made.terms, made.quadratic, made.linear));
  return made;
}

static void check_start(const fit_case* known, const fit_start* start, const fit* made, const char* isa) {
  const size_t size = known->code_bits / 8;
  uint8_t* code = odd_copy(start->start, size);
  uint32_t sweeps = 0;
  int64_t loss = 0;
  CHECK_STATUS(LFR_OK, lfr_fit_sweep(made->quadratic, made->linear, known->code_bits, 1, code, NULL, NULL));
  CHECK_SAME(fit_case, known, code, start->after_one_sweep, size);
  memcpy(code, start->start, size);
  CHECK_STATUS(LFR_OK,
               lfr_fit_sweep(made->quadratic, made->linear, known->code_bits, known->max_sweeps, code, &sweeps, &loss));
  CHECK_SAME(fit_case, known, code, start->code, size);
  CHECK(sweeps == start->sweeps, "%s: %" PRIu32 " sweeps, %s", known->name, sweeps, isa);
  CHECK(loss == start->loss, "%s: a loss of %" PRId64 ", %s", known->name, loss, isa);
  free_odd(code);
}

static void check_quadratic(const fit_case* known, const fit* made, const char* isa) {
  for (uint32_t k = 0; known->quadratic && k < known->code_bits; k++)
    for (uint32_t j = 0; j < known->code_bits; j++) {
      const size_t at = (size_t)k * known->code_bits + j;
      CHECK(j == k || made->quadratic[at] == known->quadratic[at], "%s: P of %" PRIu32 " and %" PRIu32 ", %s",
            known->name, k, j, isa);
    }
}

static void test_user_fit(void) {
  FOR_EACH_CASE(fit_case, known) {
    const size_t size = known->code_bits / 8;
    fit made = prepared_fit(known);
    uint8_t* start = odd_copy(known->old_code, size);
    CHECK_SAME(fit_case, known, made.linear, known->linear, known->code_bits * sizeof(int64_t));
    check_quadratic(known, &made, isa);
    CHECK_STATUS(LFR_OK, lfr_fit_start(made.linear, known->code_bits, start));
    CHECK_SAME(fit_case, known, start, known->from_linear.start, size);
    check_start(known, &known->from_old, &made, isa);
    check_start(known, &known->from_linear, &made, isa);
    free_odd(start);
    free_fit(&made);
  }
}

static void check_paper_fit(const paper_case* known, fit* made, int64_t balance, uint32_t max_sweeps,
                            const uint8_t* expected, const char* isa) {
  uint8_t* code = odd_copy(known->old_code, known->code_bits / 8);
  made->terms.balance = balance;
  CHECK_STATUS(LFR_OK, lfr_fit_prepare(&made->terms, made->quadratic, made->linear));
  CHECK_STATUS(LFR_OK, lfr_fit_sweep(made->quadratic, made->linear, known->code_bits, max_sweeps, code, NULL, NULL));
  CHECK_SAME(paper_case, known, code, expected, known->code_bits / 8);
  free_odd(code);
}

static void test_objective_of_the_paper(void) {
  FOR_EACH_CASE(paper_case, known) {
    const int32_t f = (int32_t)known->code_bits;
    const size_t n = (size_t)known->n_rated * known->code_bits;
    fit made = new_fit(known->codes, known->n_items, known->code_bits, known->rated, known->n_rated);
    int32_t* gradients = exact(n * sizeof *gradients);
    for (uint32_t i = 0; i < known->n_rated; i++) made.targets[i] = 2 * f * known->levels[i] - 2520 * f;
    made.terms.row_factor = 2520;
    made.terms.target_factor = 1;
    check_paper_fit(known, &made, known->balance, 10, known->for_round, isa);
    check_paper_fit(known, &made, 0, 30, known->for_use, isa);
    CHECK_STATUS(LFR_OK, lfr_row_gradients(made.rows, known->n_rated, known->code_bits, known->for_round, made.targets,
                                           2520, gradients));
    CHECK_SAME(paper_case, known, gradients, known->gradients, n * sizeof *gradients);
    free(gradients);
    free_fit(&made);
  }
}

static void test_gradients(void) {
  FOR_EACH_CASE(gradient_case, known) {
    const size_t n = (size_t)known->n_rows * known->code_bits;
    int32_t *gradients = exact(n * sizeof *gradients), *targets = exact(known->n_rows * sizeof *targets);
    for (uint32_t i = 0; i < known->n_rows; i++) targets[i] = known->target;
    CHECK_STATUS(LFR_OK, lfr_row_gradients(known->rows, known->n_rows, known->code_bits, known->user_code, targets, 1,
                                           gradients));
    CHECK_SAME(gradient_case, known, gradients, known->gradients, n * sizeof *gradients);
    free(targets);
    free(gradients);
  }
}

static void test_ternary(void) {
  FOR_EACH_CASE(ternary_case, known) {
    uint8_t *nonzero = exact_odd(known->n / 8), *positive = exact_odd(known->n / 8);
    CHECK_STATUS(LFR_OK, lfr_ternary(known->gradients, known->n, known->full, known->random, nonzero, positive));
    CHECK_SAME(ternary_case, known, nonzero, known->nonzero, known->n / 8);
    CHECK_SAME(ternary_case, known, positive, known->positive, known->n / 8);
    free_odd(nonzero);
    free_odd(positive);
  }
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* v = sum w b of a round's uploads; returns w. */
static int64_t add_users(const round_case* known, int64_t* user_sum) {
  int64_t weight = 0;
  for (int u = 0; u < ROUND_UPLOADS; u++) {
    const int64_t own = known->uploads[u].n_rows < 32 ? 32 : known->uploads[u].n_rows;
    for (int k = 0; k < ROUND_BITS; k++) user_sum[k] += own * sign_at(known->uploads[u].user_code, k);
    weight += own;
  }
  return weight;
}

/* 256 R less the catalogue term of docs/protocol.md, which is the server's own: the kernel only adds and moves. */
static void take_catalogue_term(const round_case* known, const uint8_t* codes, int32_t* sums) {
  int64_t v[ROUND_BITS] = {0};
  const int64_t weight = add_users(known, v);
  for (int i = 0; i < ROUND_ITEMS; i++) {
    int64_t likeness = 0;
    for (int k = 0; k < ROUND_BITS; k++) likeness += sign_at(codes + 4 * i, k) * v[k];
    for (int k = 0; k < ROUND_BITS; k++) {
      const int64_t others = (likeness - sign_at(codes + 4 * i, k) * v[k]) * v[k];
      const int64_t against = floor_div(others, weight) + 13 * v[k];
      int32_t* sum = sums + ROUND_BITS * i + k;
      *sum = (int32_t)(256 * *sum - floor_div(512 * against, ROUND_SIZE));
    }
  }
}

static void play_round(const round_case* known, int32_t* memory, uint8_t* codes) {
  int32_t* sums = exact(ROUND_SIZE * sizeof *sums);
  memset(sums, 0, ROUND_SIZE * sizeof *sums);
  for (int u = 0; u < ROUND_UPLOADS; u++)
    CHECK_STATUS(LFR_OK,
                 lfr_ternary_add(known->uploads[u].nonzero, known->uploads[u].positive, known->uploads[u].indices,
                                 known->uploads[u].n_rows, ROUND_BITS, ROUND_ITEMS, sums));
  take_catalogue_term(known, codes, sums);
  CHECK_STATUS(LFR_OK, lfr_aggregate(sums, ROUND_SIZE, 4, memory, codes));
  free(sums);
}

static void test_rounds(void) {
  FOR_EACH_ISA(isa) {
    int32_t* memory = exact(ROUND_SIZE * sizeof *memory);
    uint8_t* codes = odd_copy(first_codes, ROUND_SIZE / 8);
    memset(memory, 0, ROUND_SIZE * sizeof *memory);
    for (const round_case* known = round_cases; known < round_cases + N_ELEMENTS(round_cases); known++) {
      play_round(known, memory, codes);
      CHECK_SAME(round_case, known, codes, known->codes, ROUND_SIZE / 8);
      CHECK_SAME(round_case, known, memory, known->memory, ROUND_SIZE * sizeof *memory);
    }
    free_odd(codes);
    free(memory);
  }
}

static void test_sums_from_an_empty_memory(void) {
  FOR_EACH_CASE(term_case, known) {
    int32_t* memory = exact(known->n * sizeof *memory);
    uint8_t* codes = odd_copy(known->codes, known->n / 8);
    memset(memory, 0, known->n * sizeof *memory);
    CHECK_STATUS(LFR_OK, lfr_aggregate(known->sums, known->n, 4, memory, codes));
    CHECK_SAME(term_case, known, memory, known->sums, known->n * sizeof *memory);
    CHECK_SAME(term_case, known, codes, known->codes_after, known->n / 8);
    free_odd(codes);
    free(memory);
  }
}

/* The values of a block in numbers of 2 or 4 bytes. */
static void* numbers_of(const block_case* known) {
  void* numbers = exact(known->n * (known->bits <= 16 ? 2 : 4));
  for (size_t i = 0; i < known->n; i++) {
    if (known->bits <= 16)
      ((uint16_t*)numbers)[i] = (uint16_t)known->values[i];
    else
      ((uint32_t*)numbers)[i] = (uint32_t)known->values[i];
  }
  return numbers;
}

/* subtract: 0 adds the mask, 1 takes it off, -1 leaves the values as they are. */
static void check_masked(const block_case* known, int subtract, const uint8_t* expected, const char* isa) {
  const size_t size = (known->n * known->bits + 7) / 8;
  void* values = numbers_of(known);
  uint8_t* packed = exact_odd(size);
  if (known->bits <= 16) {
    if (subtract >= 0) CHECK_STATUS(LFR_OK, lfr_mask16(values, known->n, known->stream, subtract));
    CHECK_STATUS(LFR_OK, lfr_pack_bits16(values, known->n, known->bits, packed));
  } else {
    if (subtract >= 0) CHECK_STATUS(LFR_OK, lfr_mask32(values, known->n, known->stream, subtract));
    CHECK_STATUS(LFR_OK, lfr_pack_bits32(values, known->n, known->bits, packed));
  }
  CHECK_SAME(block_case, known, packed, expected, size);
  free_odd(packed);
  free(values);
}

static void test_masks_and_packing(void) {
  FOR_EACH_CASE(block_case, known) {
    check_masked(known, -1, known->plain, isa);
    check_masked(known, 0, known->plus, isa);
    check_masked(known, 1, known->minus, isa);
  }
}

static void test_counts(void) {
  FOR_EACH_CASE(count_case, known) {
    const size_t size = (known->n * known->bits + 7) / 8;
    uint16_t* sums = exact(known->n * sizeof *sums);
    memset(sums, 0, known->n * sizeof *sums);
    for (uint32_t u = 0; u < known->n_devices; u++)
      CHECK_STATUS(LFR_OK, lfr_unpack_add16(known->packed + u * size, known->n, known->bits, sums));
    for (size_t i = 0; i < known->n; i++) sums[i] &= (uint16_t)((1u << known->bits) - 1);
    CHECK_SAME(count_case, known, sums, known->sum, known->n * sizeof *sums);
    free(sums);
  }
}

const test vector_tests[] = {
    {"vectors: signs and bytes", test_codes},
    {"vectors: distances", test_distances},
    {"vectors: the nearest, with ties and exclusions", test_nearest},
    {"vectors: gram matrix and column sums", test_gram},
    {"vectors: the user fit, from both starts", test_user_fit},
    {"vectors: fit and gradients of the paper's objective", test_objective_of_the_paper},
    {"vectors: row gradients", test_gradients},
    {"vectors: ternary rounding", test_ternary},
    {"vectors: three rounds of aggregation", test_rounds},
    {"vectors: sums from an empty memory", test_sums_from_an_empty_memory},
    {"vectors: masks and packed numbers", test_masks_and_packing},
    {"vectors: counts of a gate refresh", test_counts},
    {NULL, NULL},
};
