// SPDX-License-Identifier: Apache-2.0
#pragma once

// Is this a build whose tests sweep less: with a sanitizer, or not optimized?
namespace weft::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
inline constexpr bool kSlowBuild = true;
#else
inline constexpr bool kSlowBuild = false;
#endif

}  // namespace weft::test
