// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>

namespace weft::perf {

// Turns the exceptions of our parsers into CLI11's, which name the option.
template <class Parse>
auto parsed(const char* option, Parse parse) {
  try {
    return parse();
  } catch (const std::invalid_argument& error) {
    throw CLI::ValidationError(option, error.what());
  }
}

}  // namespace weft::perf
