// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "api/entry.h"

// The C API's structs that grow at their end.
namespace weft::api {

// All begin with size, magic and version, by which callers of other versions are told apart.
inline constexpr std::size_t kStructHeader = sizeof(std::size_t) + 2 * sizeof(unsigned int);

// An appendable struct's size lies between its header and this: anything else is memory that was
// never initialized, and must not be read to its end.
inline constexpr std::size_t kLargestStruct = 4096;

template <class Struct>
Status checkHeader(const Struct& given, unsigned int magic, const char* what) {
  if (given.magic == magic && given.size >= kStructHeader && given.size <= kLargestStruct)
    return {};
  return invalid(what, " is not initialized; fix: start from WEFT_", what, "_INITIALIZER");
}

// Copies what the caller's version of an appendable struct has; the rest keeps the defaults.
template <class Struct>
Status readStruct(const Struct& given, unsigned int magic, const char* what, Struct* out) {
  WEFT_TRY(checkHeader(given, magic, what));
  if (given.size > sizeof(Struct)) {
    // A newer caller: its further fields must not ask for anything that this library does not know.
    const char* bytes = reinterpret_cast<const char*>(&given);
    if (std::any_of(bytes + sizeof(Struct), bytes + given.size, [](char c) { return c != 0; }))
      return invalid(what, " is of version ", given.version, " and sets fields that this libweft (",
                     WEFT_VERSION_CODE, ") does not know; fix: use a newer libweft");
  }
  std::memcpy(static_cast<void*>(out), &given, std::min(given.size, sizeof(Struct)));
  return {};
}

// Fills in what the caller's version of an appendable struct has; its header stays as it is.
template <class Struct>
Status writeStruct(const Struct& made, unsigned int magic, const char* what, Struct* out) {
  WEFT_TRY(checkHeader(*out, magic, what));
  std::memcpy(reinterpret_cast<char*>(out) + kStructHeader,
              reinterpret_cast<const char*>(&made) + kStructHeader,
              std::min(out->size, sizeof(Struct)) - kStructHeader);
  return {};
}

}  // namespace weft::api
