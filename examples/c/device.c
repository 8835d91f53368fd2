#define _DEFAULT_SOURCE /* mmap, getrandom */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lightfr_v1.h"

void stop(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "lightfr example: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  exit(1);
}

void check(int status, const char* what) {
  if (status != LFR_OK) stop("%s failed with status %d; lfr_status in lfr.h says what that is", what, status);
}

void* allocate(size_t count, size_t size) {
  void* memory = calloc(count ? count : 1, size);
  if (!memory) stop("no memory for %zu elements of %zu bytes", count, size);
  return memory;
}

/* ---- files ---- */

static void path_of(const device* self, const char* name, char path[PATH_MAX]) {
  if (snprintf(path, PATH_MAX, "%s/%s", self->folder, name) >= PATH_MAX) stop("the folder's name is too long");
}

/* Maps a file of the folder; false when it is not there. One that cannot be opened is no absent one: a new user code
 * would be stored over the old. A file of 0 bytes cannot be mapped and need not be. */
static bool map_file(const device* self, const char* name, span* content) {
  char path[PATH_MAX];
  struct stat status;
  path_of(self, name, path);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return false;
  if (file < 0) stop("cannot open %s: %s", name, strerror(errno));
  if (fstat(file, &status)) stop("cannot look at %s", name);
  *content = (span){NULL, (size_t)status.st_size};
  if (content->size) {
    void* mapped = mmap(NULL, content->size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED) stop("cannot map %s, %zu bytes", name, content->size);
    content->bytes = mapped;
  }
  close(file);
  return true;
}

static void unmap(span content) {
  if (content.size) munmap((void*)content.bytes, content.size);
}

/* Written beside it first and then renamed, so that a crash leaves the old file or the new one. */
void store_file(const device* self, const char* name, const void* bytes, size_t size) {
  char path[PATH_MAX], unfinished[PATH_MAX];
  path_of(self, name, path);
  path_of(self, "unfinished", unfinished);
  FILE* file = fopen(unfinished, "wb");
  if (!file) stop("cannot write into the folder");
  const bool written = fwrite(bytes, 1, size, file) == size && fflush(file) == 0 && fsync(fileno(file)) == 0;
  if (fclose(file) || !written || rename(unfinished, path)) stop("cannot write %s, %zu bytes", name, size);
}

void draw_random(const device* self, void* bytes, size_t size) {
  if (self->random) {
    if (fread(bytes, 1, size, self->random) != size) stop("the file of random bytes ended; %zu were wanted", size);
    return;
  }
  for (size_t done = 0; done < size;) {
    const ssize_t got = getrandom((uint8_t*)bytes + done, size - done, 0);
    if (got < 0) stop("the system gives no random bytes");
    done += (size_t)got;
  }
}

/* ---- the manifest ---- */

static void read_model(span message, round_model* model) {
  field next;
  while (message.size) {
    if (!read_field(&message, &next)) stop("the manifest's model is no RoundModel message");
    switch (next.number) {
      case LFR_V1_ROUND_MODEL_CODE_BITS: model->code_bits = (uint32_t)next.value; break;
      case LFR_V1_ROUND_MODEL_ITEM_COUNT: model->item_count = (uint32_t)next.value; break;
      case LFR_V1_ROUND_MODEL_OBJECTIVE: model->objective = next.value; break;
      case LFR_V1_ROUND_MODEL_UPLOAD_KIND: model->upload_kind = next.value; break;
      case LFR_V1_ROUND_MODEL_MEAN_USER: model->mean_user = next.content; break;
      case LFR_V1_ROUND_MODEL_MAX_ROWS: model->max_rows = (uint32_t)next.value; break;
      case LFR_V1_ROUND_MODEL_PRIVACY_MODE: model->privacy_mode = next.value; break;
      default: break; /* a newer server may say more */
    }
  }
}

static void read_manifest(span message, round_model* model) {
  field next;
  uint64_t wire_version = 0;
  while (message.size) {
    if (!read_field(&message, &next)) stop("the file manifest holds no Manifest message");
    if (next.number == LFR_V1_MANIFEST_WIRE_VERSION) wire_version = next.value;
    if (next.number == LFR_V1_MANIFEST_MODEL) read_model(next.content, model);
    if (next.number == LFR_V1_MANIFEST_OPEN_ROWS) model->has_open_rows = true;
    if (next.number == LFR_V1_MANIFEST_REMOVED_ITEMS) model->has_removed_items = true;
  }
  if (wire_version != 1)
    stop("the manifest is of wire version %llu, this program speaks 1", (unsigned long long)wire_version);
}

int16_t mean_user_at(const round_model* model, uint32_t k) {
  const uint8_t* bytes = model->mean_user.bytes;
  return model->mean_user.size ? (int16_t)(bytes[2 * k] | bytes[2 * k + 1] << 8) : 0;
}

