/* Secure aggregation: masks, noise, and integers of few bits. Plain loops, which compilers turn into vector code. */
#include "lfr_impl.h"

/* ---- masks ---- */

/* The stream may stand at any address, so it is read by memcpy, which compiles to plain loads. Unsigned numbers wrap,
 * which is the arithmetic wanted. */
int lfr_mask16(uint16_t* values, size_t n, const uint8_t* stream, int subtract) {
  if (n && (!values || !stream)) return LFR_ERR_NULL;
  const uint16_t flip = subtract ? UINT16_MAX : 0; /* (v ^ flip) + m, flipped back, is v - m */
  for (size_t i = 0; i < n; i++) {
    uint16_t mask;
    memcpy(&mask, stream + 2 * i, sizeof mask);
    values[i] = (uint16_t)(((values[i] ^ flip) + mask) ^ flip);
  }
  return LFR_OK;
}

int lfr_mask32(uint32_t* values, size_t n, const uint8_t* stream, int subtract) {
  if (n && (!values || !stream)) return LFR_ERR_NULL;
  const uint32_t flip = subtract ? UINT32_MAX : 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t mask;
    memcpy(&mask, stream + 4 * i, sizeof mask);
    values[i] = ((values[i] ^ flip) + mask) ^ flip;
  }
  return LFR_OK;
}

/* ---- noise ---- */

int lfr_ternary_noise(uint16_t* values, size_t n, uint32_t threshold, const uint8_t* random) {
  if (n && (!values || !random)) return LFR_ERR_NULL;
  if (threshold > 32768) return LFR_ERR_VALUE;
  const uint32_t minus_from = 65536 - threshold;
  for (size_t i = 0; i < n; i++) {
    const uint32_t u = random[2 * i] | (uint32_t)random[2 * i + 1] << 8;
    values[i] = (uint16_t)(values[i] + (u < threshold) - (u >= minus_from));
  }
  return LFR_OK;
}

/* ---- packed integers ---- */

/* Written once for both widths; `wide` is a constant wherever these land, so that no branch is left in a loop. */
LFR_INLINE uint32_t number_at(const void* numbers, size_t i, int wide) {
  return wide ? ((const uint32_t*)numbers)[i] : ((const uint16_t*)numbers)[i];
}

LFR_INLINE void add_number(void* numbers, size_t i, uint32_t value, int wide) {
  if (wide)
    ((uint32_t*)numbers)[i] += value;
  else
    ((uint16_t*)numbers)[i] = (uint16_t)(((uint16_t*)numbers)[i] + value);
}

static int check_bits(const void* numbers, const void* packed, size_t n, uint32_t bits, int wide) {
  if (bits < 1 || bits > (wide ? 32 : 16)) return LFR_ERR_COUNT;
  return n && (!numbers || !packed) ? LFR_ERR_NULL : LFR_OK;
}

/* Fewer than 8 bits wait for a whole byte between two values, so that there are never more than 39. */
LFR_INLINE int pack_bits(const void* numbers, size_t n, uint32_t bits, int wide, uint8_t* packed) {
  const int status = check_bits(numbers, packed, n, bits, wide);
  if (status != LFR_OK) return status;
  uint64_t waiting = 0;
  uint32_t n_waiting = 0;
  for (size_t i = 0; i < n; i++) {
    waiting |= (number_at(numbers, i, wide) & ((UINT64_C(1) << bits) - 1)) << n_waiting;
    for (n_waiting += bits; n_waiting >= 8; n_waiting -= 8, waiting >>= 8) *packed++ = (uint8_t)waiting;
  }
  if (n_waiting) *packed = (uint8_t)waiting;
  return LFR_OK;
}

int lfr_pack_bits16(const uint16_t* values, size_t n, uint32_t bits, uint8_t* packed) {
  return pack_bits(values, n, bits, 0, packed);
}

int lfr_pack_bits32(const uint32_t* values, size_t n, uint32_t bits, uint8_t* packed) {
  return pack_bits(values, n, bits, 1, packed);
}

/* One vector has one encoding: what is left of the last byte is zero. By eighths, for n * bits may overflow. */
static int padding_is_zero(const uint8_t* packed, size_t n, uint32_t bits) {
  const uint32_t rest_bits = (uint32_t)(n % 8) * bits;
  if (rest_bits % 8 == 0) return 1;
  return packed[n / 8 * bits + rest_bits / 8] >> (rest_bits % 8) == 0;
}

LFR_INLINE int unpack_add(const uint8_t* packed, size_t n, uint32_t bits, int wide, void* sums) {
  const int status = check_bits(sums, packed, n, bits, wide);
  if (status != LFR_OK || n == 0) return status; /* without values both may be NULL, to which nothing must be added */
  if (!padding_is_zero(packed, n, bits)) return LFR_ERR_VALUE;
  const uint64_t mask = (UINT64_C(1) << bits) - 1;
  const uint8_t* beyond = packed + n / 8 * bits + ((n % 8) * bits + 7) / 8;
  size_t i = 0;
  uint32_t used = 0; /* bits of *packed that are done; with 7 of them and 32 more a value lies within 8 bytes */
  for (; i < n && beyond - packed >= 8; i++) {
    uint64_t word;
    memcpy(&word, packed, sizeof word);
    add_number(sums, i, (uint32_t)(word >> used & mask), wide);
    packed += (used + bits) / 8;
    used = (used + bits) % 8;
  }
  uint64_t waiting = i < n ? (uint64_t)*packed++ >> used : 0;
  for (uint32_t n_waiting = 8 - used; i < n; i++, waiting >>= bits, n_waiting -= bits) {
    for (; n_waiting < bits; n_waiting += 8) waiting |= (uint64_t)*packed++ << n_waiting;
    add_number(sums, i, (uint32_t)(waiting & mask), wide);
  }
  return LFR_OK;
}

int lfr_unpack_add16(const uint8_t* packed, size_t n, uint32_t bits, uint16_t* sums) {
  return unpack_add(packed, n, bits, 0, sums);
}

int lfr_unpack_add32(const uint8_t* packed, size_t n, uint32_t bits, uint32_t* sums) {
  return unpack_add(packed, n, bits, 1, sums);
}
