/* Masks, noise and packed integers, against the definitions in lfr.h: bit by bit, and mod 2^bits. */
#include "test.h"

enum { MOST_VALUES = 70 }; /* beyond a register of any variant */

static uint64_t low_bits(uint64_t value, uint32_t bits) { return value & ((UINT64_C(1) << bits) - 1); }

/* Both widths through one pair of eyes: numbers of 2 or 4 bytes, read and cut as uint32. */
static uint32_t number_at(const void* numbers, size_t i, int wide) {
  return wide ? ((const uint32_t*)numbers)[i] : ((const uint16_t*)numbers)[i];
}

static uint32_t cut(uint64_t value, int wide) { return wide ? (uint32_t)value : (uint16_t)value; }

static void* random_numbers(size_t n, int wide) {
  void* numbers = exact(n * (wide ? 4 : 2));
  random_bytes(numbers, n * (wide ? 4 : 2));
  return numbers;
}

static int add_mask(void* values, size_t n, const uint8_t* stream, int subtract, int wide) {
  return wide ? lfr_mask32(values, n, stream, subtract) : lfr_mask16(values, n, stream, subtract);
}

static int pack_bits(const void* values, size_t n, uint32_t bits, uint8_t* packed, int wide) {
  return wide ? lfr_pack_bits32(values, n, bits, packed) : lfr_pack_bits16(values, n, bits, packed);
}

static int unpack_add(const uint8_t* packed, size_t n, uint32_t bits, void* sums, int wide) {
  return wide ? lfr_unpack_add32(packed, n, bits, sums) : lfr_unpack_add16(packed, n, bits, sums);
}

static void check_mask(size_t n, int subtract, int wide) {
  const size_t size = wide ? 4 : 2;
  uint32_t before[MOST_VALUES];
  void* values = random_numbers(n, wide);
  uint8_t* stream = exact_odd(size * n);
  random_bytes(stream, size * n);
  for (size_t i = 0; i < n; i++) before[i] = number_at(values, i, wide);
  CHECK_STATUS(LFR_OK, add_mask(values, n, stream, subtract, wide));
  for (size_t i = 0; i < n; i++) {
    uint64_t mask = 0;
    for (size_t byte = 0; byte < size; byte++) mask += (uint64_t)stream[size * i + byte] << (8 * byte);
    const uint32_t expected = cut(subtract ? before[i] - mask : before[i] + mask, wide);
    CHECK(number_at(values, i, wide) == expected, "value %zu of %zu, subtract %d, wide %d", i, n, subtract, wide);
  }
  free_odd(stream);
  free(values);
}

static void test_masks(void) {
  for (size_t n = 0; n <= MOST_VALUES; n++)
    for (int choice = 0; choice < 4; choice++) check_mask(n, choice & 1, choice >> 1);
}

static void check_noise(size_t n, uint32_t threshold) {
  uint16_t before[MOST_VALUES], *values = random_numbers(n, 0);
  uint8_t* random = exact_odd(2 * n);
  random_bytes(random, 2 * n);
  for (size_t i = 0; i < n; i++) {
    const uint32_t edge[4] = {threshold - 1, threshold, 65535 - threshold, 65536 - threshold};
    if (i % 2) random[2 * i] = (uint8_t)edge[i / 2 % 4], random[2 * i + 1] = (uint8_t)(edge[i / 2 % 4] >> 8);
    before[i] = values[i];
  }
  CHECK_STATUS(LFR_OK, lfr_ternary_noise(values, n, threshold, random));
  for (size_t i = 0; i < n; i++) {
    const uint32_t u = random[2 * i] + 256u * random[2 * i + 1];
    const int noise = u < threshold ? 1 : u >= 65536 - threshold ? -1 : 0;
    CHECK(values[i] == (uint16_t)(before[i] + noise), "value %zu of %zu, threshold %" PRIu32, i, n, threshold);
  }
  free_odd(random);
  free(values);
}

static void test_noise(void) {
  const uint32_t thresholds[] = {0, 1, 512, 21845, 32768};
  for (size_t n = 0; n <= MOST_VALUES; n++)
    for (size_t t = 0; t < 5; t++) check_noise(n, thresholds[t]);
}

static void check_dirty_padding(uint8_t* packed, size_t n, uint32_t bits, void* sums, int wide) {
  const uint32_t kept = number_at(sums, 0, wide);
  packed[packed_bytes(n, bits) - 1] |= 0x80;
  CHECK_STATUS(LFR_ERR_VALUE, unpack_add(packed, n, bits, sums, wide));
  CHECK(number_at(sums, 0, wide) == kept, "a sum was changed before the padding was seen");
}

