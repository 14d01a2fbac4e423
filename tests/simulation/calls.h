// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/call.h"
#include "plan/plan.h"
#include "tests/simulation/random.h"
#include "transports/window.h"

namespace weft::simulation {

// What the plans of a communicator depend on.
struct Setting {
  std::uint32_t ranks = 2;
  bool direct = false;   // puts may go into peers' own buffers
  bool shares = false;   // peers' buffers are read and written in place
  bool cramped = false;  // little staging memory: many segments
  bool rings = false;    // of arrival slots, for short rooted calls
  bool operator==(const Setting&) const = default;

  transport::WindowLayout layout() const;
};

// One collective call as all ranks make it, with their plans. Kept for all seeds.
struct SimulatedCall {
  schedule::Collective collective;
  reduce::DType type;
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  std::string algorithm;
  std::vector<std::unique_ptr<plan::Plan>> plans;  // by rank

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(plans.size()); }
  std::size_t elementBytes() const { return reduce::sizeOf(type); }
  // 0 where the buffer does not exist.
  std::size_t inBytes(std::uint32_t rank) const;
  std::size_t outBytes(std::uint32_t rank) const;
  // In place: where the smaller buffer begins in the larger one.
  std::size_t aliasAt(std::uint32_t rank) const;
  // Element `i` of what `rank` gives and must get, modulo the type.
  std::uint64_t inputAt(std::uint64_t salt, std::uint32_t rank, std::size_t i) const;
  std::uint64_t expectedAt(std::uint64_t salt, std::uint32_t rank, std::size_t i) const;
  std::string text() const;
};

// One that the setting allows.
const SimulatedCall& randomCall(const Setting& setting, Random& random);

}  // namespace weft::simulation
