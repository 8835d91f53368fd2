/* What the targets share: bytes become numbers and buffers. */
#include "fuzz.h"

const target targets[] = {
    {"codes", fuzz_codes}, {"search", fuzz_search}, {"batch", fuzz_batch},     {"open", fuzz_open},   {"fit", fuzz_fit},
    {"sweep", fuzz_sweep}, {"refine", fuzz_refine}, {"uploads", fuzz_uploads}, {"masks", fuzz_masks}, {NULL, NULL}};

input start_input(const uint8_t* bytes, size_t size) {
  input in = {.bytes = bytes, .left = size, .state = UINT64_C(0xcbf29ce484222325)};
  for (size_t i = 0; i < size; i++) in.state = (in.state ^ bytes[i]) * UINT64_C(0x100000001b3);
  in.state |= 1; /* xorshift64 stays at 0 */
  in.missing = number(&in, 255);
  return in;
}

void end_input(input* in) {
  while (in->n_buffers) free(in->buffers[--in->n_buffers]);
}

static uint64_t next_random(input* in) {
  in->state ^= in->state << 13;
  in->state ^= in->state >> 7;
  in->state ^= in->state << 17;
  return in->state * UINT64_C(2685821657736338717);
}

static uint8_t next_byte(input* in) {
  if (in->left) return in->left--, *in->bytes++;
  return (uint8_t)(next_random(in) >> 56);
}

uint32_t number(input* in, uint32_t most) {
  uint64_t value = 0;
  for (uint32_t byte = 0; byte < 4 && most >> (8 * byte); byte++) value |= (uint64_t)next_byte(in) << (8 * byte);
  return (uint32_t)(value % ((uint64_t)most + 1));
}

int64_t number64(input* in) {
  int64_t value;
  fill(in, &value, sizeof value);
  return value >> number(in, 63); /* of every size, not mostly of the greatest */
}

uint32_t few(input* in, uint32_t most_mostly, uint32_t most) { return number(in, number(in, 15) ? most_mostly : most); }

uint32_t code_length(input* in) {
  const uint32_t beyond[] = {0, 1, 7, 9, 1025, 1032, 4096, UINT32_MAX}, byte = number(in, 255);
  if (byte >= 224) return beyond[byte % 8];
  return 8 * (1 + (byte < 96 ? byte % 32 : byte - 96));
}

int is_code_length(uint32_t code_bits) { return code_bits >= 8 && code_bits <= 1024 && code_bits % 8 == 0; }

void* room(input* in, size_t bytes) {
  if (bytes == 0) return NULL;
  void* memory = malloc(bytes);
  if (!memory || in->n_buffers == MOST_BUFFERS) abort();
  in->buffers[in->n_buffers++] = memory;
  return memory;
}

uint8_t* odd_room(input* in, size_t bytes) { return bytes ? (uint8_t*)room(in, bytes + 1) + 1 : NULL; }

void fill(input* in, void* to, size_t bytes) {
  const size_t given = bytes < in->left ? bytes : in->left;
  if (given) memcpy(to, in->bytes, given);
  in->bytes += given;
  in->left -= given;
  for (size_t i = given, size; i < bytes; i += size) {
    const uint64_t word = next_random(in);
    size = bytes - i < sizeof word ? bytes - i : sizeof word;
    memcpy((uint8_t*)to + i, &word, size);
  }
}

void* content(input* in, size_t bytes) {
  void* memory = room(in, bytes);
  fill(in, memory, bytes);
  return memory;
}

uint8_t* codes(input* in, size_t bytes) {
  uint8_t* memory = odd_room(in, bytes);
  fill(in, memory, bytes);
  return memory;
}

void* copy(input* in, const void* from, size_t bytes) {
  void* memory = room(in, bytes);
  if (bytes) memcpy(memory, from, bytes);
  return memory;
}

void* perhaps(input* in, const void* pointer) { return ++in->pointers == in->missing ? NULL : (void*)pointer; }

void require_status(int status, int is_valid, const char* file, int line) {
  const int known[] = {LFR_ERR_NULL,  LFR_ERR_CODE_BITS, LFR_ERR_COUNT, LFR_ERR_INDEX,
                       LFR_ERR_VALUE, LFR_ERR_OVERFLOW,  LFR_ERR_ISA};
  int is_known = status == LFR_OK;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) is_known |= status == known[i];
  if ((status == LFR_OK) == !!is_valid && is_known) return;
  fprintf(stderr, "%s:%d: the status is %d for %s arguments\n", file, line, status, is_valid ? "valid" : "invalid");
  abort();
}

int select_after(int isa) {
  static int is_there[3] = {-1, -1, -1}; /* asking the processor is slow on a virtual machine */
  while (++isa < 3) {
    if (is_there[isa] < 0) is_there[isa] = lfr_isa_supported(isa);
    if (is_there[isa] && lfr_isa_select(isa) == LFR_OK) return isa;
  }
  return -1;
}
