// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/unique_id.h"
#include "comm/communicator.h"

namespace weft::comm {

// The common end of all ways to a communicator: chooses the transport, agrees on what must be equal
// and builds the parts. Collective over `exchange`.
Status buildCommunicator(std::uint32_t rank, const std::vector<PeerName>& names,
                         const transport::Exchange& exchange, const CommConfig& config,
                         Deadline deadline, std::shared_ptr<Communicator>* out);

// Its middle: all parts. Collective over `exchange`.
Status buildParts(Core::Basis basis, const transport::Exchange& exchange, Deadline deadline,
                  Core::Parts* parts);

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
