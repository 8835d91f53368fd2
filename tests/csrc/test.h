/* What the C tests share: a seeded generator, exact buffers, and a list of tests. No framework. */
#ifndef LFR_TEST_H
#define LFR_TEST_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

#define N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

typedef struct test {
  const char* promise;
  void (*run)(void);
} test;

/* Each list ends with a NULL promise. */
extern const test search_tests[];
extern const test open_tests[];
extern const test code_tests[];
extern const test plane_tests[];
extern const test fit_tests[];
extern const test upload_tests[];
extern const test refine_tests[];
extern const test mask_tests[];
extern const test status_tests[];
extern const test vector_tests[];

/* Marks the running test as failed; the first few reports of a test are printed. */
void report_failure(const char* file, int line, const char* format, ...) __attribute__((format(printf, 3, 4)));

#define CHECK(condition, ...)                                          \
  do {                                                                 \
    if (!(condition)) report_failure(__FILE__, __LINE__, __VA_ARGS__); \
  } while (0)

#define CHECK_STATUS(expected, call)                                                                               \
  do {                                                                                                             \
    const int status_ = (call);                                                                                    \
    if (status_ != (expected)) report_failure(__FILE__, __LINE__, "%s is %d, not %d", #call, status_, (expected)); \
  } while (0)

/* xorshift64*, restarted with the same seed before each test, so that a test does not depend on those before it. */
uint64_t next_random(void);
uint32_t random_below(uint32_t n);
int64_t random_between(int64_t least, int64_t most);
void random_bytes(uint8_t* bytes, size_t n);

/* Memory of exactly this size, so that a sanitizer sees any access beyond it. */
void* exact(size_t bytes);
/* The same at an odd address, which codes may have. Freed with free_odd. */
uint8_t* exact_odd(size_t bytes);
void free_odd(uint8_t* bytes);
/* n random codes, likewise. */
uint8_t* random_codes(uint32_t n, uint32_t code_bits);

/* Select the first, then each next variant that this machine has; its name, or NULL when there are no more. */
const char* first_isa(void);
const char* next_isa(void);
#define FOR_EACH_ISA(name) for (const char* name = first_isa(); name; name = next_isa())

/* Code lengths on both sides of the words and registers that variants work in. */
extern const uint32_t all_code_bits[];
extern const size_t n_all_code_bits;

/* Numbers of rows on both sides of the words and blocks of bit planes. */
extern const uint32_t row_counts[];
extern const size_t n_row_counts;

int oracle_is_too_slow(uint32_t f, uint32_t n);

#endif
