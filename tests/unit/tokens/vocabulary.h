// SPDX-License-Identifier: Apache-2.0
// A small vocabulary of GPT-2's kind.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/temporary_folder.h"
#include "tools/tokens/byte_letters.h"
#include "tools/tokens/vocabulary_files.h"
#include "tools/train/failure.h"

namespace weft::tokens {

using test::TemporaryFolder;
using Pairs = std::vector<std::pair<std::string, std::string>>;

inline constexpr const char* kEnd = "<|endoftext|>";

// Bytes, what the merges make, and the end of a text, numbered in this order.
inline nlohmann::json vocabularyOf(const Pairs& merges) {
  nlohmann::json vocabulary;
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[letterOf(static_cast<uint8_t>(byte))] = vocabulary.size();
  for (const auto& [left, right] : merges) vocabulary.emplace(left + right, vocabulary.size());
  vocabulary[kEnd] = vocabulary.size();
  return vocabulary;
}

inline std::string mergesText(const Pairs& merges) {
  std::string text = "#version: 0.2\n";
  for (const auto& [left, right] : merges) text += left + " " + right + "\n";
  return text;
}

// Learns merges as Sennrich and others do: joins the most frequent pair, the first of equals, again and again.
inline Pairs learnMerges(const std::vector<std::string>& words, size_t count) {
  std::vector<std::vector<std::string>> lines;
  for (const std::string& word : words) {
    lines.emplace_back();
    for (const char c : word) lines.back().push_back(letterOf(static_cast<uint8_t>(c)));
  }
  Pairs merges;
  while (merges.size() < count) {
    std::map<std::pair<std::string, std::string>, int> counts;
    for (const auto& line : lines)
      for (size_t i = 1; i < line.size(); ++i) ++counts[{line[i - 1], line[i]}];
    if (counts.empty()) break;
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    merges.push_back(most->first);
    for (auto& line : lines)
      for (size_t i = 1; i < line.size(); ++i)
        if (std::pair(line[i - 1], line[i]) == merges.back()) {
          line[i - 1] += line[i];
          line.erase(line.begin() + static_cast<std::ptrdiff_t>(i));
        }
  }
  return merges;
}

inline VocabularyFiles filesOf(const Pairs& merges) {
  const TemporaryFolder folder;
  return readVocabularyAndMerges(folder.write("vocab.json", vocabularyOf(merges).dump()),
                                 folder.write("merges.txt", mergesText(merges)));
}

// What a call refuses, with exit code 65.
inline std::string refusalOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const train::Failure& failure) {
    EXPECT_EQ(failure.code(), 65);
    return failure.what();
  }
  return "accepted";
}

}  // namespace weft::tokens
