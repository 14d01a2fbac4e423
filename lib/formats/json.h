// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text.h"

namespace weft::formats {

using Json = nlohmann::json;

// An object of a JSON document, which knows its line, and asks of its members what they must be.
class JsonObject {
 public:
  JsonObject(const Json& json, const std::string& file) : json_(&json), file_(&file) {}

  // A document that begins with '{' and so is one object, not deeper than any of these formats. InvalidArgument names file
  // and line.
  static Status parse(std::string_view document, const std::string& file, Json* out);

  std::size_t line() const;
  bool has(const char* key) const { return json_->contains(key); }

  template <class... Parts>
  Status wrong(const Parts&... parts) const {
    return Status::error(Code::InvalidArgument, *file_, ":", line(), ": ", parts...);
  }

  // There may be none of these, and then *out stays as it is.
  Status number(const char* key, std::int64_t least, std::int64_t most, std::uint32_t* out) const;
  Status flag(const char* key, bool* out) const;
  Status numbers(const char* key, std::int64_t most, std::vector<std::uint32_t>* out) const;
  Status objects(const char* key, std::vector<JsonObject>* out) const;

  Status object(const char* key, JsonObject* out) const;

  Status need(const char* key) const;
  Status needNumber(const char* key, std::int64_t least, std::int64_t most,
                    std::uint32_t* out) const;
  Status needText(const char* key, std::string* out) const;
  Status needObjects(const char* key, std::vector<JsonObject>* out) const;

 private:
  const Json* json_;
  const std::string* file_;
};

}  // namespace weft::formats
