// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/index.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/invalid.h"
#include "base/text.h"
#include "checkpoint/durable_file.h"
#include "checkpoint/strict_json.h"

namespace weft::checkpoint {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kFormat = "weft checkpoint";
constexpr std::uint64_t kLongest = 1 << 30;
constexpr std::size_t kMostKeys = 64;

std::string checksum(const OrderedJson& json) {
  Sha256 hash;
  const std::string content = json.dump();
  hash.add(content.data(), content.size());
  return hash.hex();
}

OrderedJson jsonOf(const CheckpointIndex& index) {
  OrderedJson json = {{"format", kFormat},
                      {"version", CheckpointIndex::kVersion},
                      {"steps", index.steps},
                      {"arrays", index.arrays},
                      {"meta", index.meta},
                      {"previous", index.previous},
                      {"files", OrderedJson::array()},
                      {"parameters", OrderedJson::array()}};
  for (const auto& p : index.parameters)
    json["parameters"].push_back(
        {{"name", p.name}, {"elements", p.elements}, {"frozen", p.frozen}});
  for (const auto& f : index.files)
    json["files"].push_back({{"name", f.name}, {"bytes", f.bytes}, {"sha256", f.sha256}});
  return json;
}

// Of JSON whose checksum is right, so that it is as it was written.
CheckpointIndex indexFrom(const OrderedJson& json) {
  CheckpointIndex index;
  json.at("steps").get_to(index.steps);
  json.at("arrays").get_to(index.arrays);
  json.at("meta").get_to(index.meta);
  index.previous = json.value("previous", std::string());  // weft 0.1 began without
  for (const OrderedJson& p : json.at("parameters"))
    index.parameters.push_back({p.at("name"), p.at("elements"), p.at("frozen")});
  for (const OrderedJson& f : json.at("files"))
    index.files.push_back({f.at("name"), f.at("bytes"), f.at("sha256")});
  return index;
}

// Names in an index stay inside its folder.
bool isPlainName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

Status damaged(const std::string& path, std::string_view why) {
  return Status::error(Code::SystemError, "'", path, "' is damaged: ", why);
}

std::string listed(const std::vector<std::string>& names) {
  std::string line;
  for (const std::string& name : names) line += text(line.empty() ? "" : ", ", name);
  return line;
}

}  // namespace

Status checkMeta(const std::string& json) {
  if (json.empty() || OrderedJson::accept(json)) return {};
  return invalid("the checkpoint's meta data are not JSON; fix: pass a JSON text, or nothing");
}

Status printIndex(const CheckpointIndex& index, std::string* json) {
  try {
    OrderedJson made = jsonOf(index);
    made["sha256"] = checksum(made);
    *json = made.dump(1) + "\n";
  } catch (const OrderedJson::exception&) {
    return invalid("the name of a parameter is not UTF-8; fix: rename it");
  }
  return {};
}

Status readIndex(const std::string& path, CheckpointIndex* out) {
  std::string content;
  WEFT_TRY(readFile(path, kLongest, &content));
  std::optional<OrderedJson> parsed = parseStrictly<OrderedJson>(content, kMostKeys);
  if (!parsed) return damaged(path, "it is not JSON of an index");
  OrderedJson& json = *parsed;
  const auto format = json.find("format"), version = json.find("version");
  if (format == json.end() || *format != kFormat || version == json.end() ||
      !version->is_number_unsigned())
    return invalid("'", path, "' is not of a checkpoint of weft");
  if (version->get<std::uint64_t>() > CheckpointIndex::kVersion)
    return invalid("'", path, "' is of a newer weft (format ", version->get<std::uint64_t>(),
                   ", this one reads ", CheckpointIndex::kVersion,
                   "); fix: load it with a newer weft");
  const auto stored = json.find("sha256");
  const OrderedJson sum = stored == json.end() ? OrderedJson() : *stored;
  json.erase("sha256");
  try {
    if (sum != checksum(json)) return damaged(path, "its checksum is another");
    *out = indexFrom(json);
  } catch (const OrderedJson::exception& e) {
    return damaged(path, e.what());
  }
  if (out->arrays.empty() || out->arrays.front() != "weight")
    return damaged(path, "it names no weights");
  for (const CheckpointIndex::File& f : out->files)
    if (!isPlainName(f.name)) return invalid("'", path, "' names a file '", f.name, "'");
  return {};
}

Status compareIndex(const std::string& path, const CheckpointIndex& found,
                    const CheckpointIndex& wanted) {
  if (!wanted.arrays.empty() && found.arrays != wanted.arrays)
    return invalid("'", path, "' has for each parameter ", listed(found.arrays),
                   ", and this optimizer needs ", listed(wanted.arrays),
                   "; fix: create the shard with the optimizer of the checkpoint");
  std::map<std::string, const CheckpointIndex::Parameter*> theirs;
  for (const auto& p : found.parameters) theirs[p.name] = &p;
  for (const auto& p : wanted.parameters) {
    const auto at = theirs.find(p.name);
    if (at == theirs.end())
      return invalid("'", path, "' lacks parameter '", p.name, "' of this model");
    if (at->second->elements != p.elements)
      return invalid("'", path, "' has ", at->second->elements, " elements of parameter '", p.name,
                     "', this model ", p.elements);
    if (at->second->frozen != p.frozen)
      return invalid("'", path, "' has parameter '", p.name,
                     p.frozen ? "' trained, this model freezes" : "' frozen, this model trains",
                     " it");
    theirs.erase(at);
  }
  if (theirs.empty()) return {};
  return invalid("'", path, "' has a parameter '", theirs.begin()->first,
                 "' that this model has not");
}

}  // namespace weft::checkpoint
