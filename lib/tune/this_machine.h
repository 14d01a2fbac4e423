// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.h"
#include "tune/machine.h"

namespace weft {

enum class Origin : std::uint32_t { Nowhere, Measured, File, Peer };

struct KnownMachine {
  Machine machine;
  Origin origin = Origin::Nowhere;
};

// This machine's numbers: those that this process knows already, else those of the file that
// WEFT_TUNE_FILE names, else measured now, a few milliseconds once a process. Any thread.
// InvalidArgument if the knob does not parse.
Status thisMachine(KnownMachine* known);

// What a peer on this host told, which spares this process a measurement of its own.
void rememberMachine(const Machine& machine);

const char* originName(Origin origin);

}  // namespace weft
