// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/executor.h"
#include "tests/simulation/calls.h"

namespace weft::simulation {

// The application's buffers of one call on one rank: filled before, checked after, and then used
// for something else, so that whoever still touches them is found out.
class Buffers {
 public:
  Buffers(const SimulatedCall& call, std::uint32_t rank, std::uint64_t salt, bool inPlace);

  engine::Launch launch() const;
  // After the call: "" or what is wrong. Then they are the application's again.
  std::string takeBack(bool succeeded);
  // "" or what has changed since.
  std::string check() const;

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kUntouched{0xcd}, kGivenBack{0xee};

  std::string checkGuards() const;
  std::string checkOut() const;
  std::uint64_t elementAt(const std::byte* buffer, std::size_t i) const;

  const SimulatedCall& call_;
  const std::uint32_t rank_;
  const std::uint64_t salt_;
  std::vector<std::byte> memory_;
  std::byte* in_ = nullptr;  // null: there is none
  std::byte* out_ = nullptr;
  bool inPlace_ = false;
};

}  // namespace weft::simulation
