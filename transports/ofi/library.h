// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

#include "base/status.h"

// libfabric, opened when it is first needed: weft loads and runs without it. Only these functions
// are symbols; all others are inline calls through the tables of the objects.
namespace weft::ofi {

struct Library {
  int (*getinfo)(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                 const fi_info* hints, fi_info** info) = nullptr;
  void (*freeinfo)(fi_info*) = nullptr;
  fi_info* (*dupinfo)(const fi_info*) = nullptr;
  int (*fabric)(fi_fabric_attr*, fid_fabric**, void* context) = nullptr;
  std::uint32_t (*version)() = nullptr;
  const char* (*strerror)(int) = nullptr;
};

// The same library for the whole process; it is never closed, since it hands out code and state.
Status openLibrary(const Library** out);

// What a negative result of libfabric means, with the fix where one is known: "Cannot allocate
// memory (-12); fix: ...".
std::string reason(const Library&, const std::string& provider, std::int64_t result);

}  // namespace weft::ofi
