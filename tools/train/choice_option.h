// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace weft::train {

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

// An option of a few words, which the help shows as they are typed.
template <class T>
void addChoice(CLI::App& app, const char* name, T& value, const Choices<T>& choices,
               const char* help) {
  std::string words, chosen;
  for (const auto& [word, meaning] : choices) {
    words += (words.empty() ? "" : ",") + word;
    if (meaning == value) chosen = word;
  }
  const auto take = [&value, choices](const std::string& word) {
    for (const auto& [each, meaning] : choices)
      if (each == word) value = meaning;
  };
  std::vector<std::string> all;
  for (const auto& choice : choices) all.push_back(choice.first);
  app.add_option_function<std::string>(name, take, help)
      ->check(CLI::IsMember(all).description(""))
      ->type_name("{" + words + "}")
      ->default_str(chosen);
}

}  // namespace weft::train
