// SPDX-License-Identifier: Apache-2.0
// Files of weights, made by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tools/train/failure.h"

namespace weft::test {

inline std::string refusalOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const train::Failure& failure) {
    EXPECT_EQ(failure.code(), 65) << failure.what();
    return failure.what();
  }
  return "accepted";
}

inline std::span<const std::uint8_t> bytesOf(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

template <class T>
std::string rawBytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// With that header, in JSON.
inline std::string safetensors(const std::string& header, const std::string& data) {
  return rawBytes<std::uint64_t>({header.size()}) + header + data;
}

}  // namespace weft::test
