// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/unique_id.h"
#include "comm/communicator.h"
#include "control/control_link.h"

namespace weft::comm {

// The common end of all ways to a communicator: chooses the transport, agrees on what must be equal
// and builds the parts. Collective over `exchange`.
Status buildCommunicator(std::uint32_t rank, const std::vector<PeerName>& names,
                         const transport::Exchange& exchange, const CommConfig& config,
                         Deadline deadline, std::shared_ptr<Communicator>* out);

// Its middle: all parts. Collective over `exchange`.
Status buildParts(Core::Basis basis, const transport::Exchange& exchange, Deadline deadline,
                  Core::Parts* parts);

// What ranks that have a communicator need not tell each other for another.
struct Parent {
  const Core::Parts& parts;
  std::vector<std::uint32_t> members;  // by rank of the new one: its rank there
  std::vector<cpu_set_t> cores;        // by rank of the new one: those that it may use
  control::LinkBranch& link;           // chosen
};

// buildCommunicator() for ranks of the parent, whose memory, connections and threads they share. Null
// where its transport has no branch for them, the same on all.
Status branchCommunicator(const Parent& parent, std::uint32_t rank,
                          const transport::Exchange& exchange, const CommConfig& config,
                          Deadline deadline, std::shared_ptr<Communicator>* out);

// Joins as `rank` of `ranks` whoever else holds the id.
Status joinCommunicator(const bootstrap::UniqueId& id, int ranks, int rank,
                        const CommConfig& config, Deadline deadline,
                        std::shared_ptr<Communicator>* out);

// Joins as whoever the launcher says that this process is.
Status joinFromEnv(const CommConfig& config, std::shared_ptr<Communicator>* out);

// All ranks in this process; each for a thread of its own.
Status createAll(int ranks, const CommConfig& config,
                 std::vector<std::shared_ptr<Communicator>>* out);

// Collective over the parent. A negative color takes part and gets a null pointer.
Status splitCommunicator(Communicator& parent, int color, int key, const CommConfig& config,
                         std::shared_ptr<Communicator>* out);

// Values of knobs that change what ranks send to each other: "WEFT_ALGO=...;...". Compared at
// creation.
std::string semanticConfig(const CommConfig& config);

}  // namespace weft::comm
