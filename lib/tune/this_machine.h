// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "tune/calibration.h"

namespace weft::tune {

enum class Origin : std::uint32_t { Nowhere, Measured, File, Peer, Recorded };

struct KnownMachine {
  Calibration calibration;
  Origin origin = Origin::Nowhere;
};

// This machine's numbers. WEFT_TUNE_FILE may name a recorded machine, which holds as it stands.
// Else they are those that this process knows already, else those of the file that the knob names,
// and while they are provisional, and after an hour again, a call measures for up to 30 ms and writes the
// file anew.
// Any thread. InvalidArgument if the knob or a recorded
// machine does not parse.
Status thisMachine(KnownMachine* known);

// Calls disagree with what was told of this machine: nothing of it holds any more, in this process
// and in the file. Any thread.
void doubt(const KnownMachine& told);

// What a peer on this host told, which spares this process a measurement of its own.
void rememberMachine(const KnownMachine& told);

// Where the numbers come from, and what they are worth, for people.
std::string describe(const KnownMachine& known);

}  // namespace weft::tune
