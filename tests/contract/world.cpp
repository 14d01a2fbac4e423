// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <ostream>
#include <thread>

#include "base/fd.h"
#include "shuffled_wire.h"
#include "tests/has_libfabric.h"
#include "transports/faulty/faulty.h"
#include "transports/local/local.h"
#include "transports/ofi/ofi.h"
#include "transports/routed/routed.h"
#include "transports/shm/shm.h"
#include "transports/verbs/verbs.h"

namespace weft::transport {
namespace {

constexpr int kPatienceSeconds = 30;
constexpr std::size_t kMaxBlob = 4096;

// One socket pair for each rank but 0: [0] belongs to rank 0, [1] to the rank.
struct Links {
  std::vector<std::array<Fd, 2>> pairs;

  explicit Links(std::uint32_t ranks) : pairs(ranks) {
    for (auto& pair : pairs) {
      int ends[2] = {-1, -1};
      if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
      const timeval patience{kPatienceSeconds, 0};
      for (const int i : {0, 1}) {
        ::setsockopt(ends[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        pair[static_cast<std::size_t>(i)] = Fd(ends[i]);
      }
    }
  }
  std::vector<int> of(std::uint32_t rank) const {
    std::vector<int> fds(pairs.size(), -1);
    if (rank != 0) fds[0] = pairs[rank][1].get();
    if (rank == 0)
      for (std::size_t i = 1; i < pairs.size(); ++i) fds[i] = pairs[i][0].get();
    return fds;
  }
  // A rank that ends hangs up, so that nobody waits for it.
  void hangUp(std::uint32_t rank) const {
    for (const int fd : of(rank))
      if (fd >= 0) ::shutdown(fd, SHUT_RDWR);
  }
  // In a forked rank: lets go of what is not its own.
  void keepOnly(std::uint32_t rank) {
    for (std::uint32_t i = 0; i < pairs.size(); ++i) {
      if (rank != 0) pairs[i][0].reset();
      if (rank != i) pairs[i][1].reset();
    }
  }
};

std::string runBody(const Fabric& fabric, std::uint32_t rank, const Links& links,
                    const std::function<void(Rank&)>& body) {
  std::string failure;
  try {
    Rank self(fabric, rank, links.of(rank));
    body(self);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  links.hangUp(rank);
  return failure;
}

std::vector<Outcome> runThreads(const Fabric& fabric, std::uint32_t ranks,
                                const std::function<void(Rank&)>& body) {
  const Links links(ranks);
  std::vector<Outcome> outcomes(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back(
        [&, rank] { outcomes[rank].failure = runBody(fabric, rank, links, body); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

[[noreturn]] void runChild(const Fabric& fabric, std::uint32_t rank, Links& links, int report,
                           const std::function<void(Rank&)>& body) {
  links.keepOnly(rank);
  const std::string failure = runBody(fabric, rank, links, body);
  const bool told = ::write(report, failure.data(), failure.size()) >= 0;
  ::_exit(failure.empty() && told ? 0 : 1);
}

std::string readAll(int fd) {
  std::string all;
  char buffer[512];
  for (ssize_t bytes = 0; (bytes = ::read(fd, buffer, sizeof(buffer))) > 0;)
    all.append(buffer, static_cast<std::size_t>(bytes));
  return all;
}

Outcome collect(pid_t child, int report) {
  Outcome outcome{readAll(report)};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  if (outcome.failure.empty() && WIFEXITED(status) && WEXITSTATUS(status) != 0)
    outcome.failure = text("exit code ", WEXITSTATUS(status));
  return outcome;
}

std::vector<Outcome> runProcesses(const Fabric& fabric, std::uint32_t ranks,
                                  const std::function<void(Rank&)>& body) {
  if (fabric.wire) test::warmLibfabric("4096");  // WEFT_OFI_MODE=msg has its messages there
  std::vector<pid_t> children;
  std::vector<Fd> reports;
  {
    Links links(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      int ends[2] = {-1, -1};
      if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
      reports.emplace_back(ends[0]);
      const Fd mine(ends[1]);
      const pid_t child = ::fork();
      if (child == 0) runChild(fabric, rank, links, mine.get(), body);
      children.push_back(child);
    }
  }
  std::vector<Outcome> outcomes;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    outcomes.push_back(collect(children[rank], reports[rank].get()));
  return outcomes;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Fabric& fabric) { return out << fabric.name; }

std::vector<Fabric> bareFabrics() {
  return {{"local", false, false, "", 0},
          {"shm_threads", true, false, "", 0},
          {"shm_processes", true, true, "", 0}};
}

std::vector<Fabric> wireFabrics() {
  const auto shuffled = [](const Shuffle& shuffle) {
    return [shuffle](const wire::WireSetup& setup, std::unique_ptr<wire::Wire>* out) {
      return makeShuffledWire(setup, shuffle, out);
    };
  };
  return {
      {.name = "shuffled", .wire = shuffled({.seed = 1, .rails = 2})},
      {.name = "shuffled_any_source",
       .wire = shuffled({.seed = 2, .rails = 3, .maxWrite = 300000, .anySource = true})},
      {.name = "ordered_rails", .wire = shuffled({.seed = 3, .ordered = true, .rails = 3})},
  };
}

std::vector<Fabric> routedFabrics() {
  Fabric threads = wireFabrics()[0];
  threads.name = "routed";
  threads.routed = true;
  Fabric shm = threads;
  shm.name = "routed_shm";
  shm.shm = true;
  return {threads, shm};
}

// Each rank takes the devices that VERBS_DEVICES names, with its own number for %r: "rc%r" in the
// rig.
Fabric verbsFabric() {
  const auto verbs = [](const wire::WireSetup& setup, std::unique_ptr<wire::Wire>* out) {
    if (const char* pattern = std::getenv("VERBS_DEVICES")) {
      std::string devices = pattern;
      if (const auto at = devices.find("%r"); at != std::string::npos)
        devices.replace(at, 2, std::to_string(setup.rank));
      ::setenv("WEFT_NET_DEVICES", devices.c_str(), 1);
    }
    return verbs::makeVerbsWire(setup, out);
  };
  return {.name = "verbs", .processes = true, .wire = verbs};
}

Fabric ofiFabric() { return {.name = "ofi", .processes = true, .wire = ofi::makeOfiWire}; }

std::vector<Fabric> allFabrics() {
  const std::string only =
      std::getenv("FABRICS_UNDER_TEST") ? std::getenv("FABRICS_UNDER_TEST") : "";
  if (only == "verbs") return {verbsFabric()};
  if (only == "ofi") return {ofiFabric()};
  std::vector<Fabric> fabrics = bareFabrics();
  std::ranges::copy(wireFabrics(), std::back_inserter(fabrics));
  const std::string faults = ",hold=0.5,depth=16,again=0.2,late=0.3,delay=8,scribble=1,check=1";
  for (const int seed : {1, 2, 3}) {
    fabrics.push_back({text("faulty_local_", seed), false, false, text("seed=", seed, faults), 1});
    fabrics.push_back({text("faulty_shm_", seed), true, true, text("seed=", seed, faults), 1});
  }
  Fabric wired = wireFabrics()[0];
  wired.name = "faulty_shuffled";
  wired.faults = text("seed=5", faults);
  wired.decorators = 1;
  fabrics.push_back(wired);
  wired = wireFabrics()[0];
  std::ranges::copy(routedFabrics(), std::back_inserter(fabrics));
  if (test::hasLibfabric()) fabrics.push_back(ofiFabric());
  fabrics.push_back({"faulty_twice", false, false, text("seed=4", faults), 2});
  return fabrics;
}

std::vector<Fabric> mappedFabrics() {
  std::vector<Fabric> fabrics = allFabrics();
  std::erase_if(fabrics, [](const Fabric& fabric) { return bool(fabric.wire); });
  return fabrics;
}

std::vector<Fabric> forkedFabrics() {
  std::vector<Fabric> fabrics = mappedFabrics();
  std::erase_if(fabrics, [](const Fabric& fabric) { return !fabric.processes; });
  return fabrics;
}

void Rank::send(int link, std::span<const std::byte> bytes) {
  const ssize_t sent = ::send(link, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  REQUIRE(sent == static_cast<ssize_t>(bytes.size()), "control plane: ", std::strerror(errno));
}

std::vector<std::byte> Rank::receive(int link) {
  std::vector<std::byte> bytes(kMaxBlob);
  const ssize_t got = ::recv(link, bytes.data(), bytes.size(), 0);
  REQUIRE(got > 0, "control plane of rank ", rank, ": a rank is gone or late");
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

// Messages begin with one byte of ours, so that none is empty (which would read as a hang-up).
Status Rank::exchange(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) {
  if (all == nullptr) return {};
  std::vector<std::byte> framed(1);
  framed.insert(framed.end(), mine.begin(), mine.end());
  all->assign(ranks, {});
  try {
    if (rank != 0) send(links_[0], framed);
    if (rank == 0) (*all)[0] = framed;
    for (std::uint32_t i = rank == 0 ? 1 : 0; i < ranks; ++i)
      (*all)[i] = receive(rank == 0 ? links_[i] : links_[0]);
    if (rank == 0)
      for (std::uint32_t to = 1; to < ranks; ++to)
        for (const auto& blob : *all) send(links_[to], blob);
  } catch (const Failure& failure) {
    return Status::error(Code::Timeout, failure.what());
  }
  for (auto& blob : *all) blob.erase(blob.begin());
  return {};
}

void Rank::barrier() { share(0); }

TransportSetup Rank::setup(const WindowLayout& layout) {
  TransportSetup setup;
  setup.rank = rank;
  setup.ranks = ranks;
  setup.layout = layout;
  setup.exchange = [this](auto mine, auto* all) { return exchange(mine, all); };
  setup.timeoutMs = 10000;
  return setup;
}

namespace {

// Hosts of two threads each, and a wire between them.
routed::RoutedSetup pairsOf(std::uint32_t self, std::uint32_t ranks, const Fabric& fabric) {
  routed::RoutedSetup routed;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    routed.hosts.push_back(r / 2);
    routed.wireOf.push_back(r / 2 == self / 2 ? routed::RoutedSetup::kInside : 0);
  }
  routed.inside = fabric.shm ? shm::makeShm : local::makeLocal;
  routed.wires.push_back(
      [wire = fabric.wire](const TransportSetup& setup, std::unique_ptr<Transport>* out) {
        return wire::makeWireTransport(setup, wire, out);
      });
  return routed;
}

}  // namespace

Status Rank::tryMake(const TransportSetup& setup, std::unique_ptr<Transport>* out) {
  if (fabric.routed)
    WEFT_TRY(routed::makeRouted(setup, pairsOf(setup.rank, setup.ranks, fabric), out));
  else if (fabric.wire)
    WEFT_TRY(wire::makeWireTransport(setup, fabric.wire, out));
  else
    WEFT_TRY(fabric.shm ? shm::makeShm(setup, out) : local::makeLocal(setup, out));
  for (int i = 0; i < fabric.decorators; ++i)
    WEFT_TRY(faulty::makeFaulty(std::move(*out), fabric.faults, out));
  return {};
}

std::unique_ptr<Transport> Rank::make(const WindowLayout& layout) {
  std::unique_ptr<Transport> transport;
  const Status status = tryMake(setup(layout), &transport);
  REQUIRE(status.ok(), status.text());
  return transport;
}

std::vector<Outcome> runRanks(const Fabric& fabric, std::uint32_t ranks,
                              const std::function<void(Rank&)>& body) {
  return fabric.processes ? runProcesses(fabric, ranks, body) : runThreads(fabric, ranks, body);
}

void runAllWell(const Fabric& fabric, std::uint32_t ranks, const std::function<void(Rank&)>& body) {
  const std::vector<Outcome> outcomes = runRanks(fabric, ranks, body);
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_EQ(outcomes[rank].failure, "") << "rank " << rank << " over " << fabric.name;
    EXPECT_EQ(outcomes[rank].signal, 0) << "rank " << rank << " over " << fabric.name;
  }
}

WindowLayout smallLayout(std::uint32_t ranks) {
  return {.ranks = ranks,
          .arrivalSlots = 64,
          .pairArrivalSlots = 8,
          .arenaBytes = 65536,
          .pairBytes = 16384};
}

}  // namespace weft::transport
