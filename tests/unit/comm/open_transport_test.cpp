// SPDX-License-Identifier: Apache-2.0
// Which transport joins two ranks, before and after they have lost links.
#include "comm/open_transport.h"

#include <gtest/gtest.h>

namespace weft::comm {
namespace {

// Ranks 0 and 1 on one host, 2 on another.
const std::vector<PeerName> kNames{{-1, "a", 1, "a"}, {-1, "a", 2, "a"}, {-1, "b", 3, "b"}};

std::string carrier(const std::string& wanted, const RankPair& pair, std::uint32_t lost,
                    const std::string& between = {}) {
  TransportSelection selection{wanted, between, {}};
  if (lost != 0) selection.lost[pair] = lost;
  return carrierOf(kNames, selection, pair);
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

TEST(Mesh, GoesAroundWhatLeavesAllJoined) {
  TransportSelection mesh{"verbs", "", {}};
  EXPECT_TRUE(isMesh(kNames, mesh));
  EXPECT_FALSE(goAround(kNames, {}, &mesh));
  EXPECT_FALSE(goAround(kNames, {{0, 1}, {0, 2}}, &mesh));
  EXPECT_TRUE(mesh.lost.empty());
  EXPECT_TRUE(goAround(kNames, {{0, 1}}, &mesh));
  EXPECT_EQ(carrierOf(kNames, mesh, {0, 1}), "memory");
  EXPECT_FALSE(goAround(kNames, {{0, 2}}, &mesh));
}

TEST(Mesh, IsNoneWhereMemoryOrASwitchJoinsSome) {
  for (const char* wanted : {"auto", "shm+verbs", "ofi", "verbs+ofi"}) {
    TransportSelection other{wanted, "", {}};
    EXPECT_FALSE(isMesh(kNames, other)) << wanted;
    EXPECT_FALSE(goAround(kNames, {{0, 1}}, &other)) << wanted;
  }
}

transport::TransportSetup setupOf(std::uint32_t rank) {
  transport::TransportSetup setup;
  setup.rank = rank;
  setup.ranks = 3;
  setup.names = kNames;
  setup.exchange = [](auto, auto*) {
    return Status::error(Code::InternalError, "nothing to agree on");
  };
  return setup;
}

// All ranks see it in what they agreed on before, and need not ask.
TEST(OpenTransport, SaysWhomNothingReachesAnyMore) {
  for (const std::uint32_t rank : {0u, 1u, 2u}) {
    TransportSelection selection{"shm+ofi", "", {{{1, 2}, 1}}};
    std::unique_ptr<transport::Transport> none;
    const Status status = openTransport(setupOf(rank), &selection, &none);
    EXPECT_EQ(status.code(), Code::RemoteError);
    EXPECT_EQ(status.text(),
              "nothing but ofi joins host a and host b (WEFT_TRANSPORT=shm+ofi); fix: repair "
              "that link and create the communicator again");
  }
}

TEST(OpenTransport, RefusesWhatItDoesNotKnow) {
  for (const char* wanted : {"pigeon", "shm+shm", "ofi+pigeon", "faulty(pigeon):1", "faulty(ofi"}) {
    TransportSelection selection{wanted, "", {}};
    std::unique_ptr<transport::Transport> none;
    const Status status = openTransport(setupOf(0), &selection, &none);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << wanted << ": " << status.text();
    EXPECT_NE(status.text().find("fix:"), std::string::npos) << status.text();
  }
}

}  // namespace
}  // namespace weft::comm
