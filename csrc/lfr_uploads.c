/* What a device uploads (row gradients, ternary rows), and what a server adds up and makes of it. */
#include "lfr_impl.h"

/* ---- uploads ---- */

int lfr_row_gradients(const uint8_t* rows, uint32_t n_rows, uint32_t code_bits, const uint8_t* code,
                      const int32_t* targets, int32_t scale, int32_t* gradients) {
  if (!lfr_code_bits_valid(code_bits)) return LFR_ERR_CODE_BITS;
  if (!code || (n_rows && (!rows || !targets || !gradients))) return LFR_ERR_NULL;
  if (scale < 1 || scale > 1 << 19) return LFR_ERR_VALUE;
  for (uint32_t i = 0; i < n_rows; i++)
    if (targets[i] > 1 << 30 || targets[i] < -(1 << 30)) return LFR_ERR_VALUE;
  for (uint32_t i = 0; i < n_rows; i++) {
    const uint8_t* row = rows + (size_t)i * (code_bits / 8);
    int32_t* out = gradients + (size_t)i * code_bits;
    const int32_t similarity = (int32_t)code_bits - 2 * (int32_t)lfr_distance(row, code, code_bits / 8);
    const int32_t residual = targets[i] - scale * similarity;
    for (uint32_t k = 0; k < code_bits; k++) out[k] = residual * lfr_sign_at(code, k) + scale * lfr_sign_at(row, k);
  }
  return LFR_OK;
}

int lfr_ternary(const int32_t* gradients, size_t n, int32_t full, const uint8_t* random, uint8_t* nonzero,
                uint8_t* positive) {
  if (n && (!gradients || !random || !nonzero || !positive)) return LFR_ERR_NULL;
  if (n % 8) return LFR_ERR_COUNT;
  if (full < 1 || full > 1 << 24) return LFR_ERR_VALUE;
  for (size_t byte = 0; byte < n / 8; byte++) {
    uint8_t kept = 0, plus = 0;
    for (int k = 0; k < 8; k++) {
      const size_t i = 8 * byte + (size_t)k;
      const int64_t g = gradients[i], size = g < 0 ? -g : g;
      const int64_t u = random[2 * i] | random[2 * i + 1] << 8;
      const int keep = u * full < size * 65536;
      kept |= (uint8_t)(keep << k);
      plus |= (uint8_t)((keep && g > 0) << k);
    }
    nonzero[byte] = kept;
    positive[byte] = plus;
  }
  return LFR_OK;
}

/* ---- aggregation ---- */

/* A row may be named n_rows times: no sum may stand so near to an end of int32 that it would pass it. */
static int check_ternary_rows(const uint8_t* nonzero, const uint8_t* positive, const uint32_t* indices, uint32_t n_rows,
                              uint32_t code_bits, uint32_t n_items, const int32_t* sums) {
  for (size_t byte = 0; byte < (size_t)n_rows * (code_bits / 8); byte++)
    if (positive[byte] & ~nonzero[byte]) return LFR_ERR_VALUE;
  const int64_t most = (int64_t)INT32_MAX - n_rows, least = (int64_t)INT32_MIN + n_rows;
  for (uint32_t i = 0; i < n_rows; i++) {
    if (indices[i] >= n_items) return LFR_ERR_INDEX;
    const int32_t* row = sums + (size_t)indices[i] * code_bits;
    for (uint32_t k = 0; k < code_bits; k++)
      if (row[k] > most || row[k] < least) return LFR_ERR_OVERFLOW;
  }
  return LFR_OK;
}

int lfr_ternary_add(const uint8_t* nonzero, const uint8_t* positive, const uint32_t* indices, uint32_t n_rows,
                    uint32_t code_bits, uint32_t n_items, int32_t* sums) {
  if (!lfr_code_bits_valid(code_bits)) return LFR_ERR_CODE_BITS;
  if (n_rows && (!nonzero || !positive || !indices || !sums)) return LFR_ERR_NULL;
  const int status = check_ternary_rows(nonzero, positive, indices, n_rows, code_bits, n_items, sums);
  if (status != LFR_OK) return status;
  for (uint32_t i = 0; i < n_rows; i++) {
    int32_t* row = sums + (size_t)indices[i] * code_bits;
    for (uint32_t k = 0; k < code_bits; k++) {
      const size_t j = (size_t)i * code_bits + k;
      row[k] += 2 * lfr_bit_at(positive, j) - lfr_bit_at(nonzero, j);
    }
  }
  return LFR_OK;
}

static int32_t saturate(int64_t x) { return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x; }

int lfr_aggregate(const int32_t* sums, size_t n, uint32_t shift, int32_t* memory, uint8_t* codes) {
  if (n && (!sums || !memory || !codes)) return LFR_ERR_NULL;
  if (n % 8 || shift > 31) return LFR_ERR_COUNT;
  for (size_t i = 0; i < n; i++) {
    /* >> of a negative number is arithmetic on every compiler we build with; tests hold it to rounding down. */
    memory[i] = saturate((int64_t)memory[i] - (memory[i] >> shift) + sums[i]);
    if (memory[i] == 0) continue; /* a zero vote keeps the previous bit; sign(0) would be a third value */
    lfr_set_bit(codes, i, memory[i] > 0);
  }
  return LFR_OK;
}
