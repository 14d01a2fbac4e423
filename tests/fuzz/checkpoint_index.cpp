// SPDX-License-Identifier: Apache-2.0
// The index of a checkpoint, with the checksum that it has or with the right one.
#include "checkpoint/index.h"

#include <nlohmann/json.hpp>

#include "checkpoint/durable_file.h"
#include "fuzz.h"

namespace weft::fuzz {
namespace {

// As printIndex() seals it. What is no object is as it is.
std::string sealed(std::string_view content) {
  auto json = nlohmann::ordered_json::parse(content, nullptr, false);
  if (!json.is_object()) return std::string(content);
  json.erase("sha256");
  checkpoint::Sha256 hash;
  const std::string body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  hash.add(body.data(), body.size());
  json["sha256"] = hash.hex();
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void tryIndex(const std::string& content) {
  checkpoint::CheckpointIndex first, second;
  if (!isGood(checkpoint::readIndex(fileWith(content), &first))) return;
  std::string written;
  require(checkpoint::printIndex(first, &written).ok(), "what was read can be written");
  require(checkpoint::readIndex(fileWith(written), &second).ok(), "what is written can be read");
  require(checkpoint::compareIndex("", first, second).ok(), "what is written reads as the same");
  for (const auto& file : first.files)
    require(file.name.find('/') == std::string::npos, "its files lie beside it");
}

}  // namespace

void tryInput(Input input) {
  if (input.empty()) return;
  const std::string_view rest = textOf(input.subspan(1));
  tryIndex(input[0] % 2 == 0 ? std::string(rest) : sealed(rest));
  (void)isGood(checkpoint::checkMeta(std::string(rest)));
}

}  // namespace weft::fuzz
