/* Fuzz targets: each makes arguments of any bytes, calls public functions with them on every variant that this machine
 * has, and compares with the oracle. A call must succeed exactly when its arguments are within lfr.h. */
#ifndef LFR_FUZZ_H
#define LFR_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

enum { MOST_BUFFERS = 64 };

/* Bytes that are read from the front. Behind their end come random ones that depend on nothing but all bytes before, so
 * that a short input can fill a large matrix. */
typedef struct input {
  const uint8_t* bytes;
  size_t left;
  uint64_t state;
  uint32_t missing; /* which pointer of the target is NULL, counted from 1; 0 or beyond the last: none */
  uint32_t pointers;
  size_t n_buffers;
  void* buffers[MOST_BUFFERS];
} input;

input start_input(const uint8_t* bytes, size_t size);
void end_input(input* in); /* frees every buffer */

/* 0 .. most, from as few little-endian bytes as hold `most`. make_seeds.py writes them. */
uint32_t number(input* in, uint32_t most);
int64_t number64(input* in);
/* Rarely up to `most`: large inputs are slow, and seldom find more. */
uint32_t few(input* in, uint32_t most_mostly, uint32_t most);
/* A valid length mostly, and mostly up to 256. */
uint32_t code_length(input* in);
int is_code_length(uint32_t code_bits);

/* Memory of exactly this size. Codes stand at an odd address. NULL only for 0 bytes. */
void* room(input* in, size_t bytes);
uint8_t* odd_room(input* in, size_t bytes);
/* The same, filled from the input. */
void* content(input* in, size_t bytes);
uint8_t* codes(input* in, size_t bytes);
void* copy(input* in, const void* from, size_t bytes);

/* `pointer`, or NULL where this is the one that the input wants to be missing. */
void* perhaps(input* in, const void* pointer);

void fill(input* in, void* to, size_t bytes);

/* What a target finds: a line that says it, and the end of the process, which the fuzzer keeps the input for. */
#define REQUIRE(condition)                                                                \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                            \
    }                                                                                     \
  } while (0)

/* A call succeeds exactly when its arguments are valid; a refusal has a number of lfr.h. */
void require_status(int status, int is_valid, const char* file, int line);
#define REQUIRE_STATUS(is_valid, call) require_status((call), (is_valid), __FILE__, __LINE__)

/* Selects the variant after `isa` that this machine has, and returns it; -1 when there are no more. */
int select_after(int isa);
#define FOR_EACH_VARIANT for (int isa_ = select_after(-1); isa_ >= 0; isa_ = select_after(isa_))

static inline int same_bytes(const void* a, const void* b, size_t bytes) { return bytes == 0 || !memcmp(a, b, bytes); }

typedef void (*target_fn)(input*);

typedef struct target {
  const char* name;
  target_fn run;
} target;

/* Ends with a NULL name. */
extern const target targets[];

void fuzz_codes(input* in);
void fuzz_search(input* in);
void fuzz_batch(input* in);
void fuzz_open(input* in);
void fuzz_fit(input* in);
void fuzz_sweep(input* in);
void fuzz_refine(input* in);
void fuzz_uploads(input* in);
void fuzz_masks(input* in);

#endif
