/*
 * The targets without libFuzzer, for every compiler and machine: each seed as it is, then with some bytes spoilt or cut
 * off, always the same ones. A seed's file is named TARGET-ANYTHING. Usage: fuzz_seeds RUNS SEED_FILE ...
 */
#include "fuzz.h"

enum { MOST_BYTES = 1 << 16 };

static uint64_t state = UINT64_C(0x6c69676874667221);

static uint32_t random_below(size_t n) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)((state * UINT64_C(2685821657736338717) >> 32) % n);
}

static const target* target_of(const char* path) {
  const char* name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  const target* found = targets;
  while (found->name && (strncmp(name, found->name, strlen(found->name)) || name[strlen(found->name)] != '-')) found++;
  return found->name ? found : NULL;
}

static void run_once(const target* with, const uint8_t* bytes, size_t size) {
  input in = start_input(bytes, size);
  with->run(&in);
  end_input(&in);
}

static size_t spoil(const uint8_t* seed, size_t size, uint8_t* spoilt) {
  memcpy(spoilt, seed, size);
  for (uint32_t changes = 1 + random_below(4); size && changes; changes--) {
    const uint32_t early = random_below(size < 16 ? size : 16), anywhere = random_below(size);
    const uint32_t at = random_below(2) ? early : anywhere; /* the first bytes decide most */
    spoilt[at] = (uint8_t)(random_below(2) ? random_below(256) : spoilt[at] ^ 1u << random_below(8));
  }
  return random_below(4) ? size : random_below(size + 1);
}

static int run_file(const char* path, int runs) {
  static uint8_t seed[MOST_BYTES], spoilt[MOST_BYTES];
  const target* with = target_of(path);
  FILE* file = with ? fopen(path, "rb") : NULL;
  if (!file) {
    fprintf(stderr, "%s is no seed: its name must begin with a target and a hyphen\n", path);
    return 1;
  }
  const size_t size = fread(seed, 1, sizeof seed, file);
  fclose(file);
  run_once(with, seed, size);
  for (int i = 0; i < runs; i++) run_once(with, spoilt, spoil(seed, size, spoilt));
  return 0;
}

int main(int n_arguments, char** arguments) {
  int failed = n_arguments < 3;
  const int runs = failed ? 0 : atoi(arguments[1]);
  for (int i = 2; i < n_arguments; i++) failed |= run_file(arguments[i], runs);
  if (!failed) printf("%d seeds, each spoilt %d times: every variant equals the oracle\n", n_arguments - 2, runs);
  return failed;
}
