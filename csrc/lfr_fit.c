/* The fit of a user code: ratings become a quadratic form in integers, which sweeps over the bits lower. */
#include "lfr_impl.h"

static int64_t weight_of(const lfr_fit_terms* terms, uint32_t i) { return terms->weights ? terms->weights[i] : 1; }

static int64_t total_weight(const lfr_fit_terms* terms) {
  int64_t total = 0;
  for (uint32_t i = 0; i < terms->n_rows; i++) total += weight_of(terms, i);
  return total;
}

/*
 * Whether a sum may overflow is decided in whole numbers that stop at UINT64_MAX: a bound comes out exactly where it is
 * below 2^64, and beyond every limit otherwise. Nothing is rounded, so every machine gives the same answer.
 */
static uint64_t add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static uint64_t multiply(uint64_t a, uint64_t b) { return a && b > UINT64_MAX / a ? UINT64_MAX : a * b; }

static uint64_t magnitude(int64_t x) { return x < 0 ? 0 - (uint64_t)x : (uint64_t)x; }

/* x ^ (x >> 63) is x, or -x - 1 below zero. So all magnitudes are at most the result + 1, and this is at most twice
 * the largest of them, unless all are zero. */
static uint64_t any_bit(const int64_t* values, size_t n) {
  uint64_t bits = 0;
  for (size_t i = 0; i < n; i++) bits |= (uint64_t)(values[i] ^ (values[i] >> 63));
  return bits;
}

/* An upper bound of every sum that a sweep and its loss form of entries and linear terms of these sizes. */
static uint64_t sum_bound(uint64_t f, uint64_t entry, uint64_t linear) {
  return multiply(f, add(multiply(f, entry), linear));
}

/*
 * The rule of lfr_fit_prepare: f (f entry + linear) < 2^61, where
 *     entry  = row_factor max(sum_i w_i, 1) + balance + |gram_factor| size(gram)
 *     linear = |target_factor| max(n_rows max_i |w_i t_i|, 1) + |column_factor| size(column_sums) + size(extra)
 * and size(x) is 0 for NULL, otherwise any_bit(x) + 1. Factors count at least once, even where every weight is zero, so
 * that they can be multiplied by small numbers.
 */
static uint64_t fit_bound(const lfr_fit_terms* terms) {
  const size_t f = terms->code_bits;
  uint64_t most = 0;
  for (uint32_t i = 0; i < terms->n_rows; i++) {
    const uint64_t value = magnitude(terms->targets[i] * weight_of(terms, i));
    most = value > most ? value : most;
  }
  const uint64_t weights = (uint64_t)total_weight(terms), targets = multiply(most, terms->n_rows);
  uint64_t entry = add(multiply(magnitude(terms->row_factor), weights ? weights : 1), magnitude(terms->balance));
  uint64_t linear = multiply(magnitude(terms->target_factor), targets ? targets : 1);
  if (terms->gram) entry = add(entry, multiply(magnitude(terms->gram_factor), any_bit(terms->gram, f * f) + 1));
  if (terms->column_sums)
    linear = add(linear, multiply(magnitude(terms->column_factor), any_bit(terms->column_sums, f) + 1));
  if (terms->extra) linear = add(linear, any_bit(terms->extra, f) + 1);
  return sum_bound(f, entry, linear);
}

static int check_fit(const lfr_fit_terms* terms) {
  if (!terms) return LFR_ERR_NULL;
  if (!lfr_code_bits_valid(terms->code_bits)) return LFR_ERR_CODE_BITS;
  if (terms->n_rows && (!terms->rows || !terms->targets)) return LFR_ERR_NULL;
  if (terms->row_factor < 0 || terms->balance < 0) return LFR_ERR_VALUE;
  return fit_bound(terms) < UINT64_C(1) << 61 ? LFR_OK : LFR_ERR_OVERFLOW;
}

/*
 * Sums weighted by integers are sums of plain counts, one per bit of the weight: a block's weights are cut into bit
 * planes too, and each plane masks the rows that have that bit.
 */
typedef struct weighted_block {
  lfr_planes block;
  uint32_t n_rows;
  uint64_t bits_in_use;
  int64_t values[LFR_BLOCK_ITEMS]; /* not negative */
} weighted_block;

