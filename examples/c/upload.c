/*
 * upload FOLDER ROUND_ID MANIFEST_SHA256 [RANDOM]
 *
 * Makes this device's part of a training round in mode CLEAR from the folder (device.h says what it holds), and writes
 * it to the folder's file `upload`: a serialised lightfr.v1.UploadRequest, which the app keeps, and sends until there
 * is a receipt. ROUND_ID and MANIFEST_SHA256 are those of the assignment, in hex. RANDOM is a file of bytes in the
 * place of random ones, for tests.
 *
 * NOT PRIVATE: whoever reads the upload can recover the user code and what was rated. Mode CLEAR is for audits.
 */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "lightfr_v1.h"

enum { ROUND_ID_BYTES = 16, SHA256_BYTES = 32, UPLOAD_ID_BYTES = 16 };
/* Of the fields around the rows, with their tags and lengths: at most 8 tags and lengths of 12 bytes, three names, a
 * number. */
enum { AROUND_ROWS_BYTES = 256 };

static void read_hex(const char* text, uint8_t* bytes, size_t size, const char* what) {
  unsigned value;
  if (strlen(text) != 2 * size || strspn(text, "0123456789abcdefABCDEF") != 2 * size)
    stop("%s has %zu hexadecimal digits", what, 2 * size);
  for (size_t i = 0; i < size; i++) {
    if (sscanf(text + 2 * i, "%2x", &value) != 1) stop("%s is not hexadecimal", what);
    bytes[i] = (uint8_t)value;
  }
}

static void require_round(const round_model* model) {
  if (model->upload_kind != LFR_V1_UPLOAD_KIND_TERNARY) stop("the round wants uploads of another kind than TERNARY");
  if (model->privacy_mode != LFR_V1_PRIVACY_MODE_CLEAR) stop("the round is not in mode CLEAR, the only one made here");
}

/* ---- items ---- */

static uint32_t take_open_items(const device* self, const items* taught, uint32_t* chosen) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < taught->n; i++)
    if (!open_of(self) || bit_at(self->open.bitmap, taught->indices[i])) chosen[n++] = taught->indices[i];
  return n;
}

/* Leaves `wanted` of n items, uniformly chosen: the first steps of a Fisher-Yates shuffle. */
static void choose(const device* self, uint32_t* chosen, uint32_t n, uint32_t wanted) {
  uint8_t* random = allocate(wanted, 4);
  draw_random(self, random, 4 * (size_t)wanted);
  for (uint32_t i = 0; i < wanted; i++) {
    const uint8_t* at = random + 4 * (size_t)i;
    const uint32_t draw = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    const uint32_t j = i + (uint32_t)((uint64_t)draw * (n - i) >> 32), kept = chosen[i];
    chosen[i] = chosen[j];
    chosen[j] = kept;
  }
  free(random);
}

static int ascending(const void* left, const void* right) {
  const uint32_t a = *(const uint32_t*)left, b = *(const uint32_t*)right;
  return (a > b) - (a < b);
}

static uint32_t choose_items(const device* self, const items* taught, uint32_t* chosen) {
  uint32_t n = take_open_items(self, taught, chosen);
  const uint32_t most = self->model.max_rows;
  if (most && n > most) {
    choose(self, chosen, n, most);
    n = most;
  }
  qsort(chosen, n, sizeof *chosen, ascending);
  return n;
}

/* ---- messages ---- */

static writer new_message(size_t capacity) { return (writer){.bytes = allocate(capacity, 1), .capacity = capacity}; }

