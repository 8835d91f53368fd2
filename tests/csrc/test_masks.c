/* Masks and packed integers, against the definitions in lfr.h: bit by bit, and mod 2^bits. */
#include "test.h"

enum { MOST_VALUES = 70 }; /* beyond a register of any variant */

static uint64_t low_bits(uint64_t value, uint32_t bits) { return value & ((UINT64_C(1) << bits) - 1); }

static size_t packed_bytes(size_t n, uint32_t bits) { return (n * bits + 7) / 8; }

static uint64_t value_at(const uint8_t* packed, size_t i, uint32_t bits) {
  uint64_t value = 0;
  for (uint32_t k = 0; k < bits; k++) {
    const size_t j = i * bits + k;
    value |= (uint64_t)((packed[j / 8] >> (j % 8)) & 1) << k;
  }
  return value;
}

static void check_mask16(size_t n, int subtract) {
  uint16_t* values = exact(n * sizeof *values);
  uint16_t before[MOST_VALUES];
  uint8_t* stream = exact_odd(2 * n);
  random_bytes((uint8_t*)values, n * sizeof *values);
  if (n) memcpy(before, values, n * sizeof *values);
  random_bytes(stream, 2 * n);
  CHECK_STATUS(LFR_OK, lfr_mask16(values, n, stream, subtract));
  for (size_t i = 0; i < n; i++) {
    const int mask = stream[2 * i] + 256 * stream[2 * i + 1];
    CHECK(values[i] == (uint16_t)(before[i] + (subtract ? -mask : mask)), "value %zu of %zu", i, n);
  }
  free_odd(stream);
  free(values);
}

static void check_mask32(size_t n, int subtract) {
  uint32_t* values = exact(n * sizeof *values);
  uint32_t before[MOST_VALUES];
  uint8_t* stream = exact_odd(4 * n);
  random_bytes((uint8_t*)values, n * sizeof *values);
  if (n) memcpy(before, values, n * sizeof *values);
  random_bytes(stream, 4 * n);
  CHECK_STATUS(LFR_OK, lfr_mask32(values, n, stream, subtract));
  for (size_t i = 0; i < n; i++) {
    int64_t mask = 0;
    for (int byte = 0; byte < 4; byte++) mask += (int64_t)stream[4 * i + (size_t)byte] << (8 * byte);
    CHECK(values[i] == (uint32_t)(before[i] + (subtract ? -mask : mask)), "value %zu of %zu", i, n);
  }
  free_odd(stream);
  free(values);
}

static void test_masks(void) {
  for (size_t n = 0; n <= MOST_VALUES; n++)
    for (int subtract = 0; subtract < 2; subtract++) {
      check_mask16(n, subtract);
      check_mask32(n, subtract);
    }
}

static void check_packing16(size_t n, uint32_t bits) {
  const size_t bytes = packed_bytes(n, bits);
  uint16_t *values = exact(n * sizeof *values), *sums = exact(n * sizeof *sums);
  uint8_t* packed = exact_odd(bytes);
  random_bytes((uint8_t*)values, n * sizeof *values);
  CHECK_STATUS(LFR_OK, lfr_pack_bits16(values, n, bits, packed));
  for (size_t i = 0; i < n; i++) {
    CHECK(value_at(packed, i, bits) == low_bits(values[i], bits), "%" PRIu32 " bits, value %zu of %zu", bits, i, n);
    sums[i] = (uint16_t)(UINT16_MAX - i);
  }
  CHECK_STATUS(LFR_OK, lfr_unpack_add16(packed, n, bits, sums));
  for (size_t i = 0; i < n; i++)
    CHECK(sums[i] == (uint16_t)(UINT16_MAX - i + low_bits(values[i], bits)), "%" PRIu32 " bits, sum %zu", bits, i);
  if (n * bits % 8) {
    packed[bytes - 1] |= 0x80;
    const uint16_t kept = sums[0];
    CHECK_STATUS(LFR_ERR_VALUE, lfr_unpack_add16(packed, n, bits, sums));
    CHECK(sums[0] == kept, "a sum was changed before the padding was seen");
  }
  free_odd(packed);
  free(values);
  free(sums);
}

static void check_packing32(size_t n, uint32_t bits) {
  const size_t bytes = packed_bytes(n, bits);
  uint32_t *values = exact(n * sizeof *values), *sums = exact(n * sizeof *sums);
  uint8_t* packed = exact_odd(bytes);
  random_bytes((uint8_t*)values, n * sizeof *values);
  CHECK_STATUS(LFR_OK, lfr_pack_bits32(values, n, bits, packed));
  for (size_t i = 0; i < n; i++) {
    CHECK(value_at(packed, i, bits) == low_bits(values[i], bits), "%" PRIu32 " bits, value %zu of %zu", bits, i, n);
    sums[i] = (uint32_t)(UINT32_MAX - i);
  }
  CHECK_STATUS(LFR_OK, lfr_unpack_add32(packed, n, bits, sums));
  for (size_t i = 0; i < n; i++)
    CHECK(sums[i] == (uint32_t)(UINT32_MAX - i + low_bits(values[i], bits)), "%" PRIu32 " bits, sum %zu", bits, i);
  if (n * bits % 8) {
    packed[bytes - 1] |= 0x80;
    const uint32_t kept = sums[0];
    CHECK_STATUS(LFR_ERR_VALUE, lfr_unpack_add32(packed, n, bits, sums));
    CHECK(sums[0] == kept, "a sum was changed before the padding was seen");
  }
  free_odd(packed);
  free(values);
  free(sums);
}

static void test_packing(void) {
  for (size_t n = 0; n <= MOST_VALUES; n += n < 18 ? 1 : 13)
    for (uint32_t bits = 1; bits <= 32; bits++) {
      if (bits <= 16) check_packing16(n, bits);
      check_packing32(n, bits);
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
    {"packed integers lie bit behind bit, come back, and refuse a dirty last byte", test_packing},
    {"masks and packing refuse bad pointers and numbers of bits", test_mask_status},
    {NULL, NULL}};
