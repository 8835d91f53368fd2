#include "message.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2, FIXED32 = 5 };

static bool read_varint(span* message, uint64_t* value) {
  *value = 0;
  for (uint32_t shift = 0; shift < 64; shift += 7) {
    if (message->size == 0) return false;
    const uint8_t byte = *message->bytes;
    message->bytes++;
    message->size--;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return shift < 63 || byte < 2; /* the tenth byte has room for one bit */
  }
  return false;
}

static bool take(span* message, uint64_t size, span* taken) {
  if (size > message->size) return false;
  *taken = (span){message->bytes, (size_t)size};
  message->bytes += size;
  message->size -= (size_t)size;
  return true;
}

bool read_field(span* message, field* next) {
  uint64_t tag, size;
  span passed_over;
  *next = (field){0};
  if (!read_varint(message, &tag) || tag >> 32 || tag >> 3 == 0) return false;
  next->number = (uint32_t)(tag >> 3);
  switch (tag & 7) {
    case VARINT: return read_varint(message, &next->value);
    case FIXED64: return take(message, 8, &passed_over);
    case LENGTH_DELIMITED: return read_varint(message, &size) && take(message, size, &next->content);
    case FIXED32: return take(message, 4, &passed_over);
    default: return false;
  }
}

static void put(writer* out, const void* bytes, size_t size) {
  out->full = out->full || size > out->capacity - out->size;
  if (out->full || size == 0) return;
  memcpy(out->bytes + out->size, bytes, size);
  out->size += size;
}

static void put_varint(writer* out, uint64_t value) {
  uint8_t bytes[10];
  size_t size = 0;
  for (; value >= 0x80; value >>= 7) bytes[size++] = (uint8_t)(value | 0x80);
  bytes[size++] = (uint8_t)value;
  put(out, bytes, size);
}

void write_number(writer* out, uint32_t number, uint64_t value) {
  if (value == 0) return;
  put_varint(out, (uint64_t)number << 3 | VARINT);
  put_varint(out, value);
}

static void put_delimited(writer* out, uint32_t number, const void* bytes, size_t size) {
  put_varint(out, (uint64_t)number << 3 | LENGTH_DELIMITED);
  put_varint(out, size);
  put(out, bytes, size);
}

void write_bytes(writer* out, uint32_t number, const void* bytes, size_t size) {
  if (size) put_delimited(out, number, bytes, size);
}

void write_message(writer* out, uint32_t number, const writer* message) {
  out->full = out->full || message->full;
  put_delimited(out, number, message->bytes, message->size);
}
