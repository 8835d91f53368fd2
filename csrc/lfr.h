/*
 * lightfr: bit kernels for recommendation with binary codes.
 *
 * Rules that hold for every function here:
 *   - The caller owns every buffer. Nothing is allocated, nothing is kept after the call returns, and there
 *     is no I/O. Functions may run on many threads at once as long as their output buffers differ.
 *   - A code of `code_bits` bits (8 to 1024, a multiple of 8) takes code_bits / 8 bytes. Code bit k is bit
 *     (k mod 8) of byte (k div 8); a set bit is +1, a clear bit is -1. A matrix is row-major without padding.
 *   - Buffers need no alignment beyond that of their element type. Inputs and outputs must not overlap.
 *   - The result is a status from `lfr_status`; on anything but LFR_OK the outputs are unspecified, except that
 *     no byte outside them was written. Every variant (ISA) gives the same bits as the portable one.
 *
 * Notation of the paper: b is a user code, d_i the code of item i, f = code_bits,
 * s_i = b . d_i = f - 2 * hamming(b, d_i).
 */
#ifndef LFR_H
#define LFR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LFR_API __attribute__((visibility("default")))
#else
#define LFR_API
#endif

/* The release. */
#define LFR_VERSION "0.1.0"

/* Raised by one whenever a caller built against an older header could break; README.md says when that is. */
#define LFR_ABI_VERSION 1

#define LFR_MIN_CODE_BITS 8
#define LFR_MAX_CODE_BITS 1024

/* Numbers are pinned and spaced by topic: 1x arguments, 2x arithmetic, 3x the machine. */
typedef enum lfr_status {
  LFR_OK = 0,
  LFR_ERR_NULL = 10,      /* a required pointer was NULL */
  LFR_ERR_CODE_BITS = 11, /* code_bits outside 8..1024 or no multiple of 8 */
  LFR_ERR_COUNT = 12,     /* a count, k, shift or number of bits outside its stated range */
  LFR_ERR_INDEX = 13,     /* a row index at or beyond n_items */
  LFR_ERR_VALUE = 14,     /* an element outside its stated domain */
  LFR_ERR_OVERFLOW = 20,  /* the exact result might not fit the integers used */
  LFR_ERR_ISA = 30        /* unknown ISA, or one this machine lacks */
} lfr_status;

/* ---- version and instruction sets ------------------------------------------------------------------------- */

typedef enum lfr_isa { LFR_ISA_PORTABLE = 0, LFR_ISA_AVX2 = 1, LFR_ISA_NEON = 2 } lfr_isa;

LFR_API uint32_t lfr_abi_version(void);

/* 1 when this build holds the variant and this machine can run it, else 0. */
LFR_API int lfr_isa_supported(int isa);

/* Makes `isa` the variant of all later calls in this process. Returns LFR_OK or LFR_ERR_ISA. */
LFR_API int lfr_isa_select(int isa);

/* The variant in use. The first call of any kernel picks the one named by the environment variable LIGHTFR_ISA
 * (portable, avx2, neon) if the machine has it, else the fastest that the machine has. */
LFR_API int lfr_isa_selected(void);

/* "portable", "avx2", "neon"; NULL for an unknown number. */
LFR_API const char* lfr_isa_name(int isa);

/* ---- codes ------------------------------------------------------------------------------------------------ */

/* Signs (int8, each -1 or +1) to bits. n_signs is a multiple of 8; `codes` has n_signs / 8 bytes.
 * LFR_ERR_VALUE when a sign is neither -1 nor +1. */
LFR_API int lfr_pack(const int8_t* signs, size_t n_signs, uint8_t* codes);

/* Bits to signs: the inverse of lfr_pack. */
LFR_API int lfr_unpack(const uint8_t* codes, size_t n_signs, int8_t* signs);

/* Copies rows `indices[0..n)` of `items` to `rows` (n * code_bits / 8 bytes), in that order. */
LFR_API int lfr_gather(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint32_t* indices, uint32_t n,
                       uint8_t* rows);

/* ---- search ----------------------------------------------------------------------------------------------- */

typedef struct lfr_hit {
  uint32_t item_index;
  uint32_t distance; /* Hamming distance to the query, 0 .. code_bits */
} lfr_hit;

/* Hamming distance of `query` to each of n_items rows; `distances` has n_items elements. */
LFR_API int lfr_distances(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query,
                          uint16_t* distances);

/*
 * The k nearest rows, exactly, by (distance, item_index) ascending: ties go to the lower index.
 * `exclude` is NULL or a bitmap of (n_items + 7) / 8 bytes; a set bit i (bit i mod 8 of byte i div 8) leaves row i out.
 * `hits` has room for k (1 .. 2^31-1); *n_hits is how many were found, which is less than k only when fewer than
 * k rows are not excluded.
 */
