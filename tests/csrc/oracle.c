/* Every definition follows its sentence in lfr.h. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

/* ---- search ---- */

uint32_t naive_distance(const uint8_t* a, const uint8_t* b, uint32_t code_bytes) {
  static uint8_t bits_set[256];
  for (int value = 1; !bits_set[255] && value < 256; value++)
    for (int bit = 0; bit < 8; bit++) bits_set[value] += (value >> bit) & 1;
  uint32_t distance = 0;
  for (uint32_t i = 0; i < code_bytes; i++) distance += bits_set[a[i] ^ b[i]];
  return distance;
}

static int32_t naive_offset(const lfr_prior* prior, uint32_t item_index) {
  int32_t offset = 0;
  for (uint32_t i = 0; prior && i < prior->n_steps; i++)
    if (prior->steps[i].first_item <= item_index) offset = prior->steps[i].offset;
  return offset;
}

static int by_cost_then_index(const void* a, const void* b) {
  const lfr_hit *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return x->item_index < y->item_index ? -1 : x->item_index > y->item_index;
}

/* Every row that is not excluded, in order. While they are sorted, `distance` holds the cost, and more than any offset.
 */
uint32_t naive_ranking(const uint8_t* items, uint32_t n_items, uint32_t code_bytes, const uint8_t* query,
                       const uint8_t* exclude, const lfr_prior* prior, lfr_hit* ranking) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < n_items; i++) {
    if (exclude && (exclude[i / 8] >> (i % 8)) & 1) continue;
    const int32_t distance = (int32_t)naive_distance(items + (size_t)i * code_bytes, query, code_bytes);
    ranking[n].item_index = i;
    ranking[n++].distance = (uint32_t)(2 * distance - naive_offset(prior, i) + LFR_MAX_OFFSET);
  }
  if (n) qsort(ranking, n, sizeof *ranking, by_cost_then_index);
  for (uint32_t i = 0; i < n; i++)
    ranking[i].distance = naive_distance(items + (size_t)ranking[i].item_index * code_bytes, query, code_bytes);
  return n;
}

/* ---- training ---- */

void naive_gram(const uint8_t* rows, uint32_t n, uint32_t f, const uint16_t* weights, int64_t* sums) {
  int8_t signs[LFR_MAX_CODE_BITS];
  memset(sums, 0, (size_t)f * f * sizeof *sums);
  for (uint32_t i = 0; i < n; i++) {
    const int64_t weight = weights ? weights[i] : 1;
    for (uint32_t k = 0; k < f; k++) signs[k] = (int8_t)sign_at(rows + (size_t)i * (f / 8), k);
    for (uint32_t j = 0; j < f; j++)
      for (uint32_t k = 0; k < f; k++) sums[(size_t)j * f + k] += weight * (signs[j] * signs[k]);
  }
}

void naive_prepare(const fit_problem* problem) {
  const lfr_fit_terms* terms = &problem->terms;
  const uint32_t f = problem->f;
  naive_gram(terms->rows, terms->n_rows, f, terms->weights, problem->Q);
  for (size_t j = 0; j < (size_t)f * f; j++)
    problem->Q[j] =
        terms->row_factor * problem->Q[j] + (terms->gram ? terms->gram_factor * terms->gram[j] : 0) + terms->balance;
  for (uint32_t k = 0; k < f; k++) {
    problem->l[k] = terms->extra ? terms->extra[k] : 0;
    if (terms->column_sums) problem->l[k] += terms->column_factor * terms->column_sums[k];
    for (uint32_t i = 0; i < terms->n_rows; i++)
      problem->l[k] += terms->target_factor * ((terms->weights ? terms->weights[i] : 1) * (int64_t)terms->targets[i]) *
                       sign_at(terms->rows + (size_t)i * (f / 8), k);
  }
}

/* sum_{j != k} Q_kj b_j */
static int64_t pull_on(const fit_problem* problem, const int8_t* b, uint32_t k) {
  int64_t pull = 0;
  for (uint32_t j = 0; j < problem->f; j++)
    if (j != k) pull += problem->Q[(size_t)k * problem->f + j] * b[j];
  return pull;
}

uint32_t naive_sweeps(const fit_problem* problem, uint32_t max_sweeps, int8_t* b) {
  for (uint32_t done = 1; done <= max_sweeps; done++) {
    int changed = 0;
    for (uint32_t k = 0; k < problem->f; k++) {
      const int64_t g = problem->l[k] - pull_on(problem, b, k);
      const int8_t wanted = (int8_t)(g > 0 ? 1 : g < 0 ? -1 : b[k]);
      changed |= wanted != b[k];
      b[k] = wanted;
    }
    if (!changed) return done;
  }
  return max_sweeps;
}

/* Every pair once: b.offdiag(Q).b / 2 - b.l */
int64_t naive_loss(const fit_problem* problem, const int8_t* b) {
  int64_t loss = 0;
  for (uint32_t j = 0; j < problem->f; j++) {
    for (uint32_t k = j + 1; k < problem->f; k++) loss += problem->Q[(size_t)j * problem->f + k] * b[j] * b[k];
    loss -= b[j] * problem->l[j];
  }
  return loss;
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
    const uint64_t mass = mass_at(naive_distance(row, code, at->f / 8), at->temperature.down);
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

void naive_refine(const refinement* at, uint32_t max_sweeps, uint8_t* code) {
  for (uint32_t sweep = 0; sweep < max_sweeps; sweep++) {
    int flips = 0;
    for (uint32_t k = 0; k < at->f; k++)
      if (naive_gains(at, code, k)) code[k / 8] ^= (uint8_t)(1 << (k % 8)), flips++;
    if (!flips) break;
  }
}

/* ---- uploads and masks ---- */

int naive_ternary(int64_t g, int64_t full, int64_t u) {
  const int64_t size = g < 0 ? -g : g;
  return u * full < size * 65536 ? (g > 0 ? 1 : -1) : 0;
}

int64_t naive_memory(int64_t memory, uint32_t shift, int64_t sum) {
  const int64_t divisor = INT64_C(1) << shift;
  const int64_t down = memory / divisor - (memory % divisor < 0); /* rounds down, also below zero */
  const int64_t next = memory - down + sum;
  return next > INT32_MAX ? INT32_MAX : next < INT32_MIN ? INT32_MIN : next;
}

size_t packed_bytes(size_t n, uint32_t bits) { return (n * bits + 7) / 8; }

uint64_t value_at(const uint8_t* packed, size_t i, uint32_t bits) {
  uint64_t value = 0;
  for (uint32_t k = 0; k < bits; k++) {
    const size_t j = i * bits + k;
    value |= (uint64_t)((packed[j / 8] >> (j % 8)) & 1) << k;
  }
  return value;
}
