/* Secure aggregation: masks, and integers of few bits. Plain loops, which compilers turn into vector code. */
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

/* ---- packed integers ---- */

/* Bits that wait for a whole byte: fewer than 8 between two values, so at most 39 in all. */
typedef struct bit_writer {
  uint64_t waiting;
  uint32_t n_waiting;
  uint8_t* next;
} bit_writer;

LFR_INLINE void write_bits(bit_writer* writer, uint32_t value, uint32_t bits) {
  writer->waiting |= (value & ((UINT64_C(1) << bits) - 1)) << writer->n_waiting;
  for (writer->n_waiting += bits; writer->n_waiting >= 8; writer->n_waiting -= 8) {
    *writer->next++ = (uint8_t)writer->waiting;
    writer->waiting >>= 8;
  }
}

LFR_INLINE void finish_bits(bit_writer* writer) {
  if (writer->n_waiting) *writer->next = (uint8_t)writer->waiting;
}

static int check_bits(const void* values, const void* packed, size_t n, uint32_t bits, uint32_t most) {
  if (bits < 1 || bits > most) return LFR_ERR_COUNT;
  return n && (!values || !packed) ? LFR_ERR_NULL : LFR_OK;
}

int lfr_pack_bits16(const uint16_t* values, size_t n, uint32_t bits, uint8_t* packed) {
  const int status = check_bits(values, packed, n, bits, 16);
  if (status != LFR_OK) return status;
  bit_writer writer = {.next = packed};
  for (size_t i = 0; i < n; i++) write_bits(&writer, values[i], bits);
  finish_bits(&writer);
  return LFR_OK;
}

int lfr_pack_bits32(const uint32_t* values, size_t n, uint32_t bits, uint8_t* packed) {
  const int status = check_bits(values, packed, n, bits, 32);
  if (status != LFR_OK) return status;
  bit_writer writer = {.next = packed};
  for (size_t i = 0; i < n; i++) write_bits(&writer, values[i], bits);
  finish_bits(&writer);
  return LFR_OK;
}

typedef struct bit_reader {
  uint64_t waiting;
  uint32_t n_waiting;
  const uint8_t* next;
} bit_reader;

LFR_INLINE uint32_t read_bits(bit_reader* reader, uint32_t bits) {
  for (; reader->n_waiting < bits; reader->n_waiting += 8)
    reader->waiting |= (uint64_t)*reader->next++ << reader->n_waiting;
  const uint32_t value = (uint32_t)(reader->waiting & ((UINT64_C(1) << bits) - 1));
  reader->waiting >>= bits;
  reader->n_waiting -= bits;
  return value;
}

/* One vector has one encoding: what is left of the last byte is zero. n * bits mod 8, without the product's overflow.
 */
static int padding_is_zero(const uint8_t* packed, size_t n, uint32_t bits) {
  const uint32_t used = (uint32_t)(n % 8) * bits % 8;
  if (!used) return 1;
  const size_t last = n / 8 * bits + (n % 8) * bits / 8;
  return packed[last] >> used == 0;
}

int lfr_unpack_add16(const uint8_t* packed, size_t n, uint32_t bits, uint16_t* sums) {
  const int status = check_bits(sums, packed, n, bits, 16);
  if (status != LFR_OK) return status;
  if (!padding_is_zero(packed, n, bits)) return LFR_ERR_VALUE;
  bit_reader reader = {.next = packed};
  for (size_t i = 0; i < n; i++) sums[i] = (uint16_t)(sums[i] + read_bits(&reader, bits));
  return LFR_OK;
}

int lfr_unpack_add32(const uint8_t* packed, size_t n, uint32_t bits, uint32_t* sums) {
  const int status = check_bits(sums, packed, n, bits, 32);
  if (status != LFR_OK) return status;
  if (!padding_is_zero(packed, n, bits)) return LFR_ERR_VALUE;
  bit_reader reader = {.next = packed};
  for (size_t i = 0; i < n; i++) sums[i] += read_bits(&reader, bits);
  return LFR_OK;
}
