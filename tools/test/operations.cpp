// SPDX-License-Identifier: Apache-2.0
#include "tools/test/operations.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace weft::test {
namespace {

constexpr std::array<Operation, 8> kOperations = {{
    {"all_reduce", "allr", "all_reduce"},
    {"all_gather", "allg", "all_gather"},
    {"reduce_scatter", "redsct", "reduce_scatter"},
    {"broadcast", "bcast", "broadcast"},
    {"alltoall", "alltoall", "alltoall"},
    {"alltoallv", "alltoallv", "alltoallv"},
    {"sendrecv", "sendrecv", "sendrecv"},
    {"permute", "permute", "sendrecv"},
}};

struct TypeName {
  const char* name;
  weftDataType_t type;
};

// nccom-test's, and then those that it has not.
constexpr std::array<TypeName, 10> kTypes = {{
    {"uint8", weftUint8},
    {"int8", weftInt8},
    {"fp16", weftFloat16},
    {"bf16", weftBfloat16},
    {"uint32", weftUint32},
    {"int32", weftInt32},
    {"fp32", weftFloat32},
    {"uint64", weftUint64},
    {"int64", weftInt64},
    {"fp64", weftFloat64},
}};

}  // namespace

std::span<const Operation> allOperations() { return kOperations; }

const Operation* findOperation(const std::string& name) {
  const auto found = std::ranges::find_if(kOperations, [&](const Operation& operation) {
    return name == operation.name || name == operation.alias;
  });
  return found == kOperations.end() ? nullptr : found;
}

const perf::TypeInfo& parseType(const std::string& name) {
  std::string names;
  for (const TypeName& type : kTypes) {
    if (name == type.name) return perf::typeInfo(type.type);
    names += std::string(" ") + type.name;
  }
  const bool narrow = name == "int16" || name == "uint16";
  throw std::invalid_argument(
      (narrow ? "weft has no integers of 16 bits" : "unknown data type '" + name + "'") +
      "; use one of" + names);
}

const char* nameOf(weftDataType_t type) {
  return std::ranges::find(kTypes, type, &TypeName::type)->name;
}

}  // namespace weft::test
