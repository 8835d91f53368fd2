/* Everything that asks the machine what it can do. */
#include <stdlib.h>

#include "lfr_impl.h"

#ifdef LFR_HAVE_AVX2
#include <cpuid.h>

/* Whether the processor has AVX2 and POPCNT, and the system saves the registers that AVX widens. Asked directly:
 * __builtin_cpu_supports needs a symbol that the run-time library of some compilers lacks. */
static int has_avx2(void) {
  const unsigned wanted = bit_POPCNT | bit_OSXSAVE | bit_AVX, saved = 6;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & wanted) != wanted) return 0;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & saved) == saved && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2) != 0;
}
#endif

static const lfr_variant* const variants[] = {
    [LFR_ISA_PORTABLE] = &lfr_portable,
#ifdef LFR_HAVE_AVX2
    [LFR_ISA_AVX2] = &lfr_avx2,
#endif
#ifdef LFR_HAVE_NEON
    [LFR_ISA_NEON] = &lfr_neon,
#endif
};
static const char* const names[] = {[LFR_ISA_PORTABLE] = "portable", [LFR_ISA_AVX2] = "avx2", [LFR_ISA_NEON] = "neon"};

#define N_NAMES ((int)(sizeof names / sizeof names[0]))
#define N_VARIANTS ((int)(sizeof variants / sizeof variants[0]))

/* -1 until the first use. */
static int selected = -1;

uint32_t lfr_abi_version(void) { return LFR_ABI_VERSION; }

const char* lfr_isa_name(int isa) { return isa >= 0 && isa < N_NAMES ? names[isa] : NULL; }

int lfr_isa_supported(int isa) {
  if (isa < 0 || isa >= N_VARIANTS || !variants[isa]) return 0;
#ifdef LFR_HAVE_AVX2
  if (isa == LFR_ISA_AVX2) return has_avx2();
#endif
  return 1;
}

static int fastest(void) {
  for (int isa = N_NAMES - 1; isa > 0; isa--)
    if (lfr_isa_supported(isa)) return isa;
  return LFR_ISA_PORTABLE;
}

static int from_environment(void) {
  const char* wanted = getenv("LIGHTFR_ISA");
  for (int isa = 0; wanted && isa < N_NAMES; isa++)
    if (!strcmp(wanted, names[isa]) && lfr_isa_supported(isa)) return isa;
  return fastest();
}

int lfr_isa_select(int isa) {
  if (!lfr_isa_supported(isa)) return LFR_ERR_ISA;
  __atomic_store_n(&selected, isa, __ATOMIC_RELEASE);
  return LFR_OK;
}

/* A first use that races with lfr_isa_select must not undo it: the default goes in only where nothing stands yet. */
int lfr_isa_selected(void) {
  int isa = __atomic_load_n(&selected, __ATOMIC_ACQUIRE);
  if (isa >= 0) return isa;
  const int wanted = from_environment();
  const int stored = __atomic_compare_exchange_n(&selected, &isa, wanted, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return stored ? wanted : isa;
}

const lfr_variant* lfr_current(void) { return variants[lfr_isa_selected()]; }
