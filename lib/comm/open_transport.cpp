// SPDX-License-Identifier: Apache-2.0
#include "comm/open_transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/folder.h"
#include "base/log.h"
#include "base/text.h"
#include "transports/faulty/faulty.h"
#include "transports/gather.h"
#include "transports/local/local.h"
#include "transports/ofi/ofi.h"
#include "transports/routed/routed.h"
#include "transports/shm/shm.h"
#include "transports/verbs/verbs.h"
#include "transports/wire/wire_transport.h"

namespace weft::comm {
namespace {

constexpr std::string_view kAuto = "auto";

// "auto" or a name on each side.
struct TransportWish {
  std::string inside{kAuto}, between{kAuto};
  std::string faults;      // of all
  std::string wireFaults;  // of the wires alone
  bool all = false;        // one transport for all ranks, wherever they are
};

bool isWire(std::string_view name) { return name == "verbs" || name == "ofi"; }

Status unknown(const std::string& wanted) {
  return Status::error(
      Code::InvalidArgument, "unknown transport '", wanted,
      "'; fix: auto, local, shm, verbs, ofi, two of them as in shm+ofi, or faulty:SEED, or "
      "faulty(ofi):SEED for faults of the wires of a choice");
}

std::string faultsOf(std::string_view spec) {
  if (spec.starts_with(':')) spec.remove_prefix(1);
  if (spec.empty()) return "seed=1";
  return text(spec.find('=') == std::string_view::npos ? "seed=" : "", spec);
}

// "ofi", "shm+ofi", "faulty:SPEC", "faulty(ofi):SPEC".
Status parse(const std::string& wanted, TransportWish* wish) {
  constexpr std::string_view kFaulty = "faulty";
  if (wanted == kAuto) return {};
  if (const std::size_t end = wanted.find(')');
      wanted.starts_with("faulty(") && end != wanted.npos) {
    wish->wireFaults = faultsOf(std::string_view(wanted).substr(end + 1));
    return parse(wanted.substr(kFaulty.size() + 1, end - kFaulty.size() - 1), wish);
  }
  if (wanted.starts_with(kFaulty) && !wanted.starts_with("faulty(")) {
    wish->faults = faultsOf(std::string_view(wanted).substr(kFaulty.size()));
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

wire::WireMaker makerOf(std::string_view name) {
  return name == "verbs" ? verbs::makeVerbsWire : ofi::makeOfiWire;
}

// EFA devices are libfabric's.
bool hasRoceDevice() {
  namespace fs = std::filesystem;
  const fs::path folder = "/sys/class/infiniband";
  std::vector<std::string> devices;
  (void)listFolder(folder, &devices);
  for (const std::string& device : devices) {
    std::error_code none;
    const fs::path driver = fs::read_symlink(folder / device / "device" / "driver", none);
    if (driver.filename() != "efa") return true;
  }
  return false;
}

// All ranks hear whether any of them has a RoCE device, and so try alike.
Status anyHasRoce(const transport::TransportSetup& setup, bool* has) {
  std::vector<std::uint8_t> all;
  WEFT_TRY(transport::gather(setup, {}, std::uint8_t{hasRoceDevice()}, &all));
  *has = std::ranges::any_of(all, [](std::uint8_t one) { return one != 0; });
  return {};
}

// Are the ranks of this host threads of one process?
bool isOneProcess(const std::vector<PeerName>& names, std::size_t rank) {
  return std::ranges::all_of(names, [&](const PeerName& name) {
    return name.hostId != names[rank].hostId || name.pid == names[rank].pid;
  });
}

Status otherHost(const std::vector<PeerName>& names, const TransportWish& wish) {
  const auto other = std::ranges::find_if(
      names, [&](const PeerName& name) { return name.hostId != names[0].hostId; });
  return Status::error(
      Code::InvalidUsage, "transport '", wish.inside, "' does not reach rank ",
      other - names.begin(), " (host ", other->host, ") from rank 0 (host ", names[0].host,
      "): they share no memory or are in different network namespaces; fix: WEFT_TRANSPORT=",
      wish.inside, "+ofi, or auto");
}

constexpr std::string_view kMemory = "memory";

// What may carry bytes between each two ranks.
class Ways {
 public:
  Ways(const TransportWish& wish, const std::vector<PeerName>& names,
       const TransportSelection& selection)
      : wish_(wish), names_(names), selection_(selection) {
    if (wish_.between == kAuto && !selection.between.empty()) wish_.between = selection.between;
  }
  const TransportWish& wish() const { return wish_; }

  // The first is what was wanted, the next serves a pair that has lost it, and so on.
  std::vector<std::string> of(const RankPair& pair) const {
    const bool sameHost = isInside(pair);
    std::vector<std::string> ways{sameHost ? wish_.inside : wish_.between};
    if (sameHost && !isWire(ways[0])) return {std::string(kMemory)};
    if (sameHost) ways.emplace_back(kMemory);
    if (!sameHost && ways[0] == "verbs") ways.emplace_back("ofi");
    return ways;
  }
  std::size_t lost(const RankPair& pair) const {
    const auto found = selection_.lost.find(pair);
    return found == selection_.lost.end() ? 0 : found->second;
  }
  // Have all pairs inside hosts, or all between them, lost what was wanted for them?
  bool allLost(bool inside) const {
    const auto isKind = [&](const auto& lost) { return isInside(lost.first) == inside; };
    const auto lost = std::ranges::count_if(selection_.lost, isKind);
    std::int64_t pairs = 0;
    for (std::uint32_t b = 0; lost != 0 && b < names_.size(); ++b)
      for (std::uint32_t a = 0; a < b; ++a) pairs += isInside({a, b}) == inside;
    return lost != 0 && lost == pairs;
  }
  // Is verbs wanted for every pair?
  bool isMesh() const {
    const bool oneHost = isOneHost(hostsOf(names_));
    const bool oneEach = std::ranges::max(hostsOf(names_)) + 1 == names_.size();
    return (oneEach || wish_.inside == "verbs") && (oneHost || wish_.between == "verbs");
  }
  bool isLeft(const RankPair& pair) const { return lost(pair) < of(pair).size(); }
  std::string now(const RankPair& pair) const { return of(pair)[lost(pair)]; }

 private:
  bool isInside(const RankPair& pair) const {
    return names_[pair.first].hostId == names_[pair.second].hostId;
  }

  TransportWish wish_;
  const std::vector<PeerName>& names_;
  const TransportSelection& selection_;
};

// Opens one transport, or several with a way for each peer.
class Opening {
 public:
  Opening(const transport::TransportSetup& setup, const TransportWish& wish,
          TransportSelection* selection)
      : setup_(setup), selection_(*selection), ways_(wish, setup.names, *selection) {}
  Status run(std::unique_ptr<transport::Transport>* out);

 private:
  Status checkLost() const;
  void use(const std::string& way);
  void chooseWires();
  Status makeMemory(const transport::TransportSetup& setup,
                    std::unique_ptr<transport::Transport>* out) const;
  Status makeWire(const std::string& name, const transport::TransportSetup& setup,
                  std::unique_ptr<transport::Transport>* out) const;
  Status makeFound(const transport::TransportSetup& setup,
                   std::unique_ptr<transport::Transport>* out) const;
  routed::RoutedSetup routes() const;

  const transport::TransportSetup& setup_;
  TransportSelection& selection_;
  const Ways ways_;
  std::vector<std::string> wires_;  // that any pair of ranks uses
  bool memory_ = false;             // some pairs are reached by memory
};

Status Opening::checkLost() const {
  for (const auto& [pair, times] : selection_.lost) {
    if (ways_.isLeft(pair)) continue;
    return Status::error(Code::RemoteError, "nothing but ", ways_.of(pair).back(), " joins ",
                         setup_.names[pair.first], " and ", setup_.names[pair.second],
                         " (WEFT_TRANSPORT=", selection_.wanted,
                         "); fix: repair that link and create the communicator again");
  }
  return {};
}

void Opening::use(const std::string& way) {
  if (way == kMemory)
    memory_ = true;
  else if (std::ranges::find(wires_, way) == wires_.end())
    wires_.push_back(way);
}

void Opening::chooseWires() {
  const TransportWish& wish = ways_.wish();
  if (!ways_.allLost(true)) use(isWire(wish.inside) ? wish.inside : std::string(kMemory));
  if (!isOneHost(hostsOf(setup_.names)) && !ways_.allLost(false)) use(wish.between);
  for (const auto& [pair, times] : selection_.lost) use(ways_.now(pair));
}

// Of ranks for which a wire was wanted, or nothing, as fits them.
Status Opening::makeMemory(const transport::TransportSetup& setup,
                           std::unique_ptr<transport::Transport>* out) const {
  const std::string& inside = ways_.wish().inside;
  const bool threads = isOneProcess(setup_.names, setup_.rank);
  if (inside == "local" && !threads)
    return Status::error(
        Code::InvalidUsage,
        "transport 'local' is for ranks that are threads of one process; fix: use shm or auto");
  return threads && inside != "shm" ? local::makeLocal(setup, out) : shm::makeShm(setup, out);
}

Status Opening::makeWire(const std::string& name, const transport::TransportSetup& setup,
                         std::unique_ptr<transport::Transport>* out) const {
  if (name == kAuto)
    WEFT_TRY(makeFound(setup, out));
  else
    WEFT_TRY(wire::makeWireTransport(setup, makerOf(name), out));
  const std::string& faults = ways_.wish().wireFaults;
  return faults.empty() ? Status() : faulty::makeFaulty(std::move(*out), faults, out);
}

Status Opening::makeFound(const transport::TransportSetup& setup,
                          std::unique_ptr<transport::Transport>* out) const {
  bool roce = false;
  WEFT_TRY(anyHasRoce(setup, &roce));
  if (roce) {
    selection_.between = "verbs";
    const Status verbs = wire::makeWireTransport(setup, verbs::makeVerbsWire, out);
    if (verbs.ok()) return {};
    if (setup.rank == 0)
      logWarn("RoCE devices are there but not used between hosts, libfabric is: ", verbs.text());
  }
  selection_.between = "ofi";
  return wire::makeWireTransport(setup, ofi::makeOfiWire, out);
}

routed::RoutedSetup Opening::routes() const {
  routed::RoutedSetup routed;
  routed.hosts = hostsOf(setup_.names);
  if (memory_)
    routed.inside = [this](const transport::TransportSetup& s,
                           std::unique_ptr<transport::Transport>* made) {
      return makeMemory(s, made);
    };
  for (const std::string& wire : wires_)
    routed.wires.push_back([this, &wire](const transport::TransportSetup& s,
                                         std::unique_ptr<transport::Transport>* made) {
      return makeWire(wire, s, made);
    });
  for (std::uint32_t r = 0; r < setup_.ranks; ++r) {
    const std::string way =
        r == setup_.rank ? std::string(kMemory) : ways_.now(std::minmax({r, setup_.rank}));
    const auto wire = std::ranges::find(wires_, way);
    routed.wireOf.push_back(way == kMemory ? routed::RoutedSetup::kInside
                                           : static_cast<std::uint32_t>(wire - wires_.begin()));
  }
  return routed;
}

Status Opening::run(std::unique_ptr<transport::Transport>* out) {
  WEFT_TRY(checkLost());
  chooseWires();
  if (wires_.empty()) return makeMemory(setup_, out);
  if (!memory_ && wires_.size() == 1) return makeWire(wires_[0], setup_, out);
  return routed::makeRouted(setup_, routes(), out);
}

}  // namespace

Status openTransport(const transport::TransportSetup& setup, TransportSelection* selection,
                     std::unique_ptr<transport::Transport>* out) {
  TransportWish wish;
  WEFT_TRY(parse(selection->wanted, &wish));
  const bool oneHost = isOneHost(hostsOf(setup.names));
  if (!oneHost && wish.all && !isWire(wish.inside)) return otherHost(setup.names, wish);
  WEFT_TRY(Opening(setup, wish, selection).run(out));
  return wish.faults.empty() ? Status() : faulty::makeFaulty(std::move(*out), wish.faults, out);
}

bool goAround(const std::vector<PeerName>& names, const std::vector<RankPair>& uncabled,
              TransportSelection* selection) {
  if (uncabled.empty() || !isMesh(names, *selection)) return false;
  TransportSelection around = *selection;
  for (const RankPair& pair : uncabled) ++around.lost[pair];
  std::vector<std::uint32_t> reached{0};
  for (std::size_t next = 0; next < reached.size(); ++next)
    for (std::uint32_t r = 1; r < names.size(); ++r)
      if (std::ranges::count(reached, r) == 0 &&
          !around.lost.contains(std::minmax(r, reached[next])))
        reached.push_back(r);
  if (reached.size() != names.size()) return false;
  *selection = std::move(around);
  return true;
}

bool isMesh(const std::vector<PeerName>& names, const TransportSelection& selection) {
  TransportWish wish;
  return parse(selection.wanted, &wish).ok() && Ways(wish, names, selection).isMesh();
}

std::string carrierOf(const std::vector<PeerName>& names, const TransportSelection& selection,
                      const RankPair& pair) {
  TransportWish wish;
  if (!parse(selection.wanted, &wish).ok()) return {};
  const Ways ways(wish, names, selection);
  return ways.isLeft(pair) ? ways.now(pair) : std::string();
}

}  // namespace weft::comm
