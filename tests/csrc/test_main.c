/* Runs every test on every variant this machine has. The last line is "N passed, M failed". */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include <stdarg.h>

#include "test.h"

const uint32_t all_code_bits[] = {8, 24, 32, 40, 56, 64, 72, 120, 128, 192, 256, 320, 512, 1000, 1024};
const size_t n_all_code_bits = N_ELEMENTS(all_code_bits);

#define SEED UINT64_C(0x6c69676874667221)
#define MAX_REPORTS 5 /* per test: the first few say what is wrong, thousands do not say more */

static uint64_t state;
static int reports;

void report_failure(const char* file, int line, const char* format, ...) {
  va_list arguments;
  if (++reports > MAX_REPORTS) return;
  printf("  %s:%d: ", file, line);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  printf("\n");
}

uint64_t next_random(void) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * UINT64_C(2685821657736338717);
}

uint32_t random_below(uint32_t n) { return (uint32_t)((next_random() >> 32) % n); }

int64_t random_between(int64_t least, int64_t most) {
  return least + (int64_t)(next_random() % ((uint64_t)(most - least) + 1));
}

void random_bytes(uint8_t* bytes, size_t n) {
  for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(next_random() >> 56);
}

void* exact(size_t bytes) {
  void* memory = malloc(bytes);
  if (!memory && bytes) {
    printf("out of memory: %zu bytes\n", bytes);
    exit(1);
  }
  return memory;
}

uint8_t* exact_odd(size_t bytes) { return (uint8_t*)exact(bytes + 1) + 1; }

void free_odd(uint8_t* bytes) { free(bytes - 1); }

uint8_t* random_codes(uint32_t n, uint32_t code_bits) {
  uint8_t* codes = exact_odd((size_t)n * (code_bits / 8));
  random_bytes(codes, (size_t)n * (code_bits / 8));
  return codes;
}

static const char* select_from(int isa) {
  while (lfr_isa_name(isa) && !lfr_isa_supported(isa)) isa++;
  if (!lfr_isa_name(isa)) return NULL;
  CHECK_STATUS(LFR_OK, lfr_isa_select(isa));
  return lfr_isa_name(isa);
}

const char* first_isa(void) { return select_from(0); }

const char* next_isa(void) { return select_from(lfr_isa_selected() + 1); }

static int run(const test* list) {
  int failed = 0;
  for (; list->promise; list++) {
    state = SEED;
    reports = 0;
    list->run();
    printf("%-6s %s\n", reports ? "FAILED" : "ok", list->promise);
    if (reports > MAX_REPORTS) printf("  (%d checks failed)\n", reports);
    failed += reports > 0;
    fflush(stdout);
  }
  return failed;
}

static int count(const test* list) {
  int n = 0;
  while (list[n].promise) n++;
  return n;
}

int main(void) {
  setenv("LIGHTFR_ISA", "portable", 1); /* before the first use of the library */
  /* status_tests come first: the first of them watches the first use. */
  const test* const lists[] = {status_tests, search_tests, open_tests,   code_tests, plane_tests,
                               fit_tests,    upload_tests, refine_tests, mask_tests, vector_tests};
  int failed = 0, total = 0;
  for (size_t i = 0; i < N_ELEMENTS(lists); i++) {
    failed += run(lists[i]);
    total += count(lists[i]);
  }
  printf("variants:");
  FOR_EACH_ISA(isa) printf(" %s", isa);
  printf("\n%d passed, %d failed\n", total - failed, failed);
  return failed ? 1 : 0;
}