LFR_API int lfr_topk(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query,
                     const uint8_t* exclude, uint32_t k, lfr_hit* hits, uint32_t* n_hits);

/*
 * lfr_topk for n_queries queries (rows of `queries`) in one pass over the items. Hits of query j start at
 * hits[j * k]. `excludes` is NULL or n_queries bitmaps of (n_items + 7) / 8 bytes, one behind the other.
 */
LFR_API int lfr_topk_batch(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* queries,
                           uint32_t n_queries, const uint8_t* excludes, uint32_t k, lfr_hit* hits, uint32_t* n_hits);

#define LFR_MAX_STEPS 64
#define LFR_MAX_OFFSET 1048576

/* Rows from first_item up to the first_item of the next step, or to the end, have this offset. */
typedef struct lfr_step {
  uint32_t first_item;
  int32_t offset; /* -LFR_MAX_OFFSET .. LFR_MAX_OFFSET */
} lfr_step;

/* A popularity prior: 1 .. LFR_MAX_STEPS steps. The first begins at row 0, first_item ascends, no offset is higher than
 * the one before it. LFR_ERR_COUNT or LFR_ERR_VALUE otherwise. Steps that begin behind the last row count for nothing.
 */
typedef struct lfr_prior {
  const lfr_step* steps;
  uint32_t n_steps;
} lfr_prior;

/*
 * lfr_topk and lfr_topk_batch by score instead of distance: score = code_bits - 2 distance + offset of the row's step,
 * highest first, ties to the lower index. A NULL prior: every offset is 0. Hits have distances, as without a prior.
 * A step that no row of can enter any more ends the scan.
 */
LFR_API int lfr_topk_prior(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* query,
                           const uint8_t* exclude, const lfr_prior* prior, uint32_t k, lfr_hit* hits, uint32_t* n_hits);
LFR_API int lfr_topk_batch_prior(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* queries,
                                 uint32_t n_queries, const uint8_t* excludes, const lfr_prior* prior, uint32_t k,
                                 lfr_hit* hits, uint32_t* n_hits);

/* ---- open items ---- a catalogue of which only some items have a row of their own ---------------------------- */

#define LFR_OPEN_BLOCK 512

/*
 * Which of n_items items are open: a bitmap of (n_items + 7) / 8 bytes, in which item i is bit (i mod 8) of byte
 * (i div 8). The code matrix then has n_open + 1 rows: one for each open item, by ascending index, and behind them the
 * one that all closed items share. Fill `before` and `n_open` by lfr_open_count; the struct points to your buffers.
 */
typedef struct lfr_open {
  const uint8_t* bitmap;
  const uint32_t* before; /* how many items are open before each block of LFR_OPEN_BLOCK */
  uint32_t n_items;
  uint32_t n_open;
} lfr_open;

/* Counts the open items: n_items / LFR_OPEN_BLOCK + 1 numbers to `before`, their total to *n_open. LFR_ERR_VALUE when a
 * bit behind the last item is set. */
LFR_API int lfr_open_count(const uint8_t* bitmap, uint32_t n_items, uint32_t* before, uint32_t* n_open);

/* The rows of the items `indices[0..n)`, for lfr_gather; closed items have row n_open. */
LFR_API int lfr_open_rows(const lfr_open* open, const uint32_t* indices, uint32_t n, uint32_t* rows);

/*
 * lfr_topk_prior and lfr_topk_batch_prior on such a matrix, exactly as if every closed item had a copy of the shared
 * row. `exclude`, `excludes`, `prior` and the hits go by item index. n_rows must be open->n_open + 1 (LFR_ERR_COUNT
 * otherwise). With a NULL `open` every item has its row.
 */
LFR_API int lfr_topk_open(const uint8_t* items, uint32_t n_rows, uint32_t code_bits, const uint8_t* query,
                          const uint8_t* exclude, const lfr_prior* prior, const lfr_open* open, uint32_t k,
                          lfr_hit* hits, uint32_t* n_hits);
LFR_API int lfr_topk_batch_open(const uint8_t* items, uint32_t n_rows, uint32_t code_bits, const uint8_t* queries,
                                uint32_t n_queries, const uint8_t* excludes, const lfr_prior* prior,
                                const lfr_open* open, uint32_t k, lfr_hit* hits, uint32_t* n_hits);

/* ---- training on the device ------------------------------------------------------------------------------- */

/*
 * Gram matrix and column sums of a code matrix: gram[j * f + k] = sum_i d_ij d_ik, column_sums[k] = sum_i d_ik.
 * Counted from bit planes, about n_items * f^2 / 128 word operations. Exact: entries are at most n_items.
 */
