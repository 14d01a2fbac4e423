// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace weft::net {

// The kinds of message that a channel carries. bootstrap/messages.h says who sends which when, and
// control/bodies.h for the last five.
enum class MessageType : std::uint8_t {
  Hello = 1,
  Challenge,
  Refusal,
  Proof,
  Welcome,
  Info,
  Roster,
  Error,
  Gather,
  Gathered,
  Bye,
  Failed,
  // Of the control link:
  Query,
  Report,
  Ended,
  Relayed,
  Grouped,
};

}  // namespace weft::net
