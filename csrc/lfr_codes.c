/* Codes: signs to bits and back, and rows picked out of a matrix. */
#include "lfr_impl.h"

int lfr_pack(const int8_t* signs, size_t n_signs, uint8_t* codes) {
  if ((!signs || !codes) && n_signs) return LFR_ERR_NULL;
  if (n_signs % 8) return LFR_ERR_COUNT;
  for (size_t i = 0; i < n_signs; i++)
    if (signs[i] != 1 && signs[i] != -1) return LFR_ERR_VALUE;
  for (size_t byte = 0; byte < n_signs / 8; byte++) {
    uint8_t bits = 0;
    for (size_t k = 0; k < 8; k++) bits |= (uint8_t)((signs[8 * byte + k] > 0) << k);
    codes[byte] = bits;
  }
  return LFR_OK;
}

int lfr_unpack(const uint8_t* codes, size_t n_signs, int8_t* signs) {
  if ((!signs || !codes) && n_signs) return LFR_ERR_NULL;
  if (n_signs % 8) return LFR_ERR_COUNT;
  for (size_t i = 0; i < n_signs; i++) signs[i] = (int8_t)lfr_sign_at(codes, i);
  return LFR_OK;
}

int lfr_gather(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint32_t* indices, uint32_t n,
               uint8_t* rows) {
  if (!lfr_code_bits_valid(code_bits)) return LFR_ERR_CODE_BITS;
  if (n && (!items || !indices || !rows)) return LFR_ERR_NULL;
  const size_t code_bytes = code_bits / 8;
  for (uint32_t i = 0; i < n; i++)
    if (indices[i] >= n_items) return LFR_ERR_INDEX;
  for (uint32_t i = 0; i < n; i++) memcpy(rows + i * code_bytes, items + indices[i] * code_bytes, code_bytes);
  return LFR_OK;
}
