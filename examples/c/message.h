/* The little of protobuf's wire format that a device needs: fields with numbers (varints) and fields with bytes. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct span {
  const uint8_t* bytes;
  size_t size;
} span;

typedef struct field {
  uint32_t number;
  uint64_t value; /* of a varint */
  span content;   /* of bytes, strings and messages; points into the message */
} field;

/* Takes the next field off the front of `message`. Fields of other wire types come with no value and no content, to be
 * passed over like every field that the reader does not know. False: this is no message. Call it while size is not 0.
 */
bool read_field(span* message, field* next);

/* A buffer that a message is written to. `full` is set, for good, when something did not fit. */
typedef struct writer {
  uint8_t* bytes;
  size_t size, capacity;
  bool full;
} writer;

/* As proto3 wants it: numbers that are 0 and bytes that are empty are not written. Write fields by ascending number. */
void write_number(writer* out, uint32_t number, uint64_t value);
void write_bytes(writer* out, uint32_t number, const void* bytes, size_t size);

/* A message within a message is written even when it is empty, for being there says something. */
void write_message(writer* out, uint32_t number, const writer* message);

#endif
