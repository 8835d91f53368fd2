/*
 * A device's data in a folder, and the fit of its user code. The folder holds
 *
 *     manifest      a serialised lightfr.v1.Manifest, whose signature the app has checked
 *     codes         the item codes that the manifest names, whose digest the app has checked; mapped into memory
 *     open_rows     which items are open, likewise, and inflated with zlib; only when the manifest names it
 *     removed_items which items left the catalogue, likewise
 *     ratings.txt   a line for each item that the user rated, oldest first: its index, and the rating, 1 to 5
 *     user_code     the user code of the round before; made at random when there is none yet
 *
 * Everything in the last two is private: a real app encrypts them.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stdio.h>

#include "lfr.h"
#include "message.h"

/* What a manifest says, as far as a device needs it to recommend and to take part in a round in the clear. */
typedef struct round_model {
  uint32_t code_bits, item_count, max_rows;
  uint64_t objective, upload_kind, privacy_mode;
  span mean_user; /* code_bits little-endian int16, or empty */
  bool has_open_rows, has_removed_items;
} round_model;

typedef struct device {
  const char* folder;
  FILE* random; /* NULL: the system's generator */
  span manifest, codes, open_rows, removed_items;
  round_model model;
  lfr_open open;   /* when the manifest has open_rows */
  uint32_t n_rows; /* of codes */
  uint32_t* rated; /* item indices, oldest first */
  int32_t* levels; /* of each, 0 to 2520; below MIDDLE the user dislikes the item, above it likes it */
  uint32_t n_rated;
  uint8_t* left_out; /* one bit per item: what was rated, and what left */
  uint8_t user_code[LFR_MAX_CODE_BITS / 8];
} device;

/* Items that a user code is fitted to. */
typedef struct items {
  uint32_t* indices; /* oldest first */
  int32_t* targets;
  uint16_t* weights; /* in units of 1/16 */
  uint32_t n;
} items;

enum { MIDDLE = 1260 };
/* At most this many sweeps, as docs/protocol.md says. */
enum { ROUND_SWEEPS = 10, USE_SWEEPS = 30 };

/* Each ends the program with one sentence on stderr when something is wrong. */
device open_device(const char* folder, const char* random_file);
items items_for_use(const device* self);   /* all, dislikes with a negative target */
items items_for_round(const device* self); /* those that teach */
void free_items(items* self);
void gather_codes(const device* self, const uint32_t* indices, uint32_t n, uint8_t* codes);
void fit_user_code(device* self, const items* fitted, uint32_t max_sweeps);
void store_file(const device* self, const char* name, const void* bytes, size_t size);
void close_device(device* self);

/* Cryptographic bytes. A file stands in for them in tests only. */
void draw_random(const device* self, void* bytes, size_t size);

void check(int status, const char* what);
void* allocate(size_t count, size_t size);
_Noreturn void stop(const char* format, ...) __attribute__((format(printf, 1, 2)));

/* Bit k of the mean user in units of 1/256; 0 while no mean is known. */
int16_t mean_user_at(const round_model* model, uint32_t k);

/* t of docs/protocol.md: what the similarity of an item that is not disliked should be. */
int32_t rated_target(uint32_t code_bits);

/* NULL: every item is open. */
static inline const lfr_open* open_of(const device* self) { return self->model.has_open_rows ? &self->open : NULL; }

static inline bool bit_at(const uint8_t* bits, uint32_t i) { return bits[i / 8] >> (i % 8) & 1; }

#endif
