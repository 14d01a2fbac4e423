// SPDX-License-Identifier: Apache-2.0
#include "shard/checkpoint_index.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "shard/durable_file.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "weft checkpoint";
constexpr std::uint64_t kLongest = 1 << 30;

Status invalid(std::string why) { return Status::error(Code::InvalidArgument, std::move(why)); }

std::string checksum(const Json& json) {
  Sha256 hash;
  const std::string content = json.dump();
  hash.add(content.data(), content.size());
  return hash.hex();
}

Json jsonOf(const CheckpointIndex& index) {
  Json json = {{"format", kFormat},      {"version", CheckpointIndex::kVersion},
               {"steps", index.steps},   {"arrays", index.arrays},
               {"meta", index.meta},     {"previous", index.previous},
               {"files", Json::array()}, {"parameters", Json::array()}};
  for (const auto& p : index.parameters)
    json["parameters"].push_back(
        {{"name", p.name}, {"elements", p.elements}, {"frozen", p.frozen}});
  for (const auto& f : index.files)
    json["files"].push_back({{"name", f.name}, {"bytes", f.bytes}, {"sha256", f.sha256}});
  return json;
}

// Of JSON whose checksum is right, so that it is as it was written.
CheckpointIndex indexFrom(const Json& json) {
  CheckpointIndex index;
  index.steps = json.at("steps").get<std::int64_t>();
  index.arrays = json.at("arrays").get<std::vector<std::string>>();
  index.meta = json.at("meta").get<std::string>();
  index.previous = json.value("previous", std::string());  // weft 0.1 began without
  for (const Json& p : json.at("parameters"))
    index.parameters.push_back({p.at("name").get<std::string>(),
                                p.at("elements").get<std::uint64_t>(), p.at("frozen").get<bool>()});
  for (const Json& f : json.at("files"))
    index.files.push_back({f.at("name").get<std::string>(), f.at("bytes").get<std::uint64_t>(),
                           f.at("sha256").get<std::string>()});
  return index;
}

// Names in an index stay inside its folder.
bool isPlainName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

std::string listed(const std::vector<std::string>& names) {
  std::string line;
  for (const std::string& name : names) line += text(line.empty() ? "" : ", ", name);
  return line;
}

}  // namespace

CheckpointIndex indexOf(const Layout& layout, const std::vector<std::string>& arrays) {
  CheckpointIndex index;
  index.arrays = arrays;
  for (const ParameterSpec& p : layout.parameters())
    if (p.tiedTo < 0) index.parameters.push_back({p.name, p.elements, p.frozen});
  return index;
}

Status checkMeta(const std::string& json) {
  if (json.empty() || Json::accept(json)) return {};
  return invalid("the checkpoint's meta data are not JSON; fix: pass a JSON text, or nothing");
}

Status printIndex(const CheckpointIndex& index, std::string* json) {
  try {
    Json made = jsonOf(index);
    made["sha256"] = checksum(made);
    *json = made.dump(1) + "\n";
  } catch (const Json::exception&) {
    return invalid("the name of a parameter is not UTF-8; fix: rename it");
  }
  return {};
}

Status readIndex(const std::string& path, CheckpointIndex* out) {
  std::string content;
  WEFT_TRY(readFile(path, kLongest, &content));
  Json json = Json::parse(content, nullptr, false);
  if (!json.is_object()) return invalid(text("'", path, "' is damaged: it is not JSON"));
  const auto format = json.find("format"), version = json.find("version");
  if (format == json.end() || *format != kFormat || version == json.end() ||
      !version->is_number_unsigned())
    return invalid(text("'", path, "' is not of a checkpoint of weft"));
  if (version->get<std::uint64_t>() > CheckpointIndex::kVersion)
    return invalid(text("'", path, "' is of a newer weft (format ", version->get<std::uint64_t>(),
                        ", this one reads ", CheckpointIndex::kVersion,
                        "); fix: load it with a newer weft"));
  const auto stored = json.find("sha256");
  const Json sum = stored == json.end() ? Json() : *stored;
  json.erase("sha256");
  try {
    if (sum != checksum(json))
      return invalid(text("'", path, "' is damaged: its checksum is another"));
    *out = indexFrom(json);
  } catch (const Json::exception& e) {
    return invalid(text("'", path, "' is damaged: ", e.what()));
  }
  for (const CheckpointIndex::File& f : out->files)
    if (!isPlainName(f.name)) return invalid(text("'", path, "' names a file '", f.name, "'"));
  return {};
}

Status compareIndex(const std::string& path, const CheckpointIndex& found,
                    const CheckpointIndex& wanted) {
  if (found.arrays != wanted.arrays)
    return invalid(text("'", path, "' has for each parameter ", listed(found.arrays),
                        ", and this optimizer needs ", listed(wanted.arrays),
                        "; fix: create the shard with the optimizer of the checkpoint"));
  std::map<std::string, const CheckpointIndex::Parameter*> theirs;
  for (const auto& p : found.parameters) theirs[p.name] = &p;
  for (const auto& p : wanted.parameters) {
    const auto at = theirs.find(p.name);
    if (at == theirs.end())
      return invalid(text("'", path, "' lacks parameter '", p.name, "' of this model"));
    if (at->second->elements != p.elements)
      return invalid(text("'", path, "' has ", at->second->elements, " elements of parameter '",
                          p.name, "', this model ", p.elements));
    if (at->second->frozen != p.frozen)
      return invalid(text("'", path, "' has parameter '", p.name,
                          p.frozen ? "' trained, this model frozen" : "' frozen, this model trains",
                          " it"));
    theirs.erase(at);
  }
  if (theirs.empty()) return {};
  return invalid(
      text("'", path, "' has a parameter '", theirs.begin()->first, "' that this model has not"));
}

}  // namespace weft
