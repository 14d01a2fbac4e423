// SPDX-License-Identifier: Apache-2.0
#include "types.h"

#include <cstdint>
#include <unordered_map>

namespace weft::mpi {
namespace {

enum class Kind : std::uint8_t { Signed, Unsigned, Float, Complex, Bool, Bytes };

struct Element {
  Kind kind;
  std::size_t size;
};

// MPICH's handles are integers, Open MPI's are pointers.
std::uintptr_t keyOf(MPI_Datatype type) { return (std::uintptr_t)type; }

class Elements {
 public:
  Elements() {
    for (const MPI_Datatype type :
         {MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT8_T, MPI_INT16_T,
          MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_COUNT, MPI_OFFSET, MPI_INTEGER, MPI_INTEGER1,
          MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8})
      add(type, Kind::Signed);
    for (const MPI_Datatype type :
         {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
          MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T})
      add(type, Kind::Unsigned);
    for (const MPI_Datatype type :
         {MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8})
      add(type, Kind::Float);
    for (const MPI_Datatype type : {MPI_C_COMPLEX, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX,
                                    MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16})
      add(type, Kind::Complex);
    for (const MPI_Datatype type :
         {MPI_BYTE, MPI_CHAR, MPI_PACKED, MPI_CHARACTER, MPI_WCHAR, MPI_LOGICAL, MPI_LONG_DOUBLE})
      add(type, Kind::Bytes);
    add(MPI_C_BOOL, Kind::Bool);
  }

  // Null if it is none of these.
  const Element* find(MPI_Datatype type) const {
    const auto found = elements_.find(keyOf(type));
    return found == elements_.end() ? nullptr : &found->second;
  }

 private:
  // Those that this MPI has: of Fortran's types it may lack some.
  void add(MPI_Datatype type, Kind kind) {
    int size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS || size <= 0)
      return;
    elements_.emplace(keyOf(type), Element{kind, static_cast<std::size_t>(size)});
  }

  std::unordered_map<std::uintptr_t, Element> elements_;
};

// Made by the first call, after MPI_Init.
const Element* elementOf(MPI_Datatype type) {
  static const Elements elements;
  thread_local MPI_Datatype last = MPI_DATATYPE_NULL;
  thread_local const Element* lastElement = nullptr;
  if (type == last) return lastElement;
  last = type;
  return lastElement = elements.find(type);
}

std::optional<weftRedOp_t> bitwiseOf(MPI_Op op) {
  if (op == MPI_BAND) return weftBand;
  if (op == MPI_BOR) return weftBor;
  if (op == MPI_BXOR) return weftBxor;
  return {};
}

std::optional<weftRedOp_t> logicalOf(MPI_Op op) {
  if (op == MPI_LAND) return weftBand;
  if (op == MPI_LOR) return weftBor;
  if (op == MPI_LXOR) return weftBxor;
  return {};
}

std::optional<weftRedOp_t> arithmeticOf(MPI_Op op) {
  if (op == MPI_SUM) return weftSum;
  if (op == MPI_PROD) return weftProd;
  if (op == MPI_MAX) return weftMax;
  if (op == MPI_MIN) return weftMin;
  return {};
}

bool isInteger(Kind kind) { return kind == Kind::Signed || kind == Kind::Unsigned; }

std::optional<weftDataType_t> typeOf(Kind kind, std::size_t size) {
  if (kind == Kind::Float && size == 4) return weftFloat32;
  if (kind == Kind::Float && size == 8) return weftFloat64;
  if (!isInteger(kind)) return {};
  const bool hasSign = kind == Kind::Signed;
  if (size == 1) return hasSign ? weftInt8 : weftUint8;
  if (size == 4) return hasSign ? weftInt32 : weftUint32;
  if (size == 8) return hasSign ? weftInt64 : weftUint64;
  return {};  // 16 bits
}

}  // namespace

std::optional<Reduction> reductionOf(MPI_Datatype type, MPI_Op op) {
  const Element* const element = elementOf(type);
  if (element == nullptr) return {};
  if (const auto bitwise = bitwiseOf(op)) {
    if (!isInteger(element->kind) && type != MPI_BYTE) return {};
    return Reduction{weftUint8, *bitwise, element->size};
  }
  if (const auto logical = logicalOf(op)) {
    if (!isInteger(element->kind) && element->kind != Kind::Bool) return {};
    return Reduction{weftUint8, *logical, 1, element->size};
  }
  const auto arithmetic = arithmeticOf(op);
  if (!arithmetic) return {};
  const bool pairs = element->kind == Kind::Complex;
  if (pairs && op != MPI_SUM) return {};
  const auto real = typeOf(pairs ? Kind::Float : element->kind, element->size / (pairs ? 2 : 1));
  if (!real) return {};
  return Reduction{*real, *arithmetic, pairs ? std::size_t{2} : 1};
}

bool isDensePredefined(MPI_Datatype type) { return elementOf(type) != nullptr; }

}  // namespace weft::mpi
