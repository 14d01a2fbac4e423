// SPDX-License-Identifier: Apache-2.0
// What all command lines share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

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

inline void addVersion(CLI::App& app, const char* program) {
  app.set_version_flag("--version", versionOf(program), "print the version and exit");
}

}  // namespace weft::tools
