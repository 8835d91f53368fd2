/* One target, named by -DTARGET=search, for libFuzzer. */
#include "fuzz.h"

#define JOIN(a, b) a##b
#define TARGET_OF(name) JOIN(fuzz_, name)

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  input in = start_input(bytes, size);
  TARGET_OF(TARGET)(&in);
  end_input(&in);
  return 0;
}
