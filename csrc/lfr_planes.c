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

/* Rows of at most one block, each of which counts `times`; the constant part is in already. */
static void add_block(const uint8_t* rows, uint32_t n_rows, uint32_t f, int64_t times, int64_t* gram,
                      int64_t* column_sums) {
  uint64_t planes[LFR_MAX_CODE_BITS * LFR_BLOCK_WORDS];
  const lfr_planes block = lfr_to_planes(rows, n_rows, f, planes);
  lfr_current()->mismatches(&block, NULL, -2 * times, gram);
  lfr_current()->counts(&block, NULL, 2 * times, column_sums);
}

int lfr_gram(const uint8_t* items, uint32_t n_items, uint32_t code_bits, int64_t* gram, int64_t* column_sums) {
  return lfr_gram_open(items, n_items, code_bits, 1, gram, column_sums);
}

int lfr_gram_open(const uint8_t* items, uint32_t n_rows, uint32_t code_bits, uint32_t n_closed, int64_t* gram,
                  int64_t* column_sums) {
  if (!lfr_code_bits_valid(code_bits)) return LFR_ERR_CODE_BITS;
  if ((!items && n_rows) || !gram || !column_sums) return LFR_ERR_NULL;
  const uint32_t f = code_bits, last = n_rows ? n_rows - 1 : 0;
  const int64_t total = n_rows ? (int64_t)last + n_closed : 0;
  for (size_t j = 0; j < (size_t)f * f; j++) gram[j] = total;
  for (uint32_t k = 0; k < f; k++) column_sums[k] = -total;
  for (uint32_t first = 0, some; first < last; first += some) {
    some = last - first < LFR_BLOCK_ITEMS ? last - first : LFR_BLOCK_ITEMS;
    add_block(items + (size_t)first * (f / 8), some, f, 1, gram, column_sums);
  }
  if (n_rows) add_block(items + (size_t)last * (f / 8), 1, f, n_closed, gram, column_sums);
  lfr_mirror(gram, f);
  return LFR_OK;
}
