// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/call.h"
#include "plan/tuning.h"
#include "schedule/registry.h"

namespace weft::plan {

// Where puts land.
enum class Protocol : std::uint8_t {
  Staged,     // in staging memory of the receiver
  Published,  // in staging memory of the sender, once, for all of them
  // In the receive buffer, after a clear-to-send. Of an algorithm on shared buffers: CMA copies what is
  // not shared.
  Direct,
  // Like the first two, in pieces as large as there is room for: who stores to lines that another
  // core's cache still holds must ask for each, so memory that comes round later may be the quicker one.
  StagedLarge,
  PublishedLarge,
};
inline constexpr std::string_view kProtocolNames[] = {"staged", "published", "direct",
                                                      "staged-large", "published-large"};
inline std::string_view nameOf(Protocol protocol) {
  return kProtocolNames[static_cast<std::size_t>(protocol)];
}

// A way to run a call. All functions here are pure, so that all ranks decide alike.
struct Candidate {
  const schedule::Algorithm* algorithm = nullptr;
  Protocol protocol = Protocol::Staged;
  bool isDirect() const { return protocol == Protocol::Direct; }
  bool isLarge() const {
    return protocol == Protocol::StagedLarge || protocol == Protocol::PublishedLarge;
  }
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// Every way in which `call` can run here, be it chosen or forced.
std::vector<Candidate> candidatesOf(const Call& call, const Tuning& tuning);

// Those among which the model chooses where nothing is forced: of the algorithms that the registry
// calls automatic, as far as WEFT_ONE_SHOT_MAX and WEFT_DIRECT_MIN leave a choice. Those on shared
// buffers come last.
std::vector<Candidate> automaticOf(const Call& call, const Tuning& tuning);

// The ways of one algorithm, where its protocol is not forced.
std::vector<Candidate> protocolsOf(const schedule::Algorithm* algorithm, const Call& call,
                                   const Tuning& tuning);

// Can it be published here?
bool mayPublish(const schedule::Algorithm& algorithm, const Tuning& tuning);

// The knob that leaves the model less to choose from; "" if none does.
std::string_view narrowingKnob(const Call& call, const Tuning& tuning);

// Can it run this call here? InvalidUsage says why not.
Status checkFits(const schedule::Algorithm& algorithm, const Call& call, const Tuning& tuning);

// As it may be forced: "mesh:direct".
std::string nameOf(const Candidate& candidate, const Call& call, const Tuning& tuning);

// The collective under which the call's algorithms are listed: a step is named by its
// reduce-scatter.
schedule::Collective listOf(const Call& call);

// What runs: the schedule of the candidate's algorithm, with the transforms that the call and the
// protocol need.
schedule::Schedule scheduleOf(const Candidate& candidate, const Call& call, const Tuning& tuning);

}  // namespace weft::plan
