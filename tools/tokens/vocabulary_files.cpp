// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/vocabulary_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/tokens/failures.h"
#include "tools/train/mapped_file.h"

namespace weft::tokens {
namespace {

using nlohmann::json;

json parseFile(const std::string& file) {
  const train::MappedFile mapped(file);
  const std::string_view text = mapped.text();
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    const auto at = std::min<size_t>(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
    refuse(fmt::format("{}, line {}, byte {}", file, line, at), "it is no JSON, or cut off");
  }
}

std::unordered_map<std::string, int32_t> idsOf(const json& object, const std::string& file) {
  if (!object.is_object() || object.empty())
    refuse(file, "it is no vocabulary: an object that gives each token its id");
  std::unordered_map<std::string, int32_t> ids;
  std::unordered_map<int64_t, std::string> tokens;
  for (const auto& [token, value] : object.items()) {
    const int64_t id = value.is_number_integer() ? value.get<int64_t>() : -1;
    if (id < 0 || id >= std::numeric_limits<int32_t>::max())
      refuse(file, fmt::format("the id of \"{}\" is {}, no number from 0 on", token, value.dump()));
    if (const auto [other, isNew] = tokens.emplace(id, token); !isNew)
      refuse(file, fmt::format("\"{}\" and \"{}\" have one id, {}", other->second, token, id));
    ids.emplace(token, static_cast<int32_t>(id));
  }
  return ids;
}

VocabularyFiles::Merge mergeOf(std::string_view pair, std::string place) {
  const size_t space = pair.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == pair.size() ||
      pair.find(' ', space + 1) != std::string_view::npos)
    refuse(place, fmt::format("\"{}\" is no pair of tokens with a space between them", pair));
  return {std::string(pair.substr(0, space)), std::string(pair.substr(space + 1)),
          std::move(place)};
}

std::vector<VocabularyFiles::Merge> readMerges(const std::string& file) {
  const train::MappedFile mapped(file);
  std::string_view rest = mapped.text();
  std::vector<VocabularyFiles::Merge> merges;
  for (size_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1 && line.starts_with("#version")) continue;
    if (line.empty() && rest.empty()) break;
    merges.push_back(mergeOf(line, fmt::format("{}, line {}", file, number)));
  }
  return merges;
}

std::vector<VocabularyFiles::Merge> mergesOf(const json& list, const std::string& file) {
  if (!list.is_array())
    refuse(file, fmt::format("its merges are {}, no list of them: it is cut off or of another "
                             "kind; name the tokenizer.json that was published with the model",
                             list.dump().substr(0, 200)));
  std::vector<VocabularyFiles::Merge> merges;
  for (const json& merge : list) {
    std::string place = fmt::format("{}, merge {}", file, merges.size());
    const bool isPair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (isPair)
      merges.push_back({merge[0], merge[1], std::move(place)});
    else if (merge.is_string())
      merges.push_back(mergeOf(merge.get_ref<const std::string&>(), std::move(place)));
    else
      refuse(place, fmt::format("{} is no pair of tokens", merge.dump()));
  }
  return merges;
}

// A field of an object; null where there is none.
json fieldOf(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : json();
}

bool isTrue(const json& object, const char* name) { return fieldOf(object, name) == json(true); }

AddedToken addedOf(const json& entry, const std::string& file) {
  const json id = fieldOf(entry, "id"), content = fieldOf(entry, "content");
  const bool known = content.is_string() && !content.get_ref<const std::string&>().empty() &&
                     id.is_number_unsigned() && id < std::numeric_limits<int32_t>::max();
  if (!known) refuse(file, fmt::format("{} in added_tokens has no content or no id", entry.dump()));
  for (const char* flag : {"single_word", "lstrip", "rstrip"})
    if (isTrue(entry, flag) && !isTrue(entry, "special"))
      refuse(file,
             fmt::format("added token {} has {}, which is not known here", content.dump(), flag));
  return {content, id, isTrue(entry, "special"), isTrue(entry, "normalized")};
}

void checkKind(const json& all, const std::string& file) {
  const json model = fieldOf(all, "model"), splits = fieldOf(all, "pre_tokenizer");
  const json normalizer = fieldOf(all, "normalizer");
  if (fieldOf(model, "type") != "BPE")
    refuse(file,
           fmt::format("its model is {}, and the byte-level \"BPE\" of GPT-2 and NeoX is known",
                       fieldOf(model, "type").dump()));
  const bool splitsAsGpt2 = fieldOf(splits, "type") == "ByteLevel" &&
                            !isTrue(splits, "add_prefix_space") &&
                            fieldOf(splits, "use_regex") != json(false);
  if (!splitsAsGpt2)
    refuse(file, fmt::format("its pre_tokenizer is {}, and GPT-2's and NeoX's ByteLevel without "
                             "add_prefix_space is known",
                             splits.dump().substr(0, 200)));
  if (!normalizer.is_null() && fieldOf(normalizer, "type") != "NFC")
    refuse(file, fmt::format("its normalizer is {}, and none or NFC is known",
                             normalizer.dump().substr(0, 200)));
}

}  // namespace

VocabularyFiles readVocabularyAndMerges(const std::string& vocabulary, const std::string& merges) {
  VocabularyFiles files;
  files.name = vocabulary;
  files.mergesName = merges;
  files.ids = idsOf(parseFile(vocabulary), vocabulary);
  files.merges = readMerges(merges);
  return files;
}

VocabularyFiles readTokenizerFile(const std::string& file) {
  const json all = parseFile(file);
  checkKind(all, file);
  VocabularyFiles files;
  files.name = files.mergesName = file;
  files.ids = idsOf(fieldOf(all["model"], "vocab"), file);
  files.merges = mergesOf(fieldOf(all["model"], "merges"), file);
  for (const json& entry : fieldOf(all, "added_tokens"))
    files.added.push_back(addedOf(entry, file));
  files.composes = fieldOf(fieldOf(all, "normalizer"), "type") == "NFC";
  return files;
}

}  // namespace weft::tokens