static void check_packing(size_t n, uint32_t bits, int wide) {
  uint32_t before[MOST_VALUES];
  void *values = random_numbers(n, wide), *sums = random_numbers(n, wide);
  uint8_t* packed = exact_odd(packed_bytes(n, bits));
  CHECK_STATUS(LFR_OK, pack_bits(values, n, bits, packed, wide));
  for (size_t i = 0; i < n; i++) {
    const uint64_t low = low_bits(number_at(values, i, wide), bits);
    CHECK(value_at(packed, i, bits) == low, "%" PRIu32 " bits, value %zu of %zu", bits, i, n);
    before[i] = number_at(sums, i, wide);
  }
  CHECK_STATUS(LFR_OK, unpack_add(packed, n, bits, sums, wide));
  for (size_t i = 0; i < n; i++) {
    const uint32_t expected = cut(before[i] + low_bits(number_at(values, i, wide), bits), wide);
    CHECK(number_at(sums, i, wide) == expected, "%" PRIu32 " bits, sum %zu of %zu", bits, i, n);
  }
  if (n * bits % 8) check_dirty_padding(packed, n, bits, sums, wide);
  free_odd(packed);
  free(values);
  free(sums);
}

static void test_packing(void) {
  for (size_t n = 0; n <= MOST_VALUES; n += n < 18 ? 1 : 13)
    for (uint32_t bits = 1; bits <= 32; bits++) {
      if (bits <= 16) check_packing(n, bits, 0);
      check_packing(n, bits, 1);
    }
}

static void test_mask_status(void) {
  uint16_t narrow[1] = {0};
  uint32_t wide[1] = {0};
  uint8_t bytes[4] = {0};
  CHECK_STATUS(LFR_ERR_NULL, lfr_mask16(NULL, 1, bytes, 0));
  CHECK_STATUS(LFR_ERR_NULL, lfr_mask16(narrow, 1, NULL, 0));
  CHECK_STATUS(LFR_ERR_NULL, lfr_mask32(NULL, 1, bytes, 0));
  CHECK_STATUS(LFR_ERR_NULL, lfr_mask32(wide, 1, NULL, 0));
  CHECK_STATUS(LFR_ERR_NULL, lfr_ternary_noise(NULL, 1, 1, bytes));
  CHECK_STATUS(LFR_ERR_NULL, lfr_ternary_noise(narrow, 1, 1, NULL));
  CHECK_STATUS(LFR_ERR_VALUE, lfr_ternary_noise(narrow, 1, 32769, bytes));
  CHECK_STATUS(LFR_OK, lfr_ternary_noise(NULL, 0, 1, NULL));
  CHECK_STATUS(LFR_ERR_NULL, lfr_pack_bits16(NULL, 1, 1, bytes));
  CHECK_STATUS(LFR_ERR_NULL, lfr_pack_bits16(narrow, 1, 1, NULL));
  CHECK_STATUS(LFR_ERR_NULL, lfr_pack_bits32(NULL, 1, 1, bytes));
  CHECK_STATUS(LFR_ERR_NULL, lfr_unpack_add16(NULL, 1, 1, narrow));
  CHECK_STATUS(LFR_ERR_NULL, lfr_unpack_add16(bytes, 1, 1, NULL));
  CHECK_STATUS(LFR_ERR_NULL, lfr_unpack_add32(bytes, 1, 1, NULL));
  for (uint32_t bits = 0; bits <= 33; bits += bits ? 16 : 17) { /* 0, 17, 33 */
    CHECK_STATUS(LFR_ERR_COUNT, lfr_pack_bits16(narrow, 1, bits, bytes));
    CHECK_STATUS(LFR_ERR_COUNT, lfr_unpack_add16(bytes, 1, bits, narrow));
    CHECK_STATUS(bits == 17 ? LFR_OK : LFR_ERR_COUNT, lfr_pack_bits32(wide, 1, bits, bytes));
    CHECK_STATUS(bits == 17 ? LFR_OK : LFR_ERR_COUNT, lfr_unpack_add32(bytes, 1, bits, wide));
  }
  CHECK_STATUS(LFR_OK, lfr_mask16(NULL, 0, NULL, 0));
  CHECK_STATUS(LFR_OK, lfr_mask32(NULL, 0, NULL, 1));
  CHECK_STATUS(LFR_OK, lfr_pack_bits16(NULL, 0, 16, NULL));
  CHECK_STATUS(LFR_OK, lfr_unpack_add32(NULL, 0, 32, NULL));
}

const test mask_tests[] = {
    {"masks are added and subtracted mod 2^16 and 2^32", test_masks},
    {"ternary noise is +1 below the threshold and -1 at the other end", test_noise},
    {"packed integers lie bit behind bit, come back, and refuse a dirty last byte", test_packing},
    {"masks, noise and packing refuse bad pointers, thresholds and numbers of bits", test_mask_status},
    {NULL, NULL}};
