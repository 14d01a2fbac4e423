// SPDX-License-Identifier: Apache-2.0
// What the wire over libfabric costs beside bare remote writes on the same interface, in one run:
// for each size and each of the two the median, and their ratio. Bandwidth: a window of writes one
// way, until the last has been noticed; latency: half of a write to and fro.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "over_tcp.h"
#include "transports/mapping.h"
#include "transports/ofi/choice.h"
#include "transports/ofi/ofi.h"
#include "transports/ofi/rail.h"
#include "world.h"

namespace weft::ofi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kWindowBytes = std::size_t{4} << 20;
constexpr std::uint32_t kInFlight = 16;

// Either of the two: begins a write of so many bytes if it can, and says how many of the peer's
// have come.
struct Way {
  std::function<bool(std::size_t)> write;
  std::function<std::uint32_t()> come;
};

Way overWire(wire::Wire& wire, std::uint32_t peer, std::byte* memory) {
  const auto come = [&wire] {
    wire::WireEvent events[16];
    std::uint32_t completions = 0;
    for (int i = wire.poll(events, 16); i > 0; --i)
      completions += events[i - 1].kind == wire::WireEvent::RemoteCompletion;
    return completions;
  };
  const auto write = [&wire, peer, memory](std::size_t bytes) {
    return wire.write({.peer = peer, .src = memory, .bytes = bytes, .immediate = 1}) ==
           wire::WireResult::Accepted;
  };
  return {write, come};
}

// What any program would write that does without a wire.
Way bare(ofi::Rail& rail, const ofi::Contact& to, fi_addr_t peer, std::byte* memory) {
  const auto come = [&rail] {
    fi_cq_data_entry entries[16];
    const ssize_t got = fi_cq_read(rail.queue(), entries, 16);
    std::uint32_t completions = 0;
    for (ssize_t i = 0; i < got; ++i) completions += (entries[i].flags & FI_REMOTE_WRITE) != 0;
    return completions;
  };
  static fi_context2 contexts[256];
  const auto write = [&rail, to, peer, memory](std::size_t bytes) {
    static std::size_t next = 0;
    const ssize_t result = fi_writedata(
        rail.endpoint(), memory, bytes, rail.memory().descriptor(memory, bytes), 1, peer,
        to.place[ofi::kWindow].base, to.place[ofi::kWindow].key, &contexts[next % 256]);
    next += result == 0;
    return result == 0;
  };
  return {write, come};
}

double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

double latency(const Way& way, bool first, std::size_t bytes, int trips) {
  const auto await = [&] {
    while (way.come() == 0) {
    }
  };
  const auto start = Clock::now();
  for (int i = 0; i < trips; ++i) {
    if (!first) await();
    while (!way.write(bytes)) (void)way.come();
    if (first) await();
  }
  return seconds(Clock::now() - start) / trips / 2 * 1e6;
}

// Rank 0 sends so many, no more than a window ahead of what rank 1 has told to have come.
double bandwidth(const Way& way, bool first, std::size_t bytes, std::uint32_t count) {
  const auto start = Clock::now();
  std::uint32_t sent = 0;
  std::uint32_t come = 0;
  const std::uint32_t answers = count / kInFlight;
  if (first) {
    while (come < answers) {
      if (sent < count && sent - come * kInFlight < 2 * kInFlight && way.write(bytes))
        ++sent;
      else
        come += way.come();
    }
  } else {
    for (std::uint32_t told = 0; told < answers;) {
      come += way.come();
      if (come / kInFlight > told && way.write(1)) ++told;
    }
  }
  return static_cast<double>(bytes) * count / seconds(Clock::now() - start) / 1e6;
}

struct Bare {
  std::unique_ptr<ofi::Rail> rail;
  ofi::Contact theirs;
  fi_addr_t peer = FI_ADDR_UNSPEC;
};

Bare openBare(transport::Rank& rank, std::span<std::byte> memory) {
  const ofi::Library* library = nullptr;
  Status status = ofi::openLibrary(&library);
  REQUIRE(status.ok(), status.text());
  wire::DeviceFilter loopback;
  status = wire::DeviceFilter::parse("=lo", &loopback);
  REQUIRE(status.ok(), status.text());
  std::string why;
  const auto found = ofi::listCandidates(*library, "tcp;ofi_rxm", loopback, {}, &why);
  REQUIRE(!found.empty(), why);
  Bare made;
  status = ofi::Rail::open(*library, found.front(), {{memory, {}}, 1024}, &made.rail);
  REQUIRE(status.ok(), status.text());
  made.theirs = rank.share(made.rail->contact())[1 - rank.rank];
  status = made.rail->insert(made.theirs, &made.peer);
  REQUIRE(status.ok(), status.text());
  rank.barrier();
  return made;
}

std::unique_ptr<wire::Wire> openWire(transport::Rank& rank, std::span<std::byte> memory) {
  ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
  wire::WireSetup setup{rank.setup({}), {memory, {}, {}}, 4 * kInFlight};
  setup.peers = {rank.rank == 1, rank.rank == 0};
  setup.names = {{0, "here"}, {1, "here"}};
  std::unique_ptr<wire::Wire> wire;
  const Status status = makeOfiWire(setup, &wire);
  REQUIRE(status.ok(), status.text());
  return wire;
}

using Measure = std::function<double(const Way&)>;

// Turn by turn, so that a busy machine is equally hard on both.
void compare(transport::Rank& rank, const Way& wire, const Way& raw, const char* what,
             const Measure& measure) {
  constexpr int kRounds = 15;
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int i = 0; i < kRounds; ++i) {
    rank.barrier();
    ours.push_back(measure(wire));
    rank.barrier();
    theirs.push_back(measure(raw));
  }
  std::ranges::sort(ours);
  std::ranges::sort(theirs);
  const double our = ours[kRounds / 2];
  const double their = theirs[kRounds / 2];
  if (rank.rank == 0)
    std::printf("%s: wire %.2f, bare %.2f, ratio %.3f\n", what, our, their, our / their);
}

void body(transport::Rank& rank) {
  const transport::Mapping memory(kWindowBytes, -1);
  const std::span<std::byte> window(memory.base(), kWindowBytes);
  const bool first = rank.rank == 0;
  const auto wire = openWire(rank, window);
  const Bare other = openBare(rank, window);
  const Way ours = overWire(*wire, 1 - rank.rank, memory.base());
  const Way raw = bare(*other.rail, other.theirs, other.peer, memory.base());
  latency(ours, first, 8, 100);
  latency(raw, first, 8, 100);
  for (const std::size_t bytes : {8u, 64u, 4096u})
    compare(rank, ours, raw, text("latency us, ", bytes, " B").c_str(),
            [&](const Way& way) { return latency(way, first, bytes, 1000); });
  for (const std::size_t bytes : {65536u, 1048576u})
    compare(rank, ours, raw, text("bandwidth MB/s, ", bytes, " B").c_str(), [&](const Way& way) {
      return bandwidth(way, first, bytes, bytes > 100000 ? 128 : 1024);
    });
  rank.barrier();
}

}  // namespace
}  // namespace weft::ofi

int main() { return weft::ofi::runOverTcp(2, weft::ofi::body); }
