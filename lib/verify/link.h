// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "schedule/ir.h"

namespace weft::verify {

inline constexpr uint32_t kNoMessage = ~0u;

// A Put and the Wait for it.
struct Message {
  uint32_t sender, putOp;
  uint32_t receiver = kNoMessage, waitOp = kNoMessage;
};

// All programs of a schedule, with every Wait linked to its Put.
struct LinkedSchedule {
  schedule::Schedule schedule;
  std::vector<schedule::Program> programs;       // [rank]
  std::vector<Message> messages;                 // in order of sender and op
  std::vector<std::vector<uint32_t>> messageOf;  // [rank][op]: its message, or kNoMessage

  const schedule::Op& op(uint32_t rank, uint32_t index) const { return programs[rank].ops[index]; }
  const schedule::Slot* operands(uint32_t rank, const schedule::Op& op) const {
    return programs[rank].operands.data() + op.firstOperand;
  }

  // "all-reduce mesh, 8 ranks, rank 3, op 12 (Put Tmp(1) to rank 4's Out(1))"
  std::string where(uint32_t rank, uint32_t index) const;
  Status violation(uint32_t rank, uint32_t index, const std::string& what) const;
};

std::string nameOf(schedule::Slot slot, uint32_t chunks = 1);

// Makes the programs of all ranks and checks everything that needs no execution.
Status link(const schedule::Schedule& schedule, LinkedSchedule& linked);

}  // namespace weft::verify
