// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/imported.h"
#include "plan/model.h"
#include "schedule/registry.h"

namespace weft::plan {

// What the choice of an algorithm depends on besides the call: agreed when the communicator is
// made, so that every rank chooses alike.
struct Tuning {
  std::uint32_t ranks = 1;
  std::vector<std::uint32_t> nodes;  // by rank: its node; empty: one node
  bool direct = false;               // peers' user memory can be written
  bool shares = false;               // memory from weftMemAlloc can be reached by loads and stores
  bool sharesAll = false;            // all memory can
  bool maps = false;                 // ranks read each other's windows
  bool tries = false;                // calls may try forms beside the model's choice
  CostParameters costs;
  std::optional<std::uint64_t> oneShotMax;   // bytes; up to here everybody sends everything
  std::optional<std::uint64_t> directMin;    // of a block; from here on it is put into Out itself
  std::string algorithm;                     // WEFT_ALGO: as Call::algorithm where that is empty
  std::shared_ptr<const Imported> imported;  // where that is a file; null: it is none
  std::shared_ptr<const forest::Links> links = nullptr;  // null: nobody has told of them
};

// Several nodes, one of several ranks.
bool hasLevels(const Tuning& tuning);

// Who reaches into the memory of all processes of a host has page tables of some 14 KiB for each: at
// 1,024 ranks they were 14 GiB, more than all else. On a host of more than 256 ranks few of the
// others are reached where that can be.
bool isCrowdedHost(const Tuning& tuning);

// For which the registry's algorithms are made. More than one card: the nodes are levels, of equal
// size and in order.
schedule::Shape shapeOf(const Tuning& tuning, std::uint32_t root = 0);

}  // namespace weft::plan
