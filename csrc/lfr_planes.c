/* Rows turned into bit planes, and the Gram matrix that is counted from them. */
#include "lfr_impl.h"

/* Transposes a 64 x 64 bit matrix in place (Hacker's Delight, 7-3, by halving blocks). */
static void transpose64(uint64_t* rows) {
  uint64_t mask = UINT64_C(0x00000000FFFFFFFF);
  for (int width = 32; width; width >>= 1, mask ^= mask << width) {
    for (int i = 0; i < 64; i = (i + width + 1) & ~width) {
      uint64_t swap = ((rows[i] >> width) ^ rows[i + width]) & mask;
      rows[i] ^= swap << width;
      rows[i + width] ^= swap;
    }
  }
}

/* Up to 64 rows, from `rows`, into word `word` of every plane. */
static void word_of_planes(const uint8_t* rows, uint32_t n_rows, uint32_t code_bytes, uint32_t word, uint64_t* planes) {
  for (uint32_t at = 0; at < code_bytes; at += 8) {
    const uint32_t width = code_bytes - at < 8 ? code_bytes - at : 8;
    uint64_t square[64] = {0};
    for (uint32_t i = 0; i < n_rows; i++) {
      const uint8_t* bytes = rows + (size_t)i * code_bytes + at;
      square[i] = width == 8 ? lfr_load64(bytes) : lfr_load_tail(bytes, width);
    }
    transpose64(square);
    for (uint32_t k = 0; k < 8 * width; k++) planes[(size_t)(8 * at + k) * LFR_BLOCK_WORDS + word] = square[k];
  }
}

lfr_planes lfr_to_planes(const uint8_t* rows, uint32_t n_rows, uint32_t code_bits, uint64_t* planes) {
  const uint32_t n_words = (n_rows + 63) / 64;
  for (uint32_t w = 0; w < n_words; w++) {
    uint32_t some = n_rows - 64 * w < 64 ? n_rows - 64 * w : 64;
    word_of_planes(rows + (size_t)64 * w * (code_bits / 8), some, code_bits / 8, w, planes);
  }
  lfr_planes block = {code_bits, n_words, planes};
  return block;
}

void lfr_mirror(int64_t* matrix, uint32_t f) {
  for (uint32_t j = 0; j < f; j++)
    for (uint32_t k = j + 1; k < f; k++) matrix[(size_t)k * f + j] = matrix[(size_t)j * f + k];
}

int lfr_gram(const uint8_t* items, uint32_t n_items, uint32_t code_bits, int64_t* gram, int64_t* column_sums) {
  if (!lfr_code_bits_valid(code_bits)) return LFR_ERR_CODE_BITS;
  if ((!items && n_items) || !gram || !column_sums) return LFR_ERR_NULL;
  const uint32_t f = code_bits;
  uint64_t planes[LFR_MAX_CODE_BITS * LFR_BLOCK_WORDS];
  for (size_t j = 0; j < (size_t)f * f; j++) gram[j] = n_items;
  for (uint32_t k = 0; k < f; k++) column_sums[k] = -(int64_t)n_items;
  for (uint32_t first = 0; first < n_items;) {
    uint32_t some = n_items - first < LFR_BLOCK_ITEMS ? n_items - first : LFR_BLOCK_ITEMS;
    lfr_planes block = lfr_to_planes(items + (size_t)first * (f / 8), some, f, planes);
    lfr_current()->mismatches(&block, NULL, -2, gram);
    lfr_current()->counts(&block, NULL, 2, column_sums);
    first += some;
  }
  lfr_mirror(gram, f);
  return LFR_OK;
}
