/* The definitions of lfr.h, written with signs and plain loops: slow, and without any trick. Tests and fuzz targets
 * compare the library with them. */
#ifndef LFR_ORACLE_H
#define LFR_ORACLE_H

#include "lfr.h"

static inline int sign_at(const uint8_t* code, size_t k) { return (code[k / 8] >> (k % 8)) & 1 ? 1 : -1; }

/* ---- search ---- */

uint32_t naive_distance(const uint8_t* a, const uint8_t* b, uint32_t code_bytes);

/* Every row that is not excluded, best first, to `ranking`; their number. NULL: no exclusion, no prior. */
uint32_t naive_ranking(const uint8_t* items, uint32_t n_items, uint32_t code_bytes, const uint8_t* query,
                       const uint8_t* exclude, const lfr_prior* prior, lfr_hit* ranking);

/* ---- training ---- */

/* sums[j * f + k] = sum_i weights[i] d_ij d_ik, in f * f * n steps; NULL weights are all 1. */
void naive_gram(const uint8_t* rows, uint32_t n, uint32_t f, const uint16_t* weights, int64_t* sums);

/* Q: quadratic, l: linear, b: signs of the user code, as in lfr.h. */
typedef struct fit_problem {
  uint32_t f;
  lfr_fit_terms terms;
  int64_t *Q, *l;
} fit_problem;

void naive_prepare(const fit_problem* problem);
/* The number of sweeps done. */
uint32_t naive_sweeps(const fit_problem* problem, uint32_t max_sweeps, int8_t* b);
int64_t naive_loss(const fit_problem* problem, const int8_t* b);

typedef struct refinement {
  uint32_t n_items, f, n_rows;
  uint8_t *items, *rows;
  uint16_t* weights; /* or NULL */
  lfr_temperature temperature;
} refinement;

void naive_refine(const refinement* at, uint32_t max_sweeps, uint8_t* code);

/* ---- uploads and masks ---- */

/* sign(g) when u * full < |g| * 65536, else 0. */
int naive_ternary(int64_t g, int64_t full, int64_t u);
int64_t naive_memory(int64_t memory, uint32_t shift, int64_t sum);

/* Value i of packed integers, bit by bit. */
uint64_t value_at(const uint8_t* packed, size_t i, uint32_t bits);
size_t packed_bytes(size_t n, uint32_t bits);

#endif
