// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "world.h"

// The wires under test. By default those that any machine has: the one that shuffles, and libfabric
// over tcp in both modes. The variable WIRES_UNDER_TEST names others, as the rigs do: "verbs",
// "ofi" (with WEFT_OFI_PROVIDER and WEFT_OFI_MODE as they are).
namespace weft::wire {

struct WireCase {
  transport::Fabric fabric;  // its `wire` makes it
  std::string mode;          // of libfabric; empty: as the environment says
};
std::ostream& operator<<(std::ostream&, const WireCase&);

std::vector<WireCase> wiresUnderTest();
std::vector<WireCase> forkedWires();  // those whose ranks are processes
// Why this wire cannot be tested here; empty if it can.
std::string unavailable(const WireCase&);
// For the ranks about to be started.
void setEnvironment(const WireCase&);

}  // namespace weft::wire