/* Gradients of the chosen items' rows, rounded to -1, 0 or +1, as a TernaryRows message. */
static writer ternary_rows(const device* self, const uint32_t* chosen, uint32_t n) {
  const uint32_t f = self->model.code_bits;
  const size_t elements = (size_t)n * f, plane = elements / 8;
  uint8_t *codes = allocate(n, f / 8), *random = allocate(elements, 2), *planes = allocate(plane, 2);
  int32_t *targets = allocate(n, sizeof *targets), *gradients = allocate(elements, sizeof *gradients);
  for (uint32_t i = 0; i < n; i++) targets[i] = rated_target(f);
  draw_random(self, random, 2 * elements);
  gather_codes(self, chosen, n, codes);
  check(lfr_row_gradients(codes, n, f, self->user_code, targets, 1, gradients), "lfr_row_gradients");
  check(lfr_ternary(gradients, elements, (int32_t)f, random, planes, planes + plane), "lfr_ternary");
  writer message = new_message(2 * plane + AROUND_ROWS_BYTES);
  write_bytes(&message, LFR_V1_TERNARY_ROWS_NONZERO, planes, plane);
  write_bytes(&message, LFR_V1_TERNARY_ROWS_POSITIVE, planes + plane, plane);
  free(codes);
  free(random);
  free(planes);
  free(targets);
  free(gradients);
  return message;
}

/* The kernel runs on little-endian machines only, so the indices lie in memory as they go on the wire. */
static writer row_update(const device* self, const uint32_t* chosen, uint32_t n) {
  const uint32_t f = self->model.code_bits;
  writer ternary = ternary_rows(self, chosen, n);
  writer message = new_message(ternary.size + 4 * (size_t)n + f / 8 + AROUND_ROWS_BYTES);
  write_number(&message, LFR_V1_ROW_UPDATE_CODE_BITS, f);
  write_bytes(&message, LFR_V1_ROW_UPDATE_ITEM_INDICES, chosen, 4 * (size_t)n);
  write_message(&message, LFR_V1_ROW_UPDATE_TERNARY, &ternary);
  write_bytes(&message, LFR_V1_ROW_UPDATE_USER_CODE, self->user_code, f / 8);
  free(ternary.bytes);
  return message;
}

static writer upload_request(const device* self, const uint8_t* round_id, const uint8_t* digest, const writer* update) {
  uint8_t upload_id[UPLOAD_ID_BYTES];
  draw_random(self, upload_id, sizeof upload_id);
  writer message = new_message(update->size + AROUND_ROWS_BYTES);
  write_bytes(&message, LFR_V1_UPLOAD_REQUEST_ROUND_ID, round_id, ROUND_ID_BYTES);
  write_bytes(&message, LFR_V1_UPLOAD_REQUEST_MANIFEST_SHA256, digest, SHA256_BYTES);
  write_bytes(&message, LFR_V1_UPLOAD_REQUEST_UPLOAD_ID, upload_id, sizeof upload_id);
  write_message(&message, LFR_V1_UPLOAD_REQUEST_ROW_UPDATE, update);
  return message;
}

int main(int argc, char** argv) {
  uint8_t round_id[ROUND_ID_BYTES], digest[SHA256_BYTES];
  if (argc < 4 || argc > 5) stop("usage: upload FOLDER ROUND_ID MANIFEST_SHA256 [RANDOM]");
  read_hex(argv[2], round_id, sizeof round_id, "ROUND_ID");
  read_hex(argv[3], digest, sizeof digest, "MANIFEST_SHA256");
  device self = open_device(argv[1], argc == 5 ? argv[4] : NULL);
  require_round(&self.model);
  items taught = items_for_round(&self);
  fit_user_code(&self, &taught, ROUND_SWEEPS);
  uint32_t* chosen = allocate(taught.n, sizeof *chosen);
  const uint32_t n = choose_items(&self, &taught, chosen);
  writer update = row_update(&self, chosen, n), request = upload_request(&self, round_id, digest, &update);
  if (request.full) stop("the upload did not fit its buffer");
  store_file(&self, "user_code", self.user_code, self.model.code_bits / 8);
  store_file(&self, "upload", request.bytes, request.size);
  printf("an upload of %zu bytes for %u rows\n", request.size, (unsigned)n);
  free(request.bytes);
  free(update.bytes);
  free(chosen);
  free_items(&taught);
  close_device(&self);
  return 0;
}