LFR_API int lfr_gram(const uint8_t* items, uint32_t n_items, uint32_t code_bits, int64_t* gram, int64_t* column_sums);

/* lfr_gram of a matrix of n_rows rows, the last of which counts n_closed times. */
LFR_API int lfr_gram_open(const uint8_t* items, uint32_t n_rows, uint32_t code_bits, uint32_t n_closed, int64_t* gram,
                          int64_t* column_sums);

/*
 * What a user code is fitted to. The fit seeks signs b that make, for every bit k,
 *     g_k = linear_k - sum_{j != k} quadratic_kj b_j,      b_k = sign(g_k), zero keeps the old bit,
 * where
 *     quadratic = row_factor * sum_i w_i d_i d_i^T + gram_factor * gram + balance (every entry)
 *     linear    = target_factor * sum_i w_i t_i d_i + column_factor * column_sums + extra
 * The paper's user update and the catalogue objective are both of this form with integer factors, so that no
 * rounding takes place; docs/protocol.md gives the factors.
 */
typedef struct lfr_fit_terms {
  uint32_t code_bits;
  uint32_t n_rows;         /* rated items, 0 is allowed */
  const uint8_t* rows;     /* their codes, n_rows * code_bits / 8 bytes */
  const int32_t* targets;  /* t_i, n_rows of them */
  const uint16_t* weights; /* w_i, n_rows of them; NULL: every weight is 1 */
  int64_t row_factor;      /* >= 0 */
  int64_t target_factor;
  const int64_t* gram; /* f * f of them, or NULL: no catalogue term */
  int64_t gram_factor;
  const int64_t* column_sums; /* f of them, or NULL: none */
  int64_t column_factor;
  const int64_t* extra; /* f of them, or NULL: none */
  int64_t balance;      /* >= 0; 0: none */
} lfr_fit_terms;

/* Writes quadratic (f * f) and linear (f). LFR_ERR_OVERFLOW unless every sum of the sweep stays below 2^61. */
LFR_API int lfr_fit_prepare(const lfr_fit_terms* terms, int64_t* quadratic, int64_t* linear);

/* Sets each bit of `code` to the sign of its linear term, a start for the sweeps; zero keeps the old bit. */
LFR_API int lfr_fit_start(const int64_t* linear, uint32_t code_bits, uint8_t* code);

/*
 * Discrete coordinate descent from `code`, in place: bits in order 0 .. f-1, later bits see earlier flips, until a
 * sweep changes nothing or max_sweeps (1 .. 65535) are done. `quadratic` must be symmetric; its diagonal is ignored.
 * *sweeps is the number done. *loss is b.offdiag(quadratic).b / 2 - b.linear of the result: lower is better, and
 * losses of two starts of the same problem can be compared. Both may be NULL.
 * Whatever lfr_fit_prepare made is accepted; LFR_ERR_OVERFLOW when entries made elsewhere could overflow a sum.
 */
LFR_API int lfr_fit_sweep(const int64_t* quadratic, const int64_t* linear, uint32_t code_bits, uint32_t max_sweeps,
                          uint8_t* code, uint32_t* sweeps, int64_t* loss);

/*
 * Refines a fitted code for use by single bit flips that raise
 *     sum_i w_i s_i / T - (sum_i w_i) ln sum_j exp(s_j / T),
 * i over the rated rows and j over all items: a ranking objective, in integers. The temperature T comes as
 * step = 65536 (2 / T) / ln 2, down = 65536 exp(-2 / T) and up = 65536 exp(2 / T), each rounded; down is 1 .. 65535,
 * up is 65537 .. 131072, step is 1 .. 2^20. n_items and n_rows are at most 2^24. Bits in order 0 .. f-1, until a sweep
 * flips nothing or max_sweeps (1 .. 65535) are done. `distances` is scratch for n_items elements. Costs n_items * f
 * look-ups a sweep. Without rows, or where all weights are zero, the code stays as it is.
 */
typedef struct lfr_temperature {
  int32_t step;
  uint32_t down;
  uint32_t up;
} lfr_temperature;

LFR_API int lfr_refine(const uint8_t* items, uint32_t n_items, uint32_t code_bits, const uint8_t* rows,
                       const uint16_t* weights, uint32_t n_rows, const lfr_temperature* temperature,
                       uint32_t max_sweeps, uint16_t* distances, uint8_t* code);

/* lfr_refine against a matrix of n_rows rows, the last of which counts n_closed times. n_rows - 1 + n_closed is at most
 * 2^24. `distances` is scratch for n_rows elements. */
