// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

namespace weft::test {

// Not a call of libfabric: tests fork after it. ThreadSanitizer does not see the locks of a library
// that is not built with it.
inline bool hasLibfabric() {
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  static void* const library = ::dlopen("libfabric.so.1", RTLD_LAZY | RTLD_LOCAL);
  return library != nullptr;
#endif
}

}  // namespace weft::test
