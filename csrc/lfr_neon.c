/* Placeholder until the NEON variant is merged. */
#include "lfr_impl.h"
