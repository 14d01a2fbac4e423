// SPDX-License-Identifier: Apache-2.0
// Which transport joins two ranks, before and after they have lost links.
#include "comm/open_transport.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// Ranks 0 and 1 on one host, 2 on another.
const std::vector<RankPlace> kMembers{{"a", "a", 1}, {"a", "a", 2}, {"b", "b", 3}};

std::string carrier(const std::string& wanted, const RankPair& pair, std::uint32_t lost,
                    const std::string& between = {}) {
  Carriage carriage{wanted, between, {}};
  if (lost != 0) carriage.lost[pair] = lost;
  return carrierOf(kMembers, carriage, pair);
}

TEST(Carriers, InsideAHostMemoryComesLast) {
  EXPECT_EQ(carrier("auto", {0, 1}, 0), "memory");
  EXPECT_EQ(carrier("shm+ofi", {0, 1}, 0), "memory");
  EXPECT_EQ(carrier("verbs", {0, 1}, 0), "verbs");
  EXPECT_EQ(carrier("verbs", {0, 1}, 1), "memory");
  EXPECT_EQ(carrier("faulty(ofi):seed=1", {0, 1}, 1), "memory");
  EXPECT_EQ(carrier("ofi", {0, 1}, 2), "");
}

TEST(Carriers, BetweenHostsOfiStandsInForVerbs) {
  EXPECT_EQ(carrier("verbs", {0, 2}, 0), "verbs");
  EXPECT_EQ(carrier("verbs", {0, 2}, 1), "ofi");
  EXPECT_EQ(carrier("shm+verbs", {1, 2}, 1), "ofi");
  EXPECT_EQ(carrier("auto", {0, 2}, 1, "verbs"), "ofi");
  EXPECT_EQ(carrier("verbs", {0, 2}, 2), "");
  EXPECT_EQ(carrier("ofi", {0, 2}, 1), "");
  EXPECT_EQ(carrier("auto", {0, 2}, 1, "ofi"), "");
}

TransportSetup setupOf(std::uint32_t rank) {
  TransportSetup setup;
  setup.rank = rank;
  setup.ranks = 3;
  for (const RankPlace& member : kMembers) setup.names.push_back("rank of " + member.host);
  setup.exchange = [](auto, auto*) {
    return Status::error(Code::InternalError, "nothing to agree on");
  };
  return setup;
}

// All ranks see it in what they agreed on before, and need not ask.
TEST(OpenTransport, SaysWhomNothingReachesAnyMore) {
  for (const std::uint32_t rank : {0u, 1u, 2u}) {
    Carriage carriage{"shm+ofi", "", {{{1, 2}, 1}}};
    std::unique_ptr<Transport> none;
    const Status status = openTransport(setupOf(rank), kMembers, &carriage, &none);
    EXPECT_EQ(status.code(), Code::RemoteError);
    EXPECT_EQ(status.text(),
              "nothing but ofi joins rank of a and rank of b (WEFT_TRANSPORT=shm+ofi); fix: mend "
              "that link and create the communicator again");
  }
}

TEST(OpenTransport, RefusesWhatItDoesNotKnow) {
  for (const char* wanted : {"pigeon", "shm+shm", "ofi+pigeon", "faulty(pigeon):1", "faulty(ofi"}) {
    Carriage carriage{wanted, "", {}};
    std::unique_ptr<Transport> none;
    const Status status = openTransport(setupOf(0), kMembers, &carriage, &none);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << wanted << ": " << status.text();
    EXPECT_NE(status.text().find("fix:"), std::string::npos) << status.text();
  }
}

}  // namespace
}  // namespace weft
