/* What a device uploads, and what a server adds up: gradients, ternary rows, the server's rule. */
#include "fuzz.h"

static void gradients(input* in) {
  const uint32_t f = code_length(in), n = number(in, 12), bytes = is_code_length(f) ? f / 8 : 1;
  const int32_t scale = number(in, 15) ? 1 + (int32_t)number(in, 1 << 19) : (int32_t)number(in, UINT32_MAX);
  uint8_t *rows = codes(in, n * bytes), *code = codes(in, bytes);
  int32_t *targets = content(in, n * sizeof *targets), *made = room(in, n * bytes * 8 * sizeof *made);
  int is_valid = is_code_length(f) && scale >= 1 && scale <= 1 << 19;
  for (uint32_t i = 0; i < n; i++) {
    if (targets[i] % 16) targets[i] /= 4; /* mostly within the domain, up to its end */
    is_valid &= targets[i] <= 1 << 30 && targets[i] >= -(1 << 30);
  }
  const uint8_t *from = perhaps(in, rows), *with = perhaps(in, code);
  const int32_t* wanted = perhaps(in, targets);
  int32_t* to = perhaps(in, made);
  is_valid &= with && (n == 0 || (from && wanted && to));
  REQUIRE_STATUS(is_valid, lfr_row_gradients(from, n, f, with, wanted, scale, to));
  for (uint32_t i = 0; is_valid && i < n; i++) {
    const int64_t similarity = (int64_t)f - 2 * (int64_t)naive_distance(rows + i * bytes, code, bytes);
    for (uint32_t k = 0; k < f; k++)
      REQUIRE(made[i * f + k] ==
              (targets[i] - scale * similarity) * sign_at(code, k) + scale * (int64_t)sign_at(rows + i * bytes, k));
  }
}

static void ternary(input* in) {
  const size_t n = few(in, 80, 300);
  const int32_t full = number(in, 15) ? 1 + (int32_t)number(in, 1 << 24) : (int32_t)number(in, UINT32_MAX);
  int32_t* given = content(in, n * sizeof *given);
  for (size_t i = 0; full > 0 && i < n; i++)
    if (given[i] % 8) given[i] %= full;
  uint8_t *random = codes(in, 2 * n), *nonzero = odd_room(in, n / 8 + 1), *positive = odd_room(in, n / 8 + 1);
  const int32_t* from = perhaps(in, given);
  const uint8_t* with = perhaps(in, random);
  uint8_t *kept = perhaps(in, nonzero), *plus = perhaps(in, positive);
  const int is_valid = n % 8 == 0 && full >= 1 && full <= 1 << 24 && (n == 0 || (from && with && kept && plus));
  nonzero[n / 8] = positive[n / 8] = 0xa5; /* not theirs to write */
  REQUIRE_STATUS(is_valid, lfr_ternary(from, n, full, with, kept, plus));
  REQUIRE(nonzero[n / 8] == 0xa5 && positive[n / 8] == 0xa5);
  for (size_t i = 0; is_valid && i < n; i++) {
    const int sign = naive_ternary(given[i], full, random[2 * i] + 256 * random[2 * i + 1]);
    REQUIRE((sign_at(nonzero, i) > 0) == (sign != 0) && (sign_at(positive, i) > 0) == (sign > 0));
  }
}

/* Rows as they come from a device: any indices, any planes. A refusal changes no sum. */
static void add_rows(input* in) {
  const uint32_t f = code_length(in), n_rows = number(in, 12), n_items = number(in, 15);
  const uint32_t bytes = is_code_length(f) ? f / 8 : 1, size = n_items * bytes * 8, ways = number(in, 255);
  uint32_t* indices = content(in, n_rows * sizeof *indices);
  uint8_t *nonzero = codes(in, n_rows * bytes), *positive = codes(in, n_rows * bytes);
  int32_t* sums = room(in, size * sizeof *sums);
  for (uint32_t i = 0; i < size; i++) sums[i] = (int32_t)number(in, 255) - 128;
  if (ways & 1 && size)
    sums[number(in, size - 1)] = ways & 2 ? INT32_MAX - (int32_t)(ways >> 4) : INT32_MIN + (int32_t)(ways >> 4);
  const int64_t most = (int64_t)INT32_MAX - n_rows, least = (int64_t)INT32_MIN + n_rows;
  int is_valid = is_code_length(f);
  for (uint32_t i = 0; i < n_rows; i++) {
    if (n_items && indices[i] % 64) indices[i] %= n_items;
    is_valid &= indices[i] < n_items;
    for (uint32_t k = 0; indices[i] < n_items && k < bytes * 8; k++)
      is_valid &= sums[indices[i] * bytes * 8 + k] <= most && sums[indices[i] * bytes * 8 + k] >= least;
  }
  for (uint32_t i = 0; i < n_rows * bytes; i++) {
    if (!(ways & 8)) positive[i] &= nonzero[i];
    is_valid &= (positive[i] & ~nonzero[i]) == 0;
  }
  int32_t* before = copy(in, sums, size * sizeof *sums);
  const uint8_t *kept = perhaps(in, nonzero), *plus = perhaps(in, positive);
  const uint32_t* places = perhaps(in, indices);
  int32_t* to = perhaps(in, sums);
  is_valid &= n_rows == 0 || (kept && plus && places && to);
  REQUIRE_STATUS(is_valid, lfr_ternary_add(kept, plus, places, n_rows, f, n_items, to));
  for (uint32_t i = 0; is_valid && i < n_rows * f; i++)
    before[indices[i / f] * f + i % f] += (sign_at(nonzero, i) > 0) * sign_at(positive, i);
  REQUIRE(same_bytes(before, sums, size * sizeof *sums));
}

static void aggregate(input* in) {
  const size_t n = few(in, 80, 300);
  const uint32_t shift = number(in, 35);
  int32_t *sums = content(in, n * sizeof *sums), *memory = content(in, n * sizeof *memory);
  for (size_t i = 0; i < n; i++)
    if (sums[i] % 4 == 0) sums[i] = memory[i] = 0;
  uint8_t* bits = codes(in, n / 8 + 1);
  int32_t* before = copy(in, memory, n * sizeof *memory);
  uint8_t* old = copy(in, bits, n / 8 + 1);
  const int32_t* from = perhaps(in, sums);
  int32_t* to = perhaps(in, memory);
  uint8_t* coded = perhaps(in, bits);
  const int is_valid = n % 8 == 0 && shift <= 31 && (n == 0 || (from && to && coded));
  REQUIRE_STATUS(is_valid, lfr_aggregate(from, n, shift, to, coded));
  REQUIRE(bits[n / 8] == old[n / 8]);
  for (size_t i = 0; is_valid && i < n; i++) {
    const int64_t next = naive_memory(before[i], shift, sums[i]);
    REQUIRE(memory[i] == next && sign_at(bits, i) == (next > 0 ? 1 : next < 0 ? -1 : sign_at(old, i)));
  }
}

void fuzz_uploads(input* in) {
  switch (number(in, 3)) {
    case 0: gradients(in); break;
    case 1: ternary(in); break;
    case 2: add_rows(in); break;
    default: aggregate(in);
  }
}
