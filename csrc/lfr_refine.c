/* The refinement of a user code for use: a softmax over the catalogue, climbed by single bit flips, in integers. */
#include "lfr_impl.h"

/* Limits of items and of rated rows that keep every sum within 64 bits. */
#define MAX_COUNT (1u << 24)

/* log2(x) for x > 0, in units of 1/65536, rounded down: the integer part, then 16 squarings of a mantissa in [1, 2). */
static int64_t log2_fixed(uint64_t x) {
  const int whole = 63 - __builtin_clzll(x);
  uint64_t mantissa = whole >= 31 ? x >> (whole - 31) : x << (31 - whole);
  int64_t result = whole;
  for (int i = 0; i < 16; i++) {
    mantissa = mantissa * mantissa >> 31;
    const int carry = mantissa >> 32 != 0;
    mantissa >>= carry;
    result = 2 * result + carry;
  }
  return result;
}

/* What an item at each distance adds to the sum over the catalogue, in units of 2^-30. */
static void fill_masses(uint32_t code_bits, uint32_t down, uint32_t* masses) {
  masses[0] = UINT32_C(1) << 30;
  for (uint32_t h = 0; h < code_bits; h++) masses[h + 1] = (uint32_t)(((uint64_t)masses[h] * down) >> 16);
}

/* votes[k] = sum_i w_i d_ik; returns sum_i w_i. */
static int64_t sum_votes(const uint8_t* rows, const uint16_t* weights, uint32_t n_rows, uint32_t code_bits,
                         int64_t* votes) {
  int64_t total = 0;
  memset(votes, 0, code_bits * sizeof *votes);
  for (uint32_t i = 0; i < n_rows; i++) {
    const uint8_t* row = rows + (size_t)i * (code_bits / 8);
    const int64_t weight = weights ? weights[i] : 1;
    total += weight;
    for (uint32_t k = 0; k < code_bits; k++) votes[k] += lfr_bit_at(row, k) ? weight : -weight;
  }
  return total;
}

typedef struct climb {
  const uint8_t* items;
  uint32_t n_rows, code_bytes;
  uint32_t last_counts; /* how many times the last row does */
  uint16_t* distances;
  uint32_t masses[LFR_MAX_CODE_BITS + 1];
} climb;

/* Change of log2 of the sum over the catalogue when bit k flips, in units of 1/65536; 0 when a sum is too small. */
static int64_t catalogue_change(const climb* at, uint32_t k, int bit, const lfr_temperature* temperature) {
  uint64_t sums[2] = {0, 0}; /* of items that differ in bit k, of items that agree */
  if (at->n_rows == 0) return 0;
  const uint8_t* byte = at->items + (k >> 3);
  const uint32_t last = at->n_rows - 1;
  for (uint32_t i = 0; i < last; i++, byte += at->code_bytes)
    sums[((*byte >> (k & 7)) & 1) == bit] += at->masses[at->distances[i]];
  sums[((*byte >> (k & 7)) & 1) == bit] += (uint64_t)at->masses[at->distances[last]] * at->last_counts;
  const uint64_t now = sums[0] + sums[1];
  const uint64_t then = ((sums[1] >> 8) * temperature->down + (sums[0] >> 8) * temperature->up) >> 8;
  return now && then ? log2_fixed(then) - log2_fixed(now) : 0;
}

static void flip_bit(const climb* at, uint32_t k, uint8_t* code) {
  const int bit = lfr_bit_at(code, k);
  const uint8_t* byte = at->n_rows ? at->items + (k >> 3) : NULL; /* without rows, items may be NULL */
  for (uint32_t i = 0; i < at->n_rows; i++, byte += at->code_bytes)
    at->distances[i] = (uint16_t)(at->distances[i] + (((*byte >> (k & 7)) & 1) == bit ? 1 : -1));
  code[k >> 3] ^= (uint8_t)(1 << (k & 7));
}

static int check_refine(uint64_t n_items, uint32_t n_rows, uint32_t code_bits, const lfr_temperature* temperature,
                        uint32_t max_sweeps) {
  if (!lfr_code_bits_valid(code_bits)) return LFR_ERR_CODE_BITS;
  if (n_items > MAX_COUNT || n_rows > MAX_COUNT || max_sweeps < 1 || max_sweeps > 65535) return LFR_ERR_COUNT;
  if (!temperature) return LFR_ERR_NULL;
  if (temperature->step < 1 || temperature->step > 1 << 20) return LFR_ERR_VALUE;
  if (temperature->down < 1 || temperature->down > 65535) return LFR_ERR_VALUE;
  return temperature->up < 65537 || temperature->up > 131072 ? LFR_ERR_VALUE : LFR_OK;
}

int lfr_refine(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* rows, const uint16_t* weights,
               uint32_t n_rows, const lfr_temperature* temperature, uint32_t max_sweeps, uint16_t* distances,
               uint8_t* code) {
  return lfr_refine_open(items, n_items, code_bits, n_items ? 1 : 0, rows, weights, n_rows, temperature, max_sweeps,
                         distances, code);
}

int lfr_refine_open(const uint8_t* items, uint32_t n_rows, uint32_t code_bits, uint32_t n_closed, const uint8_t* rows,
                    const uint16_t* weights, uint32_t n_rated, const lfr_temperature* temperature, uint32_t max_sweeps,
                    uint16_t* distances, uint8_t* code) {
  const uint64_t n_items = n_rows ? (uint64_t)n_rows - 1 + n_closed : 0;
  const int status = check_refine(n_items, n_rated, code_bits, temperature, max_sweeps);
  if (status != LFR_OK) return status;
  if (!code || (n_rated && !rows) || (n_rows && (!items || !distances))) return LFR_ERR_NULL;
  int64_t votes[LFR_MAX_CODE_BITS];
  climb at = {items, n_rows, code_bits / 8, n_closed, distances, {0}};
  const int64_t total = sum_votes(rows, weights, n_rated, code_bits, votes);
  fill_masses(code_bits, temperature->down, at.masses);
  lfr_current()->distances(items, n_rows, code_bits / 8, code, distances);
  for (uint32_t sweep = 0, flips = 1; sweep < max_sweeps && flips; sweep++) {
    flips = 0;
    for (uint32_t k = 0; k < code_bits; k++) {
      const int bit = lfr_bit_at(code, k);
      const int64_t rated_change = -temperature->step * (bit ? votes[k] : -votes[k]);
      if (rated_change - total * catalogue_change(&at, k, bit, temperature) <= 0) continue;
      flip_bit(&at, k, code);
      flips++;
    }
  }
  return LFR_OK;
}
