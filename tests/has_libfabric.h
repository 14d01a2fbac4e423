// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <rdma/fabric.h>

#include <cstdlib>

namespace weft::test {

// Null where there is none, and for ThreadSanitizer, which does not see the locks of a library that
// is not built with it.
inline void* libfabric() {
#if defined(__SANITIZE_THREAD__)
  return nullptr;
#else
  static void* const library = ::dlopen("libfabric.so.1", RTLD_LAZY | RTLD_LOCAL);
  return library;
#endif
}

inline bool hasLibfabric() { return libfabric() != nullptr; }

// What weft sets before its first question to libfabric, which reads it then and never again; see
// ofi::setDefaults(). By libfabric's own settings each rank clears 34 MiB.
inline void setLibfabricUp(const char* bytesOfBuffer) {
  ::setenv("FI_OFI_RXM_MSG_RX_SIZE", "16", 0);
  ::setenv("FI_OFI_RXM_MSG_TX_SIZE", "8", 0);
  ::setenv("FI_OFI_RXM_CM_PROGRESS_INTERVAL", "1000", 0);
  ::setenv("FI_OFI_RXM_BUFFER_SIZE", bytesOfBuffer, 0);
}

// At its first call libfabric reads all symbols of the kernel, twice: 90 ms of a core that ranks
// which are forked afterwards need not spend. A device that a rig preloads is each rank's own.
inline void warmLibfabric(const char* bytesOfBuffer = "128") {
  if (!hasLibfabric() || std::getenv("LD_PRELOAD") != nullptr) return;
  setLibfabricUp(bytesOfBuffer);
  const auto ask = reinterpret_cast<decltype(&::fi_getinfo)>(::dlsym(libfabric(), "fi_getinfo"));
  const auto free = reinterpret_cast<decltype(&::fi_freeinfo)>(::dlsym(libfabric(), "fi_freeinfo"));
  fi_info* providers = nullptr;
  if (ask(FI_VERSION(1, 17), nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, &providers) == 0)
    free(providers);
}

}  // namespace weft::test
