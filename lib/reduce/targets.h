// SPDX-License-Identifier: Apache-2.0
// The instruction sets that kernels are compiled for: AVX-512, AVX2 and NEON, and the portable
// fallback that Highway always adds. Others gain nothing here and cost compile time; scalable
// vectors (SVE, RVV) cannot be members of a struct. Include it before any Highway header.
#pragma once

#define WEFT_USELESS_TARGETS \
  (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// Under a sanitizer a target takes minutes to compile, and one of many lanes shows what there is. The
// fallback is the one of a lane, as with GCC 12: that of 16 bytes is many times slower with all checked.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HWY_BROKEN_EMU128 1
#define HWY_DISABLED_TARGETS (WEFT_USELESS_TARGETS | HWY_AVX3)
#else
#define HWY_DISABLED_TARGETS WEFT_USELESS_TARGETS
#endif
