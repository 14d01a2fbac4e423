// SPDX-License-Identifier: Apache-2.0
// What all command lines share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "perf/common/program.h"

namespace weft::tools {

// A number above 0. CLI11's own says what it wants with 309 digits.
inline CLI::Validator positive() {
  return {[](std::string& word) {
            double value = 0;
            return CLI::detail::lexical_cast(word, value) && value > 0
                       ? std::string()
                       : "'" + word + "' is not a number above 0";
          },
          "above 0"};
}

// 0 or a number above it.
inline CLI::Validator natural() {
  return {[](std::string& word) {
            double value = 0;
            return CLI::detail::lexical_cast(word, value) && value >= 0
                       ? std::string()
                       : "'" + word + "' is neither 0 nor a number above it";
          },
          "0 or above"};
}

inline void addVersion(CLI::App& app, const char* program) {
  app.set_version_flag("--version", versionOf(program), "print the version and exit");
}

}  // namespace weft::tools
