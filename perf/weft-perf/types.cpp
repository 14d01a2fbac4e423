// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/types.h"

#include <array>
#include <stdexcept>

namespace weft::perf {
namespace {

constexpr std::array<TypeInfo, 10> kTypes = {{
    {weftInt8, "int8", "i8", 1},
    {weftUint8, "uint8", "u8", 1},
    {weftInt32, "int32", "i32", 4},
    {weftUint32, "uint32", "u32", 4},
    {weftInt64, "int64", "i64", 8},
    {weftUint64, "uint64", "u64", 8},
    {weftFloat16, "half", "f16", 2},
    {weftFloat32, "float", "f32", 4},
    {weftFloat64, "double", "f64", 8},
    {weftBfloat16, "bfloat16", "bf16", 2},
}};

constexpr std::array<OpInfo, 9> kOps = {{
    {Op::Sum, "sum", weftSum},
    {Op::Prod, "prod", weftProd},
    {Op::Max, "max", weftMax},
    {Op::Min, "min", weftMin},
    {Op::Avg, "avg", weftAvg},
    {Op::Band, "band", weftBand},
    {Op::Bor, "bor", weftBor},
    {Op::Bxor, "bxor", weftBxor},
    {Op::MulSum, "mulsum", weftNumOps},
}};

constexpr OpInfo kNoOp = {Op::None, "none", weftSum};

// The rows of `table` that `text` names; `matches` compares one row.
template <class Row, class Matches>
std::vector<Row> select(std::span<const Row> table, const char* what, const std::string& text,
                        Matches matches) {
  std::string names = "all";
  std::vector<Row> chosen;
  for (const Row& row : table) {
    if (text == "all" || matches(row)) chosen.push_back(row);
    names += std::string(" ") + row.name;
  }
  if (!chosen.empty()) return chosen;
  throw std::invalid_argument("unknown " + std::string(what) + " '" + text + "'; use one of " +
                              names);
}

}  // namespace

std::span<const TypeInfo> allTypes() { return kTypes; }
std::span<const OpInfo> allOps() { return kOps; }
const OpInfo& noOp() { return kNoOp; }

bool suits(const OpInfo& op, const TypeInfo& type) {
  const bool isBitwise = op.op == Op::Band || op.op == Op::Bor || op.op == Op::Bxor;
  return !isBitwise || type.type < weftFloat16;
}

const TypeInfo& typeInfo(weftDataType_t type) {
  for (const TypeInfo& info : kTypes) {
    if (info.type == type) return info;
  }
  throw std::invalid_argument("unknown weftDataType_t " + std::to_string(type));
}

std::vector<TypeInfo> parseTypes(const std::string& text) {
  return select(allTypes(), "data type", text,
                [&](const TypeInfo& info) { return text == info.name || text == info.alias; });
}

std::vector<OpInfo> parseOps(const std::string& text) {
  return select(allOps(), "operation", text, [&](const OpInfo& info) { return text == info.name; });
}

}  // namespace weft::perf
