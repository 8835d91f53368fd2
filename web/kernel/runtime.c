/* What a module needs beside csrc/: the variant that its build chose, in place of lfr_dispatch.c, and one function of
 * the compiler's own library, which is not linked. */
#include "lfr_impl.h"

const lfr_variant* lfr_current(void) {
#ifdef LFR_HAVE_WASM
  return &lfr_wasm;
#else
  return &lfr_portable;
#endif
}

/* Clang asks whether a product overflows by a product of 128 bits. Here it is made of products of 32 bits. */
unsigned __int128 __multi3(unsigned __int128 a, unsigned __int128 b) {
  const uint64_t a_low = (uint32_t)a, a_high = (uint64_t)a >> 32, b_low = (uint32_t)b, b_high = (uint64_t)b >> 32;
  const uint64_t low = a_low * b_low, middle = a_high * b_low + (low >> 32), other = a_low * b_high + (uint32_t)middle;
  const uint64_t high = a_high * b_high + (middle >> 32) + (other >> 32);
  const uint64_t outer = (uint64_t)(a >> 64) * (uint64_t)b + (uint64_t)a * (uint64_t)(b >> 64);
  return (unsigned __int128)(high + outer) << 64 | (other << 32 | (uint32_t)low);
}
