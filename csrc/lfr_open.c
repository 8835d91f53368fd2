/* Which items are open: rank and select on their bitmap. */
#include "lfr_impl.h"

uint64_t lfr_bitmap_word(const uint8_t* bitmap, uint32_t n_items, uint32_t w) {
  const size_t n_bytes = lfr_bitmap_bytes(n_items), at = (size_t)8 * w;
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

/*
 * The last block that has no more than `row` open items before it. A block has at most LFR_OPEN_BLOCK of them, so it is
 * not before block row / LFR_OPEN_BLOCK, and where open items are nearly a prefix it is that one or a near one.
 */
static uint32_t block_of(const lfr_open* open, uint32_t row, uint32_t near) {
  const uint32_t last = open->n_items / LFR_OPEN_BLOCK;
  uint32_t low = row / LFR_OPEN_BLOCK, step = 1;
  if (near > low && open->before[near] <= row) low = near;
  for (; step <= last - low && open->before[low + step] <= row; step *= 2) low += step;
  for (; step; step /= 2)
    if (step <= last - low && open->before[low + step] <= row) low += step;
  return low;
}

uint32_t lfr_open_item(const lfr_open* open, uint32_t row, uint32_t* near) {
  const uint32_t block = *near = block_of(open, row, *near);
  uint32_t w = block * LFR_OPEN_WORDS, left = row - open->before[block];
  if (block < open->n_items / LFR_OPEN_BLOCK && open->before[block + 1] - open->before[block] == LFR_OPEN_BLOCK)
    return block * LFR_OPEN_BLOCK + left; /* all of the block is open */
  uint64_t word = lfr_bitmap_word(open->bitmap, open->n_items, w);
  for (uint32_t count; (count = (uint32_t)__builtin_popcountll(word)) <= left; left -= count)
    word = lfr_bitmap_word(open->bitmap, open->n_items, ++w);
  while (left--) word &= word - 1;
  return 64 * w + (uint32_t)__builtin_ctzll(word);
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
