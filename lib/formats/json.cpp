// SPDX-License-Identifier: Apache-2.0
#include "formats/json.h"

#include <iterator>

namespace weft::formats {
namespace {

constexpr const char* kLine = "$line";  // a member of each object: where it begins
constexpr int kDeepest = 12;

// Characters, counting lines as they are read.
class Characters {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Characters(const char* at, std::size_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  Characters& operator++() {
    if (*at_++ == '\n') ++*line_;
    return *this;
  }
  Characters operator++(int) {
    const Characters before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Characters& other) const { return at_ == other.at_; }
  bool operator!=(const Characters& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* line_;
};

}  // namespace

Status JsonObject::parse(std::string_view document, const std::string& file, Json* out) {
  std::size_t line = 1;
  bool isDeep = false;
  std::vector<std::size_t> begun;
  const Json::parser_callback_t mark = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) isDeep = true;
    if (isDeep) return false;
    if (event == Json::parse_event_t::object_start) begun.push_back(line);
    if (event == Json::parse_event_t::object_end) {
      parsed[kLine] = begun.back();
      begun.pop_back();
    }
    return true;
  };
  try {
    *out = Json::parse(Characters(document.data(), &line),
                       Characters(document.data() + document.size(), &line), mark);
  } catch (const Json::exception& error) {
    return Status::error(Code::InvalidArgument, file, ":", line, ": no JSON: ", error.what(),
                         "; fix: write the file anew");
  }
  if (isDeep)
    return Status::error(Code::InvalidArgument, file, ":", line, ": deeper than ", kDeepest,
                         " levels; fix: name a schedule");
  return {};
}

std::size_t JsonObject::line() const { return json_->at(kLine).get<std::size_t>(); }

Status JsonObject::need(const char* key) const {
  if (has(key)) return {};
  return wrong("lacks \"", key, "\"; fix: give it");
}

Status JsonObject::number(const char* key, std::int64_t least, std::int64_t most,
                          std::uint32_t* out) const {
  if (!has(key)) return {};
  const Json& value = (*json_)[key];
  const bool fits = value.is_number_unsigned()
                        ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                        : value.is_number_integer() && value.get<std::int64_t>() <= most;
  if (!fits || value.get<std::int64_t>() < least)
    return wrong("\"", key, "\" is no number from ", least, " to ", most, "; fix: give one");
  *out = static_cast<std::uint32_t>(value.get<std::int64_t>());
  return {};
}

Status JsonObject::flag(const char* key, bool* out) const {
  if (!has(key)) return {};
  if (!(*json_)[key].is_boolean())
    return wrong("\"", key, "\" is neither true nor false; fix: give one of them");
  *out = (*json_)[key].get<bool>();
  return {};
}

Status JsonObject::numbers(const char* key, std::int64_t most,
                           std::vector<std::uint32_t>* out) const {
  out->clear();
  if (!has(key)) return {};
  if (!(*json_)[key].is_array()) return wrong("\"", key, "\" is no list; fix: give one");
  for (const Json& value : (*json_)[key]) {
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
      return wrong("\"", key, "\" has what is no number from 0 to ", most, "; fix: take it out");
    out->push_back(value.get<std::uint32_t>());
  }
  return {};
}

Status JsonObject::objects(const char* key, std::vector<JsonObject>* out) const {
  out->clear();
  if (!has(key)) return {};
  if (!(*json_)[key].is_array()) return wrong("\"", key, "\" is no list; fix: give one");
  for (const Json& value : (*json_)[key]) {
    if (!value.is_object()) return wrong("\"", key, "\" has what is no object; fix: take it out");
    out->emplace_back(value, *file_);
  }
  return {};
}

Status JsonObject::object(const char* key, JsonObject* out) const {
  if (!(*json_)[key].is_object()) return wrong("\"", key, "\" is no object; fix: give one");
  *out = JsonObject((*json_)[key], *file_);
  return {};
}

Status JsonObject::needNumber(const char* key, std::int64_t least, std::int64_t most,
                              std::uint32_t* out) const {
  WEFT_TRY(need(key));
  return number(key, least, most, out);
}

Status JsonObject::needText(const char* key, std::string* out) const {
  WEFT_TRY(need(key));
  if (!(*json_)[key].is_string()) return wrong("\"", key, "\" is no text; fix: give one");
  *out = (*json_)[key].get<std::string>();
  return {};
}

Status JsonObject::needObjects(const char* key, std::vector<JsonObject>* out) const {
  WEFT_TRY(need(key));
  return objects(key, out);
}

}  // namespace weft::formats
