/* The user fit of the catalogue objective: docs/protocol.md, "The device". All in integers, so every machine agrees. */
#include <stdlib.h>
#include <string.h>

#include "device.h"

enum { WEIGHT = 16, CATALOGUE_WEIGHT = 2, MEAN_PULL = 80, LEAST_RATINGS = 32 };

int32_t rated_target(uint32_t code_bits) { return (int32_t)((6 * code_bits + 5) / 10); }

static items allocate_items(uint32_t most) {
  return (items){allocate(most, sizeof(uint32_t)), allocate(most, sizeof(int32_t)), allocate(most, sizeof(uint16_t)),
                 0};
}

static void add_item(items* self, uint32_t item_index, int32_t target, uint16_t weight) {
  self->indices[self->n] = item_index;
  self->targets[self->n] = target;
  self->weights[self->n++] = weight;
}

void free_items(items* self) {
  free(self->indices);
  free(self->targets);
  free(self->weights);
}

/* Liked items weigh 1, the others half; where nothing is liked, what was seen weighs 1. */
items items_for_use(const device* self) {
  items made = allocate_items(self->n_rated);
  const int32_t target = rated_target(self->model.code_bits);
  int32_t liked = MIDDLE;
  for (uint32_t i = 0; i < self->n_rated; i++)
    if (self->levels[i] > MIDDLE) liked = MIDDLE + 1;
  for (uint32_t i = 0; i < self->n_rated; i++)
    add_item(&made, self->rated[i], self->levels[i] < MIDDLE ? -target : target,
             self->levels[i] < liked ? WEIGHT / 2 : WEIGHT);
  return made;
}

/* No dislikes, and not the newest opinion, unless it is the only one. */
items items_for_round(const device* self) {
  items made = allocate_items(self->n_rated);
  const uint32_t n = self->n_rated > 1 ? self->n_rated - 1 : self->n_rated;
  for (uint32_t i = 0; i < n; i++)
    if (self->levels[i] >= MIDDLE) add_item(&made, self->rated[i], rated_target(self->model.code_bits), WEIGHT);
  return made;
}

/* Working memory of a fit. */
typedef struct fit {
  uint8_t* rows;
  int64_t *gram, *column_sums, *mean_pull, *quadratic, *linear;
} fit;

static fit allocate_fit(size_t f, size_t n) {
  return (fit){allocate(n, f / 8),           allocate(f * f, sizeof(int64_t)), allocate(f, sizeof(int64_t)),
               allocate(f, sizeof(int64_t)), allocate(f * f, sizeof(int64_t)), allocate(f, sizeof(int64_t))};
}

static void free_fit(fit* self) {
  free(self->rows);
  free(self->gram);
  free(self->column_sums);
  free(self->mean_pull);
  free(self->quadratic);
  free(self->linear);
}

/* K (G mu div 256), the division rounding down after the sum; C's own rounds toward zero. */
static void pull_to_mean(const round_model* model, const int64_t* gram, int64_t* pull) {
  const uint32_t f = model->code_bits;
  for (uint32_t k = 0; k < f; k++) {
    int64_t sum = 0;
    for (uint32_t j = 0; j < f; j++) sum += gram[(size_t)k * f + j] * mean_user_at(model, j);
    pull[k] = MEAN_PULL * (sum / 256 - (sum % 256 < 0));
  }
}

/* What the whole catalogue weighs: by the items without dislikes. */
static int64_t catalogue_weight(const items* fitted) {
  int64_t weight = 0, n_near = 0;
  for (uint32_t i = 0; i < fitted->n; i++) {
    if (fitted->targets[i] < 0) continue;
    weight += fitted->weights[i];
    n_near++;
  }
  return CATALOGUE_WEIGHT * (weight + WEIGHT * (n_near < LEAST_RATINGS ? LEAST_RATINGS - n_near : 0));
}

static void prepare(const device* self, const items* fitted, fit* work) {
  const uint32_t f = self->model.code_bits, m = self->model.item_count, n = fitted->n;
  const int64_t catalogue = catalogue_weight(fitted);
  /* The last row counts for all closed items; where there are none, for its own. */
  const uint32_t n_closed = open_of(self) ? m - self->open.n_open : 1;
  gather_codes(self, fitted->indices, n, work->rows);
  check(lfr_gram_open(self->codes.bytes, self->n_rows, f, n_closed, work->gram, work->column_sums), "lfr_gram_open");
  pull_to_mean(&self->model, work->gram, work->mean_pull);
  const lfr_fit_terms terms = {.code_bits = f,
                               .n_rows = n,
                               .rows = work->rows,
                               .targets = fitted->targets,
                               .weights = fitted->weights,
                               .row_factor = m,
                               .target_factor = m,
                               .gram = work->gram,
                               .gram_factor = catalogue + MEAN_PULL,
                               .column_sums = work->column_sums,
                               .column_factor = -catalogue * ((4 * f + 5) / 10),
                               .extra = work->mean_pull};
  check(lfr_fit_prepare(&terms, work->quadratic, work->linear), "lfr_fit_prepare");
}

void fit_user_code(device* self, const items* fitted, uint32_t max_sweeps) {
  const uint32_t f = self->model.code_bits;
  uint8_t from_signs[LFR_MAX_CODE_BITS / 8];
  int64_t old_loss, signs_loss;
  fit work = allocate_fit(f, fitted->n);
  prepare(self, fitted, &work);
  memcpy(from_signs, self->user_code, f / 8);
  check(lfr_fit_start(work.linear, f, from_signs), "lfr_fit_start");
  check(lfr_fit_sweep(work.quadratic, work.linear, f, max_sweeps, self->user_code, NULL, &old_loss), "lfr_fit_sweep");
  check(lfr_fit_sweep(work.quadratic, work.linear, f, max_sweeps, from_signs, NULL, &signs_loss), "lfr_fit_sweep");
  if (signs_loss < old_loss) memcpy(self->user_code, from_signs, f / 8);
  free_fit(&work);
}
