/*
 * What a program that was built against ABI 1 relies on, checked when this is compiled: enum values, struct layouts and
 * prototypes. Where a check fails, the change needs a new ABI version: csrc/README.md, "ABI".
 */
#include <stddef.h>

#include "lfr.h"

#define PINNED(what, value) _Static_assert((what) == (value), #what " is part of ABI 1")

PINNED(LFR_ABI_VERSION, 1);
PINNED(LFR_MIN_CODE_BITS, 8);
PINNED(LFR_MAX_CODE_BITS, 1024);

PINNED(LFR_OK, 0);
PINNED(LFR_ERR_NULL, 10);
PINNED(LFR_ERR_CODE_BITS, 11);
PINNED(LFR_ERR_COUNT, 12);
PINNED(LFR_ERR_INDEX, 13);
PINNED(LFR_ERR_VALUE, 14);
PINNED(LFR_ERR_OVERFLOW, 20);
PINNED(LFR_ERR_ISA, 30);

PINNED(LFR_ISA_PORTABLE, 0);
PINNED(LFR_ISA_AVX2, 1);
PINNED(LFR_ISA_NEON, 2);

PINNED(sizeof(lfr_hit), 8);
PINNED(offsetof(lfr_hit, item_index), 0);
PINNED(offsetof(lfr_hit, distance), 4);

PINNED(LFR_OPEN_BLOCK, 512);
PINNED(sizeof(lfr_open), 2 * sizeof(void*) + 8);
PINNED(offsetof(lfr_open, bitmap), 0);
PINNED(offsetof(lfr_open, before), sizeof(void*));
PINNED(offsetof(lfr_open, n_items), 2 * sizeof(void*));
PINNED(offsetof(lfr_open, n_open), 2 * sizeof(void*) + 4);

PINNED(sizeof(lfr_temperature), 12);
PINNED(offsetof(lfr_temperature, step), 0);
PINNED(offsetof(lfr_temperature, down), 4);
PINNED(offsetof(lfr_temperature, up), 8);

/* Offsets on machines of 64 bits, and on 32-bit ARM. */
#if UINTPTR_MAX == UINT64_MAX
#define FIT_TERM(field, offset64, offset32) PINNED(offsetof(lfr_fit_terms, field), offset64)
PINNED(sizeof(lfr_fit_terms), 96);
#elif defined(__arm__)
#define FIT_TERM(field, offset64, offset32) PINNED(offsetof(lfr_fit_terms, field), offset32)
PINNED(sizeof(lfr_fit_terms), 88);
#else
#define FIT_TERM(field, offset64, offset32) _Static_assert(1, "not pinned on this machine")
#endif

FIT_TERM(code_bits, 0, 0);
FIT_TERM(n_rows, 4, 4);
FIT_TERM(rows, 8, 8);
FIT_TERM(targets, 16, 12);
FIT_TERM(weights, 24, 16);
FIT_TERM(row_factor, 32, 24);
FIT_TERM(target_factor, 40, 32);
FIT_TERM(gram, 48, 40);
FIT_TERM(gram_factor, 56, 48);
FIT_TERM(column_sums, 64, 56);
FIT_TERM(column_factor, 72, 64);
FIT_TERM(extra, 80, 72);
FIT_TERM(balance, 88, 80);

/* Declared a second time: a compiler refuses a prototype that differs. */
uint32_t lfr_abi_version(void);
int lfr_isa_supported(int);
int lfr_isa_select(int);
int lfr_isa_selected(void);
const char* lfr_isa_name(int);
int lfr_pack(const int8_t*, size_t, uint8_t*);
int lfr_unpack(const uint8_t*, size_t, int8_t*);
int lfr_gather(const uint8_t*, uint32_t, uint32_t, const uint32_t*, uint32_t, uint8_t*);
int lfr_distances(const uint8_t*, uint32_t, uint32_t, const uint8_t*, uint16_t*);
int lfr_topk(const uint8_t*, uint32_t, uint32_t, const uint8_t*, const uint8_t*, uint32_t, lfr_hit*, uint32_t*);
int lfr_topk_batch(const uint8_t*, uint32_t, uint32_t, const uint8_t*, uint32_t, const uint8_t*, uint32_t, lfr_hit*,
                   uint32_t*);
int lfr_topk_prior(const uint8_t*, uint32_t, uint32_t, const uint8_t*, const uint8_t*, const lfr_prior*, uint32_t,
                   lfr_hit*, uint32_t*);
int lfr_topk_batch_prior(const uint8_t*, uint32_t, uint32_t, const uint8_t*, uint32_t, const uint8_t*, const lfr_prior*,
                         uint32_t, lfr_hit*, uint32_t*);
int lfr_open_count(const uint8_t*, uint32_t, uint32_t*, uint32_t*);
int lfr_open_rows(const lfr_open*, const uint32_t*, uint32_t, uint32_t*);
int lfr_topk_open(const uint8_t*, uint32_t, uint32_t, const uint8_t*, const uint8_t*, const lfr_prior*, const lfr_open*,
                  uint32_t, lfr_hit*, uint32_t*);
int lfr_topk_batch_open(const uint8_t*, uint32_t, uint32_t, const uint8_t*, uint32_t, const uint8_t*, const lfr_prior*,
                        const lfr_open*, uint32_t, lfr_hit*, uint32_t*);
int lfr_gram(const uint8_t*, uint32_t, uint32_t, int64_t*, int64_t*);
int lfr_gram_open(const uint8_t*, uint32_t, uint32_t, uint32_t, int64_t*, int64_t*);
int lfr_fit_prepare(const lfr_fit_terms*, int64_t*, int64_t*);
int lfr_fit_start(const int64_t*, uint32_t, uint8_t*);
int lfr_fit_sweep(const int64_t*, const int64_t*, uint32_t, uint32_t, uint8_t*, uint32_t*, int64_t*);
int lfr_refine(const uint8_t*, uint32_t, uint32_t, const uint8_t*, const uint16_t*, uint32_t, const lfr_temperature*,
               uint32_t, uint16_t*, uint8_t*);
int lfr_refine_open(const uint8_t*, uint32_t, uint32_t, uint32_t, const uint8_t*, const uint16_t*, uint32_t,
                    const lfr_temperature*, uint32_t, uint16_t*, uint8_t*);
int lfr_row_gradients(const uint8_t*, uint32_t, uint32_t, const uint8_t*, const int32_t*, int32_t, int32_t*);
int lfr_ternary(const int32_t*, size_t, int32_t, const uint8_t*, uint8_t*, uint8_t*);
int lfr_ternary_add(const uint8_t*, const uint8_t*, const uint32_t*, uint32_t, uint32_t, uint32_t, int32_t*);
int lfr_aggregate(const int32_t*, size_t, uint32_t, int32_t*, uint8_t*);
int lfr_mask16(uint16_t*, size_t, const uint8_t*, int);
int lfr_mask32(uint32_t*, size_t, const uint8_t*, int);
int lfr_ternary_noise(uint16_t*, size_t, uint32_t, const uint8_t*);
int lfr_pack_bits16(const uint16_t*, size_t, uint32_t, uint8_t*);
int lfr_pack_bits32(const uint32_t*, size_t, uint32_t, uint8_t*);
int lfr_unpack_add16(const uint8_t*, size_t, uint32_t, uint16_t*);
int lfr_unpack_add32(const uint8_t*, size_t, uint32_t, uint32_t*);
