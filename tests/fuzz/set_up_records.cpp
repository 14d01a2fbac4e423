// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other while transports are set up: any bytes in place of two peers' records.
#include "transports/setup.h"

#include <algorithm>

#include "fuzz.h"

namespace weft::fuzz {
namespace {

using transport::PeerInfo;

std::vector<std::byte> blobFrom(FuzzedDataProvider& from, std::size_t usual) {
  const bool whole = from.ConsumeBool();
  auto blob = from.ConsumeBytes<std::byte>(
      whole ? usual : from.ConsumeIntegralInRange<std::size_t>(0, 700));
  if (whole) blob.resize(usual);
  return blob;
}

// So that it gets past the first comparisons.
void makeLikely(const PeerInfo& mine, PeerInfo* theirs, std::uint32_t rank) {
  theirs->magic = mine.magic;
  theirs->version = mine.version;
  theirs->rank = rank;
  theirs->ranks = mine.ranks;
}

}  // namespace

void tryInput(Input input) {
  FuzzedDataProvider from(input.data(), input.size());
  transport::TransportSetup setup;
  setup.ranks = 3;
  setup.exchange = [&](std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) {
    *all = {{mine.begin(), mine.end()}, blobFrom(from, mine.size()), blobFrom(from, mine.size())};
    return Status();
  };
  PeerInfo mine;
  mine.ranks = setup.ranks;
  std::vector<std::vector<std::uint64_t>> lists;
  if (from.ConsumeBool())
    return (void)isGood(transport::gatherLists<std::uint64_t>(setup, {}, {1, 2}, &lists));
  std::vector<PeerInfo> infos;
  if (!isGood(transport::gather(setup, {}, mine, &infos))) return;
  require(infos.size() == setup.ranks, "each rank has a record");
  if (from.ConsumeBool())
    for (std::uint32_t rank : {1u, 2u}) makeLikely(mine, &infos[rank], rank);
  for (const PeerInfo& info : infos)
    require(transport::nameOf(info).host.size() <= sizeof(info.host), "a host's name has an end");
  (void)isGood(transport::checkPeers("fuzz", infos));
}

}  // namespace weft::fuzz