static void require_model(const device* self) {
  const round_model* model = &self->model;
  const uint32_t f = model->code_bits;
  if (f < LFR_MIN_CODE_BITS || f > LFR_MAX_CODE_BITS || f % 8) stop("the manifest has codes of %u bits", (unsigned)f);
  if (model->item_count == 0 || self->codes.size != (uint64_t)self->n_rows * (f / 8))
    stop("codes has %zu bytes, which are not %u rows of %u bits", self->codes.size, (unsigned)self->n_rows,
         (unsigned)f);
  if (model->objective != LFR_V1_OBJECTIVE_CATALOGUE) stop("this program knows the objective CATALOGUE only");
  if (model->mean_user.size && model->mean_user.size != 2 * (size_t)f)
    stop("the mean user has %zu bytes", model->mean_user.size);
  for (uint32_t k = 0; k < f; k++)
    if (abs(mean_user_at(model, k)) > 256) stop("the mean user leaves -256 to 256");
}

/* ---- which items are open, and which left ---- */

static span map_bitmap(const device* self, const char* name) {
  span bitmap;
  if (!map_file(self, name, &bitmap)) stop("there is no %s in the folder", name);
  if (bitmap.size != ((uint64_t)self->model.item_count + 7) / 8)
    stop("%s has %zu bytes for %u items", name, bitmap.size, (unsigned)self->model.item_count);
  return bitmap;
}

static void count_rows(device* self) {
  const uint32_t m = self->n_rows = self->model.item_count;
  if (!self->model.has_open_rows) return;
  self->open_rows = map_bitmap(self, "open_rows");
  uint32_t *before = allocate(m / LFR_OPEN_BLOCK + 1, sizeof *before), n_open;
  check(lfr_open_count(self->open_rows.bytes, m, before, &n_open), "lfr_open_count");
  self->open = (lfr_open){self->open_rows.bytes, before, m, n_open};
  self->n_rows = n_open + 1;
}

static void leave_out_removed(device* self) {
  if (!self->model.has_removed_items) return;
  self->removed_items = map_bitmap(self, "removed_items");
  for (size_t i = 0; i < self->removed_items.size; i++) self->left_out[i] |= self->removed_items.bytes[i];
}

/* The codes of some items; where not all are open, by their rows. */
void gather_codes(const device* self, const uint32_t* indices, uint32_t n, uint8_t* codes) {
  uint32_t* rows = allocate(n, sizeof *rows);
  if (open_of(self))
    check(lfr_open_rows(open_of(self), indices, n, rows), "lfr_open_rows");
  else
    memcpy(rows, indices, n * sizeof *rows);
  check(lfr_gather(self->codes.bytes, self->n_rows, self->model.code_bits, rows, n, codes), "lfr_gather");
  free(rows);
}

/* ---- ratings ---- */

static void add_rating(device* self, uint32_t line, unsigned long item, double rating) {
  if (item >= self->model.item_count) stop("ratings.txt, line %u: there are %u items", line, self->model.item_count);
  if (!(rating >= 1 && rating <= 5)) stop("ratings.txt, line %u: a rating is 1 to 5", line);
  if (bit_at(self->left_out, (uint32_t)item)) stop("ratings.txt, line %u: the item was rated before", line);
  self->left_out[item / 8] |= (uint8_t)(1u << (item % 8));
  self->levels[self->n_rated] = (int32_t)((rating - 1) * 630 + 0.5);
  self->rated[self->n_rated++] = (uint32_t)item;
}

static void read_ratings(device* self) {
  char path[PATH_MAX], text[128], more;
  unsigned long item;
  double rating;
  path_of(self, "ratings.txt", path);
  FILE* file = fopen(path, "r");
  if (!file) stop("cannot read ratings.txt");
  for (uint32_t line = 1; fgets(text, sizeof text, file); line++) {
    if (sscanf(text, "%lu %lf %c", &item, &rating, &more) != 2)
      stop("ratings.txt, line %u is not an item and a rating", line);
    add_rating(self, line, item, rating);
  }
  if (ferror(file)) stop("cannot read ratings.txt");
  fclose(file);
}

static void load_user_code(device* self) {
  const size_t size = self->model.code_bits / 8;
  span stored;
  if (!map_file(self, "user_code", &stored)) {
    draw_random(self, self->user_code, size);
    return;
  }
  if (stored.size != size) stop("user_code has %zu bytes, %zu were expected", stored.size, size);
  memcpy(self->user_code, stored.bytes, size);
  unmap(stored);
}

device open_device(const char* folder, const char* random_file) {
  device self = {.folder = folder};
  if (random_file && !(self.random = fopen(random_file, "rb"))) stop("cannot read the file of random bytes");
  if (!map_file(&self, "manifest", &self.manifest)) stop("there is no manifest in the folder");
  if (!map_file(&self, "codes", &self.codes)) stop("there are no codes in the folder");
  read_manifest(self.manifest, &self.model);
  count_rows(&self);
  require_model(&self);
  self.rated = allocate(self.model.item_count, sizeof *self.rated);
  self.levels = allocate(self.model.item_count, sizeof *self.levels);
  self.left_out = allocate(((size_t)self.model.item_count + 7) / 8, 1);
  read_ratings(&self);
  leave_out_removed(&self);
  load_user_code(&self);
  return self;
}

void close_device(device* self) {
  free(self->rated);
  free(self->levels);
  free(self->left_out);
  free((void*)self->open.before);
  unmap(self->manifest);
  unmap(self->codes);
  unmap(self->open_rows);
  unmap(self->removed_items);
  if (self->random) fclose(self->random);
}
