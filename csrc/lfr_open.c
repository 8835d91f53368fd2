/* Which items are open: rank and select on their bitmap. */
#include "lfr_impl.h"

uint64_t lfr_bitmap_word(const uint8_t* bitmap, uint32_t n_items, uint32_t w) {
  const size_t n_bytes = ((size_t)n_items + 7) / 8, at = (size_t)8 * w;
  if (at + 8 <= n_bytes) return lfr_load64(bitmap + at);
  return at < n_bytes ? lfr_load_tail(bitmap + at, (uint32_t)(n_bytes - at)) : 0;
}

int lfr_open_count(const uint8_t* bitmap, uint32_t n_items, uint32_t* before, uint32_t* n_open) {
  if ((!bitmap && n_items) || !before || !n_open) return LFR_ERR_NULL;
  if (n_items % 8 && bitmap[n_items / 8] >> (n_items % 8)) return LFR_ERR_VALUE;
  uint32_t count = 0;
  for (uint32_t w = 0; w <= n_items / 64; w++) {
    if (w % LFR_OPEN_WORDS == 0) before[w / LFR_OPEN_WORDS] = count;
    count += (uint32_t)__builtin_popcountll(lfr_bitmap_word(bitmap, n_items, w));
  }
  *n_open = count;
  return LFR_OK;
}

uint32_t lfr_open_before(const lfr_open* open, uint32_t item_index) {
  uint32_t w = item_index / LFR_OPEN_BLOCK * LFR_OPEN_WORDS, count = open->before[item_index / LFR_OPEN_BLOCK];
  for (; w < item_index / 64; w++)
    count += (uint32_t)__builtin_popcountll(lfr_bitmap_word(open->bitmap, open->n_items, w));
  const uint64_t lower = (UINT64_C(1) << (item_index % 64)) - 1;
  return count + (uint32_t)__builtin_popcountll(lfr_bitmap_word(open->bitmap, open->n_items, w) & lower);
}

/* The item of a row of its block: the bit before which `row` bits of the whole bitmap are set. */
static uint32_t select_in(const lfr_open* open, uint32_t block, uint32_t row) {
  uint32_t w = block * LFR_OPEN_WORDS, left = row - open->before[block];
  uint64_t word = lfr_bitmap_word(open->bitmap, open->n_items, w);
  for (uint32_t count; (count = (uint32_t)__builtin_popcountll(word)) <= left; left -= count)
    word = lfr_bitmap_word(open->bitmap, open->n_items, ++w);
  while (left--) word &= word - 1;
  return 64 * w + (uint32_t)__builtin_ctzll(word);
}

uint32_t lfr_open_item(const lfr_open* open, uint32_t row) {
  uint32_t low = 0, high = open->n_items / LFR_OPEN_BLOCK + 1;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (open->before[middle] <= row)
      low = middle;
    else
      high = middle;
  }
  return select_in(open, low, row);
}

uint32_t lfr_open_item_near(const lfr_open* open, uint32_t row, uint32_t* block) {
  while (open->before[*block] > row) --*block;
  while (*block < open->n_items / LFR_OPEN_BLOCK && open->before[*block + 1] <= row) ++*block;
  return select_in(open, *block, row);
}

int lfr_open_rows(const lfr_open* open, const uint32_t* indices, uint32_t n, uint32_t* rows) {
  const int status = lfr_check_open(open);
  if (status != LFR_OK) return status;
  if (n && (!indices || !rows)) return LFR_ERR_NULL;
  for (uint32_t i = 0; i < n; i++)
    if (indices[i] >= open->n_items) return LFR_ERR_INDEX;
  for (uint32_t i = 0; i < n; i++)
    rows[i] = lfr_bit_at(open->bitmap, indices[i]) ? lfr_open_before(open, indices[i]) : open->n_open;
  return LFR_OK;
}

int lfr_check_open(const lfr_open* open) {
  return open && open->before && (open->bitmap || !open->n_items) ? LFR_OK : LFR_ERR_NULL;
}
