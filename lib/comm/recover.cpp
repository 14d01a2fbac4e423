// SPDX-License-Identifier: Apache-2.0
#include "comm/recover.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "comm/create.h"
#include "comm/open_transport.h"

namespace weft::comm {
namespace {

constexpr int kSettleMs = 10;  // for links that went down with the first and have not said so

// Where a rank stands: its last collective, messages of each pair, links that are down at its end.
struct Standing {
  std::uint64_t calls = 0;
  std::vector<std::uint64_t> sends, receives, down;  // by peer

  explicit Standing(std::uint32_t ranks) : sends(ranks), receives(ranks), down(ranks) {}

  std::vector<std::uint64_t> words() const {
    std::vector<std::uint64_t> all{calls};
    for (const auto* part : {&sends, &receives, &down})
      all.insert(all.end(), part->begin(), part->end());
    return all;
  }
  bool read(const std::vector<std::byte>& blob) {
    std::vector<std::uint64_t> all(1 + 3 * sends.size());
    if (blob.size() != all.size() * sizeof(all[0])) return false;
    std::memcpy(all.data(), blob.data(), blob.size());
    calls = all[0];
    auto from = all.begin() + 1;
    for (auto* part : {&sends, &receives, &down}) {
      std::copy_n(from, part->size(), part->begin());
      from += static_cast<std::ptrdiff_t>(part->size());
    }
    return true;
  }
};

Standing standingOf(const Core& core) {
  transport::Transport& transport = *core.parts.transport;
  const transport::ProgressOwnership ownership(transport);
  std::array<transport::Event, 16> events;
  const Deadline settled = Deadline::in(kSettleMs);
  while (!settled.expired()) transport.poll(events.data(), static_cast<int>(events.size()));
  Standing mine(core.parts.ranks);
  mine.calls = core.watch.calls();
  mine.sends = core.pairs.sends();
  mine.receives = core.pairs.receives();
  for (std::uint32_t r = 0; r < core.parts.ranks; ++r)
    mine.down[r] = r != core.parts.rank && transport.isDown(r);
  return mine;
}

Status gatherStandings(const Core& core, const transport::Exchange& exchange,
                       std::vector<Standing>* all) {
  const std::vector<std::uint64_t> mine = standingOf(core).words();
  std::vector<std::vector<std::byte>> blobs;
  WEFT_TRY(exchange(std::as_bytes(std::span(mine)), &blobs));
  for (const auto& blob : blobs)
    if (!all->emplace_back(core.parts.ranks).read(blob))
      return Status::error(Code::InternalError, "a rank did not say where it stands");
  return {};
}

std::set<RankPair> lostPairs(const std::vector<Standing>& all) {
  std::set<RankPair> pairs;
  for (std::uint32_t a = 0; a < all.size(); ++a)
    for (std::uint32_t b = 0; b < all.size(); ++b)
      if (all[a].down[b] != 0) pairs.insert(std::minmax(a, b));
  return pairs;
}

// Messages have no number that would tell which is the next, so both ends must have begun as many.
Status checkMessages(const Core& core, const std::vector<Standing>& all) {
  for (std::uint32_t a = 0; a < all.size(); ++a) {
    for (std::uint32_t b = 0; b < all.size(); ++b) {
      if (all[a].sends[b] == all[b].receives[a]) continue;
      return Status::error(Code::RemoteError, core.watch.nameOf(a), " had begun ", all[a].sends[b],
                           " sends to ", core.watch.nameOf(b), ", which had begun ",
                           all[b].receives[a], " receives of it: messages were on their way");
    }
  }
  return {};
}

void announce(const Core& made, const std::set<RankPair>& pairs, const Status& lost) {
  std::string ways;
  for (const RankPair& pair : pairs)
    ways += text(made.watch.nameOf(pair.first), " and ", made.watch.nameOf(pair.second), ": ",
                 carrierOf(made.parts.names, made.parts.selection, pair), " now; ");
  const std::string line =
      text("communicator ", made.parts.config.name, " goes on; ", ways, lost.text());
  if (made.parts.rank == 0)
    logWarn(line);
  else
    logInfo(line);
}

}  // namespace

Status recover(const Core& broken, Deadline deadline, std::unique_ptr<Core>* out) {
  const SpeaksFor rank(broken.parts.rank);
  const Status lost = broken.watch.firstError();
  watch::RemoteRanks& link = *broken.parts.remoteRanks;
  const transport::Exchange exchange = [&](std::span<const std::byte> mine, auto* all) {
    return all == nullptr ? Status() : link.gather(mine, all, deadline);
  };
  std::vector<Standing> all;
  WEFT_TRY(gatherStandings(broken, exchange, &all));
  const std::set<RankPair> pairs = lostPairs(all);
  if (pairs.empty()) return Status::error(Code::RemoteError, "no link is known to be down");
  WEFT_TRY(checkMessages(broken, all));
  Core::Basis basis = broken.parts;
  for (const RankPair& pair : pairs) ++basis.selection.lost[pair];
  Core::Parts parts;
  WEFT_TRY(buildParts(std::move(basis), exchange, deadline, &parts));
  auto made = std::make_unique<Core>(std::move(parts));
  const auto byCalls = [](const Standing& a, const Standing& b) { return a.calls < b.calls; };
  made->failedUpTo = std::ranges::max_element(all, byCalls)->calls;
  made->failure = lost;
  made->watch.goOnFrom(broken.watch.calls());
  announce(*made, pairs, lost);
  *out = std::move(made);
  return {};
}

}  // namespace weft::comm
