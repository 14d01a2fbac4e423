// SPDX-License-Identifier: Apache-2.0
// What all command lines share.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <optional>
#include <string>

#include "perf/common/exit_code.h"
#include "perf/common/program.h"

namespace weft::tools {

// A number above 0, or also 0, below `end`. CLI11's own validators say what they want with 309
// digits, and it takes what is too large for the largest that there is.
inline CLI::Validator numberBelow(double end, bool zero) {
  const char* const wanted =
      zero ? "' is neither 0 nor a number above it" : "' is not a number above 0";
  return {[=](std::string& word) -> std::string {
            double value = 0;
            const bool read = CLI::detail::lexical_cast(word, value);
            if (!read || !(value > 0 || (value == 0 && zero))) return "'" + word + wanted;
            return value < end ? "" : "'" + word + "' is too large";
          },
          zero ? "0 or above" : "above 0"};
}
inline CLI::Validator positive() { return numberBelow(0x1p63, false); }
inline CLI::Validator natural(double end = 0x1p63) { return numberBelow(end, true); }

// As CLI::Range, which takes nan for a number of it.
inline CLI::Validator within(double least, double most) {
  const CLI::Range range(least, most);
  return {[=](std::string& word) -> std::string {
            double value = 0;
            const bool read = CLI::detail::lexical_cast(word, value);
            return read && std::isnan(value) ? "'" + word + "' is no number" : range(word);
          },
          range.get_description()};
}

// A script's variable that is not set, as in --save "$FOLDER", is no option that was left out.
inline void refuseEmptyWords(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_min() == 0) continue;
    for (const std::string& word : option->results())
      if (word.empty())
        throw CLI::ValidationError(option->get_name(), "is empty; give a value, or leave it out");
  }
}

// What is asked of every command line.
inline void addVersion(CLI::App& app, const char* program) {
  app.set_version_flag("--version", versionOf(program), "print the version and exit");
  app.final_callback([&app] { refuseEmptyWords(app); });
}

// The exit code of a program whose words end it, as --help and wrong ones do.
inline std::optional<int> endByWords(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return {};
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitHealthy : kExitUsage;
  }
}

}  // namespace weft::tools
