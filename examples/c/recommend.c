/*
 * recommend FOLDER [RANDOM]
 *
 * Fits the user code to the ratings in the folder (device.h says what it holds) and prints what to look at next, by the
 * codes alone.
 * RANDOM is a file of bytes in the place of random ones, for tests.
 */
#include "device.h"

enum { WANTED = 5 };

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) stop("usage: recommend FOLDER [RANDOM]");
  device self = open_device(argv[1], argc == 3 ? argv[2] : NULL);
  const uint32_t f = self.model.code_bits;
  lfr_hit hits[WANTED];
  uint32_t n_hits;
  items fitted = items_for_use(&self);
  fit_user_code(&self, &fitted, USE_SWEEPS);
  check(lfr_topk_open(self.codes.bytes, self.n_rows, f, self.user_code, self.left_out, NULL, open_of(&self), WANTED,
                      hits, &n_hits),
        "lfr_topk_open");
  printf("%4s  %8s  %10s\n", "rank", "item", "similarity");
  for (uint32_t i = 0; i < n_hits; i++)
    printf("%4u  %8u  %+10d\n", (unsigned)i + 1, (unsigned)hits[i].item_index, (int)f - 2 * (int)hits[i].distance);
  free_items(&fitted);
  close_device(&self);
  return 0;
}