static void plane_of_values(const weighted_block* weighted, int bit, uint64_t* plane) {
  memset(plane, 0, LFR_BLOCK_WORDS * sizeof *plane);
  for (uint32_t i = 0; i < weighted->n_rows; i++)
    plane[i / 64] |= (uint64_t)((weighted->values[i] >> bit) & 1) << (i % 64);
}

/* sums += factor * sum over the rows of value * (pairs that differ, or bits that are set) */
static void add_weighted(const weighted_block* weighted, lfr_mismatches_fn counted, int64_t factor, int64_t* sums) {
  uint64_t plane[LFR_BLOCK_WORDS];
  for (int bit = 0; weighted->bits_in_use >> bit; bit++) {
    if (!((weighted->bits_in_use >> bit) & 1)) continue;
    plane_of_values(weighted, bit, plane);
    counted(&weighted->block, plane, factor * ((int64_t)1 << bit), sums);
  }
}

/* quadratic += row_factor * sum_i w_i d_i d_i^T, above the diagonal and without its constant part. */
static void add_rows(const lfr_fit_terms* terms, uint32_t first, weighted_block* weighted, int64_t* quadratic) {
  if (!terms->weights) {
    lfr_current()->mismatches(&weighted->block, NULL, -2 * terms->row_factor, quadratic);
    return;
  }
  weighted->bits_in_use = 0;
  for (uint32_t i = 0; i < weighted->n_rows; i++)
    weighted->bits_in_use |= (uint64_t)(weighted->values[i] = terms->weights[first + i]);
  add_weighted(weighted, lfr_current()->mismatches, -2 * terms->row_factor, quadratic);
}

/* linear += target_factor * sum_i w_i t_i d_i. Values are taken from their least, so that equal ones need no planes. */
static void add_targets(const lfr_fit_terms* terms, uint32_t first, weighted_block* weighted, int64_t* linear) {
  int64_t least = INT64_MAX, total = 0;
  for (uint32_t i = 0; i < weighted->n_rows; i++) {
    weighted->values[i] = terms->targets[first + i] * weight_of(terms, first + i);
    total += weighted->values[i];
    least = weighted->values[i] < least ? weighted->values[i] : least;
  }
  weighted->bits_in_use = 0;
  for (uint32_t i = 0; i < weighted->n_rows; i++) weighted->bits_in_use |= (uint64_t)(weighted->values[i] -= least);
  /* sum v d = 2 sum over set bits of v - sum v, and the least counts once for every set bit */
  for (uint32_t k = 0; k < terms->code_bits; k++) linear[k] -= terms->target_factor * total;
  lfr_current()->counts(&weighted->block, NULL, 2 * terms->target_factor * least, linear);
  add_weighted(weighted, lfr_current()->counts, 2 * terms->target_factor, linear);
}

static void add_blocks(const lfr_fit_terms* terms, int64_t* quadratic, int64_t* linear) {
  uint64_t planes[LFR_MAX_CODE_BITS * LFR_BLOCK_WORDS];
  weighted_block weighted;
  for (uint32_t first = 0; first < terms->n_rows; first += weighted.n_rows) {
    weighted.n_rows = terms->n_rows - first < LFR_BLOCK_ITEMS ? terms->n_rows - first : LFR_BLOCK_ITEMS;
    weighted.block =
        lfr_to_planes(terms->rows + (size_t)first * (terms->code_bits / 8), weighted.n_rows, terms->code_bits, planes);
    add_rows(terms, first, &weighted, quadratic);
    add_targets(terms, first, &weighted, linear);
  }
}

int lfr_fit_prepare(const lfr_fit_terms* terms, int64_t* quadratic, int64_t* linear) {
  int status = check_fit(terms);
  if (status != LFR_OK) return status;
  if (!quadratic || !linear) return LFR_ERR_NULL;
  const size_t f = terms->code_bits;
  const int64_t agree = terms->row_factor * total_weight(terms) + terms->balance;
  for (size_t j = 0; j < f * f; j++) quadratic[j] = agree + (terms->gram ? terms->gram_factor * terms->gram[j] : 0);
  for (size_t k = 0; k < f; k++)
    linear[k] =
        (terms->extra ? terms->extra[k] : 0) + (terms->column_sums ? terms->column_factor * terms->column_sums[k] : 0);
  add_blocks(terms, quadratic, linear);
  lfr_mirror(quadratic, terms->code_bits);
  return LFR_OK;
}

