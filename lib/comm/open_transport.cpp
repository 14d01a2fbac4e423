// SPDX-License-Identifier: Apache-2.0
#include "comm/open_transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "transports/routed/routed.h"
#include "transports/wire/wire_transport.h"

namespace weft {
namespace {

constexpr std::string_view kAuto = "auto";

// "auto" or a name on each side.
struct Wish {
  std::string inside{kAuto}, between{kAuto};
  std::string faults;
  bool all = false;  // one transport for all ranks, wherever they are
};

bool isWire(std::string_view name) { return name == "verbs" || name == "ofi"; }

Status unknown(const std::string& wanted) {
  return Status::error(
      Code::InvalidArgument,
      text("unknown transport '", wanted,
           "'; fix: auto, local, shm, verbs, ofi, two of them as in shm+ofi, or faulty:SEED"));
}

// "ofi", "shm+ofi", "faulty:SPEC".
Status parse(const std::string& wanted, Wish* wish) {
  if (wanted == kAuto) return {};
  if (wanted.starts_with("faulty")) {
    wish->faults = wanted.size() > 7 ? wanted.substr(7) : "seed=1";
    if (wish->faults.find('=') == std::string::npos) wish->faults = "seed=" + wish->faults;
    return {};
  }
  const std::size_t plus = wanted.find('+');
  wish->inside = wanted.substr(0, plus);
  const bool mapped = wish->inside == "local" || wish->inside == "shm";
  if (!mapped && !isWire(wish->inside)) return unknown(wanted);
  wish->all = plus == std::string::npos;
  wish->between = wish->all ? wish->inside : wanted.substr(plus + 1);
  if (!wish->all && wish->between != kAuto && !isWire(wish->between)) return unknown(wanted);
  return {};
}

WireMaker makerOf(std::string_view name) { return name == "verbs" ? makeVerbsWire : makeOfiWire; }

Status makeMapped(std::string_view name, bool oneProcess, const TransportSetup& setup,
                  std::unique_ptr<Transport>* out) {
  if (name == "local" && !oneProcess)
    return Status::error(
        Code::InvalidUsage,
        "transport 'local' is for ranks that are threads of one process; fix: use shm or auto");
  return name == "local" || (name == kAuto && oneProcess) ? makeLocal(setup, out)
                                                          : makeShm(setup, out);
}

Status makeInside(const Wish& wish, bool oneProcess, const TransportSetup& setup,
                  std::unique_ptr<Transport>* out) {
  if (isWire(wish.inside)) return makeWireTransport(setup, makerOf(wish.inside), nullptr, out);
  return makeMapped(wish.inside, oneProcess, setup, out);
}

// EFA devices are libfabric's.
bool hasRoceDevice() {
  namespace fs = std::filesystem;
  std::error_code none;
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", none)) {
    const fs::path driver = fs::read_symlink(device.path() / "device" / "driver", none);
    if (driver.filename() != "efa") return true;
  }
  return false;
}

// All ranks hear whether any of them has a RoCE device, and so try alike.
Status anyHasRoce(const TransportSetup& setup, bool* has) {
  const std::byte mine{hasRoceDevice()};
  std::vector<std::vector<std::byte>> all;
  WEFT_TRY(setup.exchange({&mine, 1}, &all));
  *has = std::ranges::any_of(
      all, [](const auto& blob) { return !blob.empty() && blob[0] != std::byte{0}; });
  return {};
}

Status makeBetween(const Wish& wish, const TransportSetup& setup, std::byte* segment,
                   std::unique_ptr<Transport>* out) {
  if (wish.between != kAuto) return makeWireTransport(setup, makerOf(wish.between), segment, out);
  bool roce = false;
  WEFT_TRY(anyHasRoce(setup, &roce));
  if (roce) {
    const Status verbs = makeWireTransport(setup, makeVerbsWire, segment, out);
    if (verbs.ok()) return {};
    if (setup.rank == 0)
      logWarn("RoCE devices are there but not used between hosts, libfabric is: ", verbs.text());
  }
  return makeWireTransport(setup, makeOfiWire, segment, out);
}

bool isOneProcess(const std::vector<RankPlace>& members, std::size_t rank) {
  return std::ranges::all_of(members, [&](const RankPlace& m) {
    return m.hostId != members[rank].hostId || m.pid == members[rank].pid;
  });
}

Status otherHost(const std::vector<RankPlace>& members, const Wish& wish) {
  const auto other = std::ranges::find_if(
      members, [&](const RankPlace& m) { return m.hostId != members[0].hostId; });
  return Status::error(
      Code::InvalidUsage,
      text("transport '", wish.inside, "' does not reach rank ", other - members.begin(), " (host ",
           other->host, ") from rank 0 (host ", members[0].host,
           "): they share no memory or are in different network namespaces; fix: WEFT_TRANSPORT=",
           wish.inside, "+ofi, or auto"));
}

}  // namespace

std::vector<std::uint32_t> hostsOf(const std::vector<RankPlace>& members) {
  std::map<std::string, std::uint32_t> numbers;
  std::vector<std::uint32_t> hosts;
  for (const RankPlace& member : members) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    hosts.push_back(numbers.emplace(member.hostId, next).first->second);
  }
  return hosts;
}

bool isOneHost(const std::vector<std::uint32_t>& hosts) {
  return std::ranges::all_of(hosts, [](std::uint32_t h) { return h == 0; });
}

Status openTransport(const TransportSetup& setup, const std::vector<RankPlace>& members,
                     const std::string& wanted, std::unique_ptr<Transport>* out) {
  Wish wish;
  WEFT_TRY(parse(wanted, &wish));
  const std::vector<std::uint32_t> hosts = hostsOf(members);
  const bool oneHost = isOneHost(hosts);
  const bool oneProcess = isOneProcess(members, setup.rank);
  if (oneHost || (wish.all && isWire(wish.inside))) {
    WEFT_TRY(makeInside(wish, oneProcess, setup, out));
  } else if (wish.all) {
    return otherHost(members, wish);
  } else {
    const auto inside = [&](const TransportSetup& s, std::unique_ptr<Transport>* made) {
      return makeInside(wish, oneProcess, s, made);
    };
    const auto between = [&](const TransportSetup& s, std::byte* segment,
                             std::unique_ptr<Transport>* made) {
      return makeBetween(wish, s, segment, made);
    };
    WEFT_TRY(makeRouted(setup, {hosts, inside, between}, out));
  }
  if (wish.faults.empty()) return {};
  return makeFaulty(std::move(*out), wish.faults, out);
}

}  // namespace weft
