// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "formats/read.h"

namespace weft::formats {

inline std::string pathOf(const std::string& example) {
  return std::filesystem::path(__FILE__).parent_path() / "../../../examples/schedules" / example;
}

inline std::string contentOf(const std::string& example) {
  std::ifstream in(pathOf(example), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A document with its n-th `from`, counted from 0, replaced.
inline std::string edited(std::string document, const std::string& from, const std::string& to,
                          std::size_t n = 0) {
  std::size_t at = document.find(from);
  for (; n > 0 && at != document.npos; --n) at = document.find(from, at + 1);
  EXPECT_NE(at, document.npos) << from;
  return at == document.npos ? document : document.replace(at, from.size(), to);
}

// The error of a document that is called "file"; empty: there is none.
inline std::string errorOf(const std::string& document, const Limits& limits = {}) {
  schedule::Schedule schedule;
  const Status read = parseSchedule(document, "file", limits, &schedule);
  EXPECT_TRUE(read.ok() || read.text().find("; fix: ") != std::string::npos) << read.text();
  return read.text();
}

inline void expectError(const std::string& document, const std::string& error,
                        const Limits& limits = {}) {
  const std::string said = errorOf(document, limits);
  EXPECT_NE(said.find(error), std::string::npos) << "not '" << error << "' but '" << said << "'";
}

}  // namespace weft::formats
