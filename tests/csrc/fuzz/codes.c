/* Signs, bits and rows; instruction sets by number. */
#include "fuzz.h"

static void signs_and_bits(input* in) {
  const size_t n = few(in, 80, 300);
  const int is_raw = number(in, 7) == 7;
  int8_t* signs = content(in, n);
  int is_valid = n % 8 == 0;
  for (size_t i = 0; i < n; i++) {
    if (!is_raw) signs[i] = signs[i] & 1 ? 1 : -1;
    is_valid &= signs[i] == 1 || signs[i] == -1;
  }
  int8_t *given = perhaps(in, signs), *back = room(in, n);
  uint8_t *packed = odd_room(in, n / 8), *taken = perhaps(in, packed);
  is_valid &= (given && taken) || n == 0;
  if (n && n < 8) taken = packed = odd_room(in, 1); /* a buffer of no bytes is NULL, which is refused first */
  REQUIRE_STATUS(is_valid, lfr_pack(given, n, taken));
  if (!is_valid) return;
  for (size_t i = 0; i < n; i++) REQUIRE(sign_at(packed, i) == signs[i]);
  REQUIRE_STATUS(1, lfr_unpack(packed, n, back));
  REQUIRE(same_bytes(back, signs, n));
}

static void gather(input* in) {
  const uint32_t f = code_length(in), n_items = number(in, 40), n = number(in, 60);
  const uint32_t code_bytes = is_code_length(f) ? f / 8 : 1;
  uint8_t *items = codes(in, n_items * code_bytes), *rows = odd_room(in, n * code_bytes);
  uint32_t* indices = content(in, n * sizeof *indices);
  int is_valid = is_code_length(f);
  for (uint32_t i = 0; i < n; i++) {
    if (n_items && indices[i] % 64) indices[i] %= n_items;
    is_valid &= indices[i] < n_items;
  }
  const uint8_t* from = perhaps(in, items);
  const uint32_t* wanted = perhaps(in, indices);
  uint8_t* to = perhaps(in, rows);
  is_valid &= n == 0 || (from && wanted && to);
  REQUIRE_STATUS(is_valid, lfr_gather(from, n_items, f, wanted, n, to));
  for (uint32_t i = 0; is_valid && i < n; i++)
    REQUIRE(same_bytes(rows + i * code_bytes, items + indices[i] * code_bytes, code_bytes));
}

static void instruction_sets(input* in) {
  const int isa = (int)number(in, 7) - 2 + (int)(number(in, 255) == 255) * (1 << 30);
  const int before = lfr_isa_selected(), is_there = lfr_isa_supported(isa);
  REQUIRE(lfr_abi_version() == LFR_ABI_VERSION);
  REQUIRE((lfr_isa_name(isa) != NULL) == (isa >= 0 && isa < 3));
  REQUIRE(!is_there || lfr_isa_name(isa));
  REQUIRE_STATUS(is_there, lfr_isa_select(isa));
  REQUIRE(lfr_isa_selected() == (is_there ? isa : before));
}

void fuzz_codes(input* in) {
  switch (number(in, 15)) {
    case 0: instruction_sets(in); break; /* rarely: it asks the processor */
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6: signs_and_bits(in); break;
    default: gather(in);
  }
}
