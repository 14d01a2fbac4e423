// SPDX-License-Identifier: Apache-2.0
// The operations and element types of the command line, by nccom-test's names.
#pragma once

#include <span>
#include <string>

#include "perf/weft-perf/collective.h"
#include "perf/weft-perf/types.h"

namespace weft::test {

struct Operation {
  const char* name;
  const char* alias;       // nccom-test's short name, or the name again
  const char* collective;  // weft-perf's row that measures it
};

std::span<const Operation> allOperations();
// Null if there is none of that name.
const Operation* findOperation(const std::string& name);

// "fp32". Throws std::invalid_argument that lists the names.
const perf::TypeInfo& parseType(const std::string& name);
const char* nameOf(weftDataType_t type);

}  // namespace weft::test
