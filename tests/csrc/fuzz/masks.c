/* Secure aggregation: masks, noise, and integers of few bits, of both widths. */
#include "fuzz.h"

static uint32_t number_at(const void* numbers, size_t i, int wide) {
  return wide ? ((const uint32_t*)numbers)[i] : ((const uint16_t*)numbers)[i];
}

static uint32_t cut(uint64_t value, int wide) { return wide ? (uint32_t)value : (uint16_t)value; }

static void mask(input* in, int wide) {
  const size_t n = few(in, 40, 200), size = wide ? 4 : 2;
  const int subtract = (int)number(in, 255) - 128;
  void *values = content(in, n * size), *before = copy(in, values, n * size);
  uint8_t* stream = codes(in, n * size);
  void* to = perhaps(in, values);
  const uint8_t* with = perhaps(in, stream);
  const int is_valid = n == 0 || (to && with);
  REQUIRE_STATUS(is_valid, wide ? lfr_mask32(to, n, with, subtract) : lfr_mask16(to, n, with, subtract));
  for (size_t i = 0; is_valid && i < n; i++) {
    uint64_t one = 0;
    for (size_t byte = 0; byte < size; byte++) one += (uint64_t)stream[size * i + byte] << (8 * byte);
    const uint64_t old = number_at(before, i, wide);
    REQUIRE(number_at(values, i, wide) == cut(subtract ? old - one : old + one, wide));
  }
}

static void noise(input* in) {
  const size_t n = few(in, 40, 200);
  const uint32_t threshold = number(in, 32768 + 1000);
  uint16_t *values = content(in, n * sizeof *values), *before = copy(in, values, n * sizeof *values);
  uint8_t* random = codes(in, 2 * n);
  uint16_t* to = perhaps(in, values);
  const uint8_t* with = perhaps(in, random);
  const int is_valid = threshold <= 32768 && (n == 0 || (to && with));
  REQUIRE_STATUS(is_valid, lfr_ternary_noise(to, n, threshold, with));
  for (size_t i = 0; is_valid && i < n; i++) {
    const uint32_t u = random[2 * i] + 256u * random[2 * i + 1];
    REQUIRE(values[i] == (uint16_t)(before[i] + (u < threshold) - (u >= 65536 - threshold)));
  }
}

/* Packed integers as a device sends them: any bytes. A dirty end is refused and changes no sum. */
static void unpack(input* in, int wide) {
  const size_t n = few(in, 40, 200), size = wide ? 4 : 2;
  const uint32_t bits = number(in, 34), most = wide ? 32 : 16;
  const size_t bytes = packed_bytes(n, bits), rest = n * bits % 8;
  uint8_t *packed = codes(in, bytes), *again = odd_room(in, bytes);
  void *sums = content(in, n * size), *before = copy(in, sums, n * size), *low = room(in, n * size);
  const uint8_t* from = perhaps(in, packed);
  void* to = perhaps(in, sums);
  const int is_clean = rest == 0 || packed[bytes - 1] >> rest == 0;
  const int is_valid = bits >= 1 && bits <= most && (n == 0 || (from && to)) && is_clean;
  REQUIRE_STATUS(is_valid, wide ? lfr_unpack_add32(from, n, bits, to) : lfr_unpack_add16(from, n, bits, to));
  if (!is_valid) REQUIRE(same_bytes(sums, before, n * size));
  if (!is_valid) return;
  for (size_t i = 0; i < n; i++) {
    const uint64_t value = value_at(packed, i, bits);
    REQUIRE(number_at(sums, i, wide) == cut(number_at(before, i, wide) + value, wide));
    if (wide)
      ((uint32_t*)low)[i] = (uint32_t)(value | ~(((uint64_t)1 << bits) - 1)); /* high bits are left out */
    else
      ((uint16_t*)low)[i] = (uint16_t)(value | ~(((uint64_t)1 << bits) - 1));
  }
  REQUIRE_STATUS(1, wide ? lfr_pack_bits32(low, n, bits, again) : lfr_pack_bits16(low, n, bits, again));
  REQUIRE(same_bytes(again, packed, bytes));
}

void fuzz_masks(input* in) {
  const uint32_t which = number(in, 7);
  if (which < 2)
    mask(in, which & 1);
  else if (which < 3)
    noise(in);
  else
    unpack(in, which & 1);
}
