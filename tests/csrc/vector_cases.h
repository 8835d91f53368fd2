/* Cases of vectors/v1 as C: make_vectors.py fills lists of them, test_vectors.c walks through. */
#ifndef LFR_VECTOR_CASES_H
#define LFR_VECTOR_CASES_H

#include <stddef.h>
#include <stdint.h>

typedef struct code_case {
  size_t n;
  const int8_t* signs;
  const uint8_t* code;
} code_case;

typedef struct hamming_case {
  uint32_t code_bits, n_items, k, n_best;
  const uint8_t *codes, *query, *excluded;
  const uint16_t* distances;
  const uint32_t* best; /* item index and distance, n_best times */
} hamming_case;

typedef struct gram_case {
  uint32_t code_bits, n_items;
  const uint8_t* codes;
  const int64_t *gram, *column_sums;
} gram_case;

typedef struct fit_start {
  const uint8_t *start, *after_one_sweep, *code;
  uint32_t sweeps;
  int64_t loss;
} fit_start;

typedef struct fit_case {
  const char* name;
  uint32_t code_bits, n_items, n_rated, max_sweeps;
  const uint8_t *codes, *old_code;
  const uint32_t* rated;
  const uint16_t* weights;
  const int32_t* targets;
  const int64_t *mean_pull, *linear;
  const int64_t* quadratic; /* NULL: not given */
  fit_start from_old, from_linear;
} fit_case;

typedef struct paper_case {
  uint32_t code_bits, n_items, n_rated;
  int64_t balance;
  const uint8_t *codes, *old_code, *for_round, *for_use;
  const uint32_t* rated;
  const int32_t *levels, *gradients;
} paper_case;

typedef struct gradient_case {
  uint32_t code_bits, n_rows;
  int32_t target;
  const uint8_t *rows, *user_code;
  const int32_t* gradients;
} gradient_case;

typedef struct ternary_case {
  size_t n;
  int32_t full;
  const int32_t* gradients;
  const uint8_t *random, *nonzero, *positive;
} ternary_case;

enum { ROUND_BITS = 32, ROUND_ITEMS = 80, ROUND_UPLOADS = 4, ROUND_SIZE = ROUND_BITS * ROUND_ITEMS };

typedef struct round_case {
  struct {
    uint32_t n_rows;
    const uint32_t* indices;
    const uint8_t *nonzero, *positive, *user_code;
  } uploads[ROUND_UPLOADS];
  const uint8_t* codes;
  const int32_t* memory;
} round_case;

typedef struct term_case {
  size_t n;
  const int32_t* sums;
  const uint8_t *codes, *codes_after;
} term_case;

typedef struct block_case {
  size_t n;
  uint32_t bits;
  const int32_t* values;
  const uint8_t *stream, *plain, *plus, *minus;
} block_case;

typedef struct count_case {
  size_t n;
  uint32_t bits, n_devices;
  const uint8_t* packed;
  const uint16_t* sum;
} count_case;

#endif
