// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "transports/wire/symbols.h"

namespace weft::ofi {

// fi_info has grown over the years, and each library still serves the older forms under the older
// versions of its symbols: ask for the form that this file was compiled with.
#if FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 20
inline constexpr const char* kInfoAbi = "FABRIC_1.3";
#elif FI_MAJOR_VERSION == 1
inline constexpr const char* kInfoAbi = "FABRIC_1.7";
#else
inline constexpr const char* kInfoAbi = "FABRIC_1.8";
#endif

// libfabric, opened when it is first needed: weft loads and runs without it. Only these functions
// are symbols; all others are inline calls through the tables of the objects.
struct Library {
  explicit Library(void* handle) : symbol(handle) {}

  wire::Symbols symbol;
  decltype(fi_version)* version = symbol("fi_version");
  decltype(fi_getinfo)* getinfo = symbol("fi_getinfo", kInfoAbi);
  decltype(fi_freeinfo)* freeinfo = symbol("fi_freeinfo", kInfoAbi);
  decltype(fi_dupinfo)* dupinfo = symbol("fi_dupinfo", kInfoAbi);
  decltype(fi_fabric)* fabric = symbol("fi_fabric");
  decltype(fi_strerror)* strerror = symbol("fi_strerror");
};

// The library of this process.
Status openLibrary(const Library** out);

// Has ofi_rxm over tcp keep no more ready than weft uses, and connect sooner. `messages`: payloads are to
// travel in messages. libfabric reads that once, at the first question to it; what the environment says
// already stays.
void setDefaults(bool messages);

// What a negative result of libfabric means: "Cannot allocate memory (-12); fix: ...".
std::string reason(const Library&, const std::string& provider, std::int64_t result);

}  // namespace weft::ofi
