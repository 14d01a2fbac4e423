// SPDX-License-Identifier: Apache-2.0
// What a message between hosts costs the core that sends it, and the core that it comes to: with one
// to eight peers, each in a process of its own. No peer is at work meanwhile: those who send have
// sent before the receiver looks, and those who receive look when all has been sent. So the times
// are those of one core, and what one more message adds to them is its cost. Of many rounds the
// time of the quickest tenth counts.
//
//   ofi_message_costs [BYTES [HOSTS]]
//
// BYTES of a message (8). HOSTS: the ranks are on hosts of tests/rigs/hosts/net.sh of that name, such
// as weft, which are there; without, all on loopback.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "over_tcp.h"
#include "transports/mapping.h"
#include "transports/ofi/ofi.h"
#include "world.h"

namespace weft::ofi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMostPeers = 8;
constexpr int kRounds = 500;
constexpr std::size_t kMemory = 1 << 16;  // which messages are written into

void goToHost(const std::string& hosts, std::uint32_t rank) {
  const std::string path = text("/run/netns/", hosts, "host", rank);
  const int there = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(there >= 0 && ::setns(there, CLONE_NEWNET) == 0, path);
  ::close(there);
}

class Sides {
 public:
  Sides(transport::Rank& rank, std::size_t bytes, bool onHosts)
      : rank_(rank), bytes_(bytes), memory_(kMemory, -1) {
    ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
    wire::WireSetup setup{rank.setup({}), {std::span(memory_.base(), kMemory), {}, {}}, 64};
    for (std::uint32_t r = 0; r < rank.ranks; ++r) {
      setup.peers.push_back((r == 0) != (rank.rank == 0));
      setup.names.push_back({static_cast<int>(r), onHosts ? text("node", r) : "here"});
    }
    const Status status = makeOfiWire(setup, &wire_);
    REQUIRE(status.ok(), status.text());
  }

  // Connections are made by both ends.
  void connect() {
    const std::uint32_t peers = rank_.rank == 0 ? rank_.ranks - 1 : 1;
    for (std::uint32_t i = 1; i <= peers; ++i) sendTo(rank_.rank == 0 ? i : 0);
    await(wire::WireEvent::Sent, peers);
    await(wire::WireEvent::RemoteCompletion, peers);
  }

  // Of rank 0, in nanoseconds, with so many peers.
  double receivingNs(std::uint32_t peers) {
    rank_.barrier();
    if (rank_.rank > 0 && rank_.rank <= peers) sendTo(0), await(wire::WireEvent::Sent, 1);
    settle();
    return timed([&] { await(wire::WireEvent::RemoteCompletion, peers); });
  }
  double sendingNs(std::uint32_t peers) {
    rank_.barrier();
    const double ns = timed([&] {
      for (std::uint32_t peer = 1; peer <= peers; ++peer) sendTo(peer);
      await(wire::WireEvent::Sent, peers);
    });
    settle();
    if (rank_.rank > 0 && rank_.rank <= peers) await(wire::WireEvent::RemoteCompletion, 1);
    return ns;
  }

 private:
  template <class Work>
  double timed(const Work& work) {
    if (rank_.rank != 0) return 0;
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  }
  // What is on its way comes, and no peer runs.
  void settle() {
    rank_.barrier();
    if (rank_.rank != 0) return;
    for (const auto start = Clock::now(); Clock::now() - start < std::chrono::microseconds(300);) {
    }
  }
  void sendTo(std::uint32_t peer) {
    const wire::WireWrite write{
        .peer = peer, .src = memory_.base(), .bytes = bytes_, .immediate = 1};
    while (wire_->write(write) != wire::WireResult::Accepted) poll();
  }
  void await(wire::WireEvent::Kind kind, std::uint32_t count) {
    for (seen_[kind] -= count; seen_[kind] < 0;) poll();
  }
  void poll() {
    wire::WireEvent events[16];
    for (int i = wire_->poll(events, 16); i > 0; --i) ++seen_[events[i - 1].kind];
  }

  transport::Rank& rank_;
  const std::size_t bytes_;
  const transport::Mapping memory_;
  std::unique_ptr<wire::Wire> wire_;
  std::int64_t seen_[3] = {};
};

// What each x more adds to y, by least squares.
double slopeOf(const std::vector<double>& y) {
  double x1 = 0, y1 = 0, xx = 0, xy = 0;
  const auto n = static_cast<double>(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double x = static_cast<double>(i) + 1;
    x1 += x, y1 += y[i], xx += x * x, xy += x * y[i];
  }
  return (n * xy - x1 * y1) / (n * xx - x1 * x1);
}

double quickestTenth(std::vector<double> ns) {
  std::ranges::sort(ns);
  return ns[ns.size() / 10];
}

// The numbers of peers in turn, so that a busy machine is equally hard on all.
void body(transport::Rank& rank, std::size_t bytes, const std::string& hosts) {
  if (!hosts.empty()) goToHost(hosts, rank.rank);
  Sides sides(rank, bytes, !hosts.empty());
  sides.connect();
  std::vector<std::vector<double>> receiving(kMostPeers), sending(kMostPeers);
  for (int i = 0; i < kRounds; ++i)
    for (std::uint32_t peers = 1; peers <= kMostPeers; ++peers) {
      receiving[peers - 1].push_back(sides.receivingNs(peers));
      sending[peers - 1].push_back(sides.sendingNs(peers));
    }
  if (rank.rank != 0) return;
  std::vector<double> get(kMostPeers), send(kMostPeers);
  std::ranges::transform(receiving, get.begin(), quickestTenth);
  std::ranges::transform(sending, send.begin(), quickestTenth);
  for (std::uint32_t i = 0; i < kMostPeers; ++i)
    std::printf("%u messages of %zu B: to get them %.0f ns, to send them %.0f ns\n", i + 1, bytes,
                get[i], send[i]);
  std::printf("one more: to get it %.0f ns, to send it %.0f ns\n", slopeOf(get), slopeOf(send));
}

}  // namespace
}  // namespace weft::ofi

int main(int argc, char** argv) {
  const std::size_t bytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 8;
  const std::string hosts = argc > 2 ? argv[2] : "";
  return weft::ofi::runOverTcp(weft::ofi::kMostPeers + 1, [&](weft::transport::Rank& rank) {
    weft::ofi::body(rank, bytes, hosts);
  });
}
