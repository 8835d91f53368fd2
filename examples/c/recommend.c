/*
 * Fits a user code to a few ratings and recommends what to look at next.
 *
 *     recommend                     a small catalogue, made here
 *     recommend CODES CODE_BITS     item codes from a file: rows of CODE_BITS / 8 bytes; rows 0 and 1 are liked, 2 is
 * not
 */
#include <stdio.h>
#include <stdlib.h>

#include "lfr.h"

enum { N_RATED = 3, N_WANTED = 5, SMALL_ITEMS = 1000, SMALL_BITS = 64 };

typedef struct catalogue {
  uint8_t* codes;
  uint32_t n_items, code_bits;
} catalogue;

static void stop(const char* what) {
  fprintf(stderr, "recommend: %s\n", what);
  exit(1);
}

static void check(int status, const char* what) {
  if (status == LFR_OK) return;
  fprintf(stderr, "recommend: %s failed with status %d (see lfr_status in lfr.h)\n", what, status);
  exit(1);
}

static void* allocate(size_t bytes) {
  void* memory = calloc(bytes, 1);
  if (!memory) stop("out of memory");
  return memory;
}

static catalogue load_catalogue(const char* path, uint32_t code_bits) {
  if (code_bits < LFR_MIN_CODE_BITS || code_bits > LFR_MAX_CODE_BITS || code_bits % 8)
    stop("CODE_BITS is a multiple of 8 from 8 to 1024");
  FILE* file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) stop("cannot read the file of codes");
  const long size = ftell(file);
  if (size < 0 || size % (long)(code_bits / 8)) stop("the file does not hold whole rows of CODE_BITS / 8 bytes");
  catalogue items = {allocate((size_t)size + 1), (uint32_t)((size_t)size / (code_bits / 8)), code_bits};
  rewind(file);
  if (fread(items.codes, 1, (size_t)size, file) != (size_t)size) stop("the file ended early");
  fclose(file);
  return items;
}

/* Two tastes: even rows resemble row 0 and odd rows row 1, each with a few bits turned over. */
static catalogue small_catalogue(void) {
  catalogue items = {allocate(SMALL_ITEMS * SMALL_BITS / 8), SMALL_ITEMS, SMALL_BITS};
  for (uint32_t i = 0; i < SMALL_ITEMS; i++) {
    uint8_t* row = items.codes + i * SMALL_BITS / 8;
    for (int byte = 0; byte < SMALL_BITS / 8; byte++) row[byte] = i % 2 ? 0xa5 : 0x3c;
    for (uint32_t k = 0; k < i % 19; k++) row[(7 * k + i) % 8] ^= (uint8_t)(1u << ((i / 8 + k) % 8));
  }
  return items;
}

/* A code whose similarity to each rated row comes close to that row's target. */
static void fit_user(const catalogue* items, const uint32_t* rated, const int32_t* targets, uint8_t* user) {
  const size_t f = items->code_bits;
  uint8_t* rows = allocate(N_RATED * f / 8);
  int64_t *quadratic = allocate(f * f * sizeof *quadratic), *linear = allocate(f * sizeof *linear);
  uint32_t sweeps;
  check(lfr_gather(items->codes, items->n_items, items->code_bits, rated, N_RATED, rows), "lfr_gather");
  const lfr_fit_terms terms = {.code_bits = items->code_bits,
                               .n_rows = N_RATED,
                               .rows = rows,
                               .targets = targets,
                               .row_factor = 1,
                               .target_factor = 1};
  check(lfr_fit_prepare(&terms, quadratic, linear), "lfr_fit_prepare");
  check(lfr_fit_sweep(quadratic, linear, items->code_bits, 30, user, &sweeps, NULL), "lfr_fit_sweep");
  printf("fitted %zu bits to %d ratings in %u sweeps (%s)\n", f, N_RATED, (unsigned)sweeps,
         lfr_isa_name(lfr_isa_selected()));
  free(linear);
  free(quadratic);
  free(rows);
}

int main(int argc, char** argv) {
  if (argc != 1 && argc != 3) stop("usage: recommend [CODES CODE_BITS]");
  catalogue items = argc == 3 ? load_catalogue(argv[1], (uint32_t)strtoul(argv[2], NULL, 10)) : small_catalogue();
  const int32_t f = (int32_t)items.code_bits, targets[N_RATED] = {f / 2, -f / 2, f / 2};
  const uint32_t rated[N_RATED] = {0, 1, 2};
  uint8_t user[LFR_MAX_CODE_BITS / 8] = {0}, *exclude = allocate(((size_t)items.n_items + 7) / 8 + 1);
  fit_user(&items, rated, targets, user);

  lfr_hit hits[N_WANTED];
  uint32_t n_hits;
  for (int i = 0; i < N_RATED; i++) exclude[rated[i] / 8] |= (uint8_t)(1u << (rated[i] % 8));
  check(lfr_topk(items.codes, items.n_items, items.code_bits, user, exclude, N_WANTED, hits, &n_hits), "lfr_topk");
  printf("%4s  %8s  %10s\n", "rank", "item", "similarity");
  for (uint32_t i = 0; i < n_hits; i++)
    printf("%4u  %8u  %+10d\n", (unsigned)i + 1, (unsigned)hits[i].item_index, f - 2 * (int)hits[i].distance);
  free(exclude);
  free(items.codes);
  return 0;
}