int lfr_fit_start(const int64_t* linear, uint32_t code_bits, uint8_t* code) {
  if (!lfr_code_bits_valid(code_bits)) return LFR_ERR_CODE_BITS;
  if (!linear || !code) return LFR_ERR_NULL;
  for (uint32_t k = 0; k < code_bits; k++)
    if (linear[k]) lfr_set_bit(code, k, linear[k] > 0);
  return LFR_OK;
}

/* pull[j] += factor * row[j] for every j but k: the diagonal may hold anything. */
static void add_row_but(uint32_t k, const int64_t* row, uint32_t f, int factor, int64_t* pull) {
  for (uint32_t j = 0; j < k; j++) pull[j] += factor * row[j];
  for (uint32_t j = k + 1; j < f; j++) pull[j] += factor * row[j];
}

/* pull[k] = sum_{j != k} quadratic_kj b_j */
static void start_pull(const int64_t* quadratic, uint32_t f, const uint8_t* code, int64_t* pull) {
  memset(pull, 0, f * sizeof *pull);
  for (uint32_t j = 0; j < f; j++) add_row_but(j, quadratic + (size_t)j * f, f, lfr_sign_at(code, j), pull);
}

static void flip(const int64_t* quadratic, uint32_t f, uint32_t k, uint8_t* code, int64_t* pull) {
  code[k >> 3] ^= (uint8_t)(1 << (k & 7));
  add_row_but(k, quadratic + (size_t)k * f, f, 2 * lfr_sign_at(code, k), pull);
}

/* One pass over the bits; a bit whose sign already fits, or whose g is zero, costs nothing. */
static uint32_t sweep_once(const int64_t* quadratic, const int64_t* linear, uint32_t f, uint8_t* code, int64_t* pull) {
  uint32_t flips = 0;
  for (uint32_t k = 0; k < f; k++) {
    const int64_t g = linear[k] - pull[k];
    if ((g > 0 && lfr_sign_at(code, k) < 0) || (g < 0 && lfr_sign_at(code, k) > 0)) {
      flip(quadratic, f, k, code, pull);
      flips++;
    }
  }
  return flips;
}

/*
 * The entries and linear terms may come from elsewhere, so they are looked at again, more coarsely. The rule of
 * lfr_fit_sweep: f (f size(entries off the diagonal) + size(linear)) < 3 * 2^61, with size as above. lfr_fit_prepare
 * keeps below 2^61; a size is at most twice the largest magnitude, or 1, so what it made is always accepted.
 */
static int sweep_may_overflow(const int64_t* quadratic, const int64_t* linear, size_t f) {
  uint64_t entry = 0;
  for (size_t k = 0; k + 1 < f; k++) entry |= any_bit(quadratic + k * (f + 1) + 1, f); /* f lie between diagonals */
  return sum_bound(f, entry + 1, any_bit(linear, f) + 1) >= UINT64_C(3) << 61;
}

/* pull[k] is sum_{j != k} quadratic_kj b_j, so the first sum counts each pair twice and its half is exact. */
static int64_t loss_of(const int64_t* pull, const int64_t* linear, uint32_t f, const uint8_t* code) {
  int64_t pairs_twice = 0, fit = 0;
  for (uint32_t k = 0; k < f; k++) {
    pairs_twice += lfr_sign_at(code, k) * pull[k];
    fit += lfr_sign_at(code, k) * linear[k];
  }
  return pairs_twice / 2 - fit;
}

int lfr_fit_sweep(const int64_t* quadratic, const int64_t* linear, uint32_t code_bits, uint32_t max_sweeps,
                  uint8_t* code, uint32_t* sweeps, int64_t* loss) {
  if (!lfr_code_bits_valid(code_bits)) return LFR_ERR_CODE_BITS;
  if (!quadratic || !linear || !code) return LFR_ERR_NULL;
  if (max_sweeps < 1 || max_sweeps > 65535) return LFR_ERR_COUNT;
  if (sweep_may_overflow(quadratic, linear, code_bits)) return LFR_ERR_OVERFLOW;
  int64_t pull[LFR_MAX_CODE_BITS];
  uint32_t done = 0, flips = 1;
  start_pull(quadratic, code_bits, code, pull);
  for (; done < max_sweeps && flips; done++) flips = sweep_once(quadratic, linear, code_bits, code, pull);
  if (sweeps) *sweeps = done;
  if (loss) *loss = loss_of(pull, linear, code_bits, code);
  return LFR_OK;
}