LFR_API int lfr_refine_open(const uint8_t* items, uint32_t n_rows, uint32_t code_bits, uint32_t n_closed,
                            const uint8_t* rows, const uint16_t* weights, uint32_t n_rated,
                            const lfr_temperature* temperature, uint32_t max_sweeps, uint16_t* distances,
                            uint8_t* code);

/*
 * Gradients of the rated rows: gradients[i * f + k] = (t_i - scale * s_i) b_k + scale * d_ik.
 * scale is 1 .. 2^19 and |t_i| <= 2^30 (else LFR_ERR_VALUE), so elements fit int32.
 */
LFR_API int lfr_row_gradients(const uint8_t* rows, uint32_t n_rows, uint32_t code_bits, const uint8_t* code,
                              const int32_t* targets, int32_t scale, int32_t* gradients);

/*
 * Unbiased ternary rounding: element g becomes sign(g) when u * full < |g| * 65536, else 0, where u is the
 * element's 16-bit little-endian number in `random` (2 * n bytes from a cryptographic source). full is 1 .. 2^24.
 * n is a multiple of 8. The result is two bit planes in the layout of codes, n / 8 bytes each:
 * `nonzero`, and `positive`, which is 0 wherever nonzero is 0.
 */
LFR_API int lfr_ternary(const int32_t* gradients, size_t n, int32_t full, const uint8_t* random, uint8_t* nonzero,
                        uint8_t* positive);

/* ---- aggregation ------------------------------------------------------------------------------------------ */

/*
 * Adds ternary rows to the sums of a matrix: element k of row i goes to sums[indices[i] * code_bits + k].
 * `sums` has n_items * code_bits elements. Before anything is added: LFR_ERR_INDEX for an index that is not below
 * n_items, LFR_ERR_VALUE when `positive` has a bit that `nonzero` lacks, LFR_ERR_OVERFLOW when a sum of these rows
 * stands less than n_rows from an end of int32, for an index may come more than once.
 */
LFR_API int lfr_ternary_add(const uint8_t* nonzero, const uint8_t* positive, const uint32_t* indices, uint32_t n_rows,
                            uint32_t code_bits, uint32_t n_items, int32_t* sums);

/*
 * The server rule: memory <- memory - (memory >> shift) + sums, and each code bit becomes the sign of its memory;
 * zero keeps the old bit. The shift is arithmetic (rounds down), 0 .. 31; memory saturates at the int32 range.
 * n is a multiple of 8; `codes` has n / 8 bytes.
 */
LFR_API int lfr_aggregate(const int32_t* sums, size_t n, uint32_t shift, int32_t* memory, uint8_t* codes);

/* ---- secure aggregation ----------------------------------------------------------------------------------- */

/*
 * Adds a mask to n values in place, mod 2^16 or 2^32, or subtracts it when `subtract` is not 0. `stream` is the mask as
 * little-endian numbers, 2 * n or 4 * n bytes at any address, from a stream cipher; docs/secagg.md says which.
 */
LFR_API int lfr_mask16(uint16_t* values, size_t n, const uint8_t* stream, int subtract);
LFR_API int lfr_mask32(uint32_t* values, size_t n, const uint8_t* stream, int subtract);

/*
 * Adds noise of -1, 0 or +1 to each of n values, mod 2^16. Value i gets +1 when u < threshold, -1 when
 * u >= 65536 - threshold, else 0, where u = random[2 i] + 256 random[2 i + 1]; so `random` has 2 n bytes, which must be
 * cryptographic. threshold is 0 .. 32768, else LFR_ERR_VALUE; the noise has the variance threshold / 32768.
 */
LFR_API int lfr_ternary_noise(uint16_t* values, size_t n, uint32_t threshold, const uint8_t* random);

/*
 * Packs the low `bits` bits (1 .. 16 or 1 .. 32) of n values: value i takes the bits i * bits .. of the result, low bit
 * first, where bit j of the result is bit (j mod 8) of byte (j div 8). `packed` has (n * bits + 7) / 8 bytes; what is
 * left of the last is zero.
 */
LFR_API int lfr_pack_bits16(const uint16_t* values, size_t n, uint32_t bits, uint8_t* packed);
LFR_API int lfr_pack_bits32(const uint32_t* values, size_t n, uint32_t bits, uint8_t* packed);

/*
 * Adds n packed values to sums, mod 2^16 or 2^32; only the low `bits` bits of a sum mean anything then. LFR_ERR_VALUE
 * when a bit behind the last value is set, before anything is added.
 */
LFR_API int lfr_unpack_add16(const uint8_t* packed, size_t n, uint32_t bits, uint16_t* sums);
LFR_API int lfr_unpack_add32(const uint8_t* packed, size_t n, uint32_t bits, uint32_t* sums);

#ifdef __cplusplus
}
#endif
#endif
