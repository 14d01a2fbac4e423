// SPDX-License-Identifier: Apache-2.0
// The element types and reductions of the command line, by nccl-tests' names.
#pragma once

#include <weft/weft.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace weft::perf {

struct TypeInfo {
  weftDataType_t type;
  const char* name;   // nccl-tests' name
  const char* alias;  // the short name
  std::size_t bytes;
};

// MulSum is made with weftRedOpCreatePreMulSum; None is a collective that only moves data.
enum class Op { None, Sum, Prod, Max, Min, Avg, Band, Bor, Bxor, MulSum };

struct OpInfo {
  Op op;
  const char* name;
  weftRedOp_t builtIn;  // of MulSum: unused
};

std::span<const TypeInfo> allTypes();
std::span<const OpInfo> allOps();
const TypeInfo& typeInfo(weftDataType_t type);
const OpInfo& noOp();  // "none", as nccl-tests prints it

// Bitwise operations are of integers only.
bool suits(const OpInfo& op, const TypeInfo& type);

// "float" or "all". Throws std::invalid_argument that lists the names.
std::vector<TypeInfo> parseTypes(const std::string& text);
std::vector<OpInfo> parseOps(const std::string& text);

}  // namespace weft::perf
