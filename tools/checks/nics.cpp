// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/nics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tools/checks/kinds.h"
#include "tools/checks/system_files.h"

namespace weft::checks {
namespace {

namespace fs = std::filesystem;

// A counter that should not rise, and by how much it may: a number and a share of the packets.
struct Watched {
  const char* name;
  KindName kind;
  double number, share;
};
constexpr Watched kWatched[] = {
    // interfaces
    {"rx_errors", "nic-errors", 2, 1e-5},
    {"tx_errors", "nic-errors", 2, 1e-5},
    {"rx_dropped", "nic-drops", 100, 1e-3},  // also frames of protocols that nobody here speaks
    {"tx_dropped", "nic-drops", 100, 1e-3},
    {"rx_missed_errors", "nic-drops", 100, 1e-3},
    {"carrier_down_count", "nic-flapped", 0, 0},
    // RDMA ports: the link
    {"symbol_error", "nic-errors", 2, 1e-5},
    {"port_rcv_errors", "nic-errors", 2, 1e-5},
    {"local_link_integrity_errors", "nic-errors", 2, 1e-5},
    {"link_error_recovery", "nic-errors", 2, 1e-5},
    {"link_downed", "nic-flapped", 0, 0},
    // RDMA ports: what was lost on the way and sent again
    {"out_of_sequence", "nic-errors", 100, 1e-3},
    {"packet_seq_err", "nic-errors", 100, 1e-3},
    {"local_ack_timeout_err", "nic-errors", 100, 1e-3},
    {"port_xmit_discards", "nic-drops", 100, 1e-3},
    {"rx_drops", "nic-drops", 100, 1e-3},  // EFA
};
constexpr const char* kPackets[] = {"rx_packets",        "tx_packets", "port_rcv_packets",
                                    "port_xmit_packets", "rx_pkts",    "tx_pkts"};

void readCounters(const std::string& folder, Nic* nic) {
  const auto read = [&](const char* name) {
    if (const auto number = readNumber(folder + "/" + name); number && *number >= 0)
      nic->counters[name] = static_cast<std::uint64_t>(*number);
  };
  for (const Watched& watched : kWatched) read(watched.name);
  for (const char* name : kPackets) read(name);
}

Nic readInterface(const std::string& net, const std::string& name) {
  constexpr unsigned kIffUp = 1;
  const std::string folder = net + name;
  Nic nic;
  nic.name = name;
  nic.hardware = fs::exists(folder + "/device");
  nic.up = readLine(folder + "/operstate") == "up";
  nic.wanted = std::strtoul(readLine(folder + "/flags").c_str(), nullptr, 16) & kIffUp;
  nic.gbit = std::max(0.0, readNumber(folder + "/speed").value_or(0)) / 1000;  // -1: not known
  nic.mtu = static_cast<int>(readNumber(folder + "/mtu").value_or(0));
  readCounters(folder, &nic);
  readCounters(folder + "/statistics", &nic);
  return nic;
}

int countGids(const std::string& port) {
  int used = 0;
  for (const std::string& index : listFolder(port + "/gids"))
    used += readLine(port + "/gids/" + index).find_first_not_of("0:") != std::string::npos;
  return used;
}

// A port's "rate" reads "100 Gb/sec (4X EDR)", its state "4: ACTIVE".
Nic readPort(const std::string& root, const std::string& device, const std::string& port) {
  const std::string folder = root + "/sys/class/infiniband/" + device;
  const std::string ports = folder + "/ports/" + port;
  Nic nic;
  nic.name = device + ":" + port;
  nic.rdma = true;
  nic.hardware = fs::exists(folder + "/device");
  nic.up = readLine(ports + "/state").starts_with("4:");
  nic.wanted = true;
  nic.gbit = readNumber(ports + "/rate").value_or(0);
  const std::string interface = readLine(ports + "/gid_attrs/ndevs/0");
  if (!interface.empty())
    nic.mtu =
        static_cast<int>(readNumber(root + "/sys/class/net/" + interface + "/mtu").value_or(0));
  nic.gids = countGids(ports);
  nic.ethernet = readLine(ports + "/link_layer") == "Ethernet";
  if (const std::string vendor = readLine(folder + "/device/vendor"); !vendor.empty())
    nic.model = vendor + ":" + readLine(folder + "/device/device");
  readCounters(ports + "/counters", &nic);
  readCounters(ports + "/hw_counters", &nic);
  return nic;
}

std::string culpritOf(const Nic& nic, const std::string& host) {
  return fmt::format("NIC {} on host {}", nic.name, host);
}

std::string describe(const Nic& nic) {
  std::string text = nic.up ? "up" : nic.wanted ? "no link" : "off";
  if (nic.gbit > 0) text += fmt::format(", {:g} Gbit/s", nic.gbit);
  if (nic.mtu > 0) text += fmt::format(", MTU {}", nic.mtu);
  if (nic.rdma)
    text += fmt::format(", {}, {} GIDs", nic.ethernet ? "RoCE" : "RDMA", nic.gids);
  else if (!nic.hardware)
    text += ", virtual";
  return text;
}

void checkPort(const Nic& nic, const std::vector<Nic>& nics, HostReport& report) {
  if (!nic.up) return;
  if (nic.ethernet && nic.gids == 0)
    report.findings.push_back(makeFinding("rdma-no-gid", culpritOf(nic, report.host),
                                          "the port is active but its GID table is empty", 0.8));
  double most = nic.gbit;
  for (const Nic& other : nics) {
    if (other.rdma && other.up && !nic.model.empty() && other.model == nic.model)
      most = std::max(most, other.gbit);
  }
  if (nic.gbit < most)
    report.findings.push_back(makeFinding(
        "rdma-slow", culpritOf(nic, report.host),
        fmt::format("{:g} Gbit/s, others of its model run at {:g} Gbit/s", nic.gbit, most),
        1 - nic.gbit / most));
}

// "4 x RDMA 100 Gbit/s MTU 9000, 1 x 10 Gbit/s MTU 1500" of what is up.
std::string summaryOf(const std::vector<Nic>& nics, bool rdma) {
  std::map<std::string, int> counts;
  for (const Nic& nic : nics) {
    if (nic.up && nic.rdma == rdma && (nic.hardware || rdma))
      ++counts[fmt::format("{}{}MTU {}", rdma ? "RDMA " : "",
                           nic.gbit > 0 ? fmt::format("{:g} Gbit/s ", nic.gbit) : "", nic.mtu)];
  }
  std::string all;
  for (const auto& [what, count] : counts)
    all += fmt::format("{}{} x {}", all.empty() ? "" : ", ", count, what);
  return all.empty() ? "none" : all;
}

std::uint64_t risen(const Nic& before, const Nic& after, const std::string& counter) {
  const auto from = before.counters.find(counter), to = after.counters.find(counter);
  if (from == before.counters.end() || to == after.counters.end()) return 0;
  return to->second - std::min(from->second, to->second);  // a driver that was reset begins anew
}

}  // namespace

std::vector<Nic> readNics(const std::string& root) {
  const std::string net = root + "/sys/class/net/", rdma = root + "/sys/class/infiniband/";
  std::vector<Nic> nics;
  for (const std::string& name : listFolder(net)) {
    if (name != "lo" && name != "bonding_masters") nics.push_back(readInterface(net, name));
  }
  for (const std::string& device : listFolder(rdma)) {
    for (const std::string& port : listFolder(rdma + device + "/ports"))
      nics.push_back(readPort(root, device, port));
  }
  return nics;
}

void checkNics(const std::vector<Nic>& nics, HostReport& report) {
  bool anyRdma = false, anyActive = false;
  for (const Nic& nic : nics) {
    report.add("nic." + nic.name, describe(nic));
    anyRdma |= nic.rdma;
    anyActive |= nic.rdma && nic.up;
    if (nic.rdma) checkPort(nic, nics, report);
    if (!nic.rdma && nic.hardware && nic.wanted && !nic.up &&
        nic.counters.contains("carrier_down_count"))
      report.findings.push_back(makeFinding("nic-no-carrier", culpritOf(nic, report.host),
                                            "it is switched on but has no link"));
  }
  if (anyRdma && !anyActive)
    report.findings.push_back(makeFinding("rdma-down", report.culprit(),
                                          "it has RDMA devices, but no port of them is active", 1));
  report.add("nics.rdma", summaryOf(nics, true));
  report.add("nics.net", summaryOf(nics, false));
}

std::vector<Finding> compareCounters(const std::string& host, const std::vector<Nic>& before,
                                     const std::vector<Nic>& after) {
  std::vector<Finding> findings;
  for (const Nic& now : after) {
    const auto then = std::ranges::find(before, now.name, &Nic::name);
    if (then == before.end()) continue;
    double packets = 0;
    for (const char* name : kPackets) packets += static_cast<double>(risen(*then, now, name));
    for (const Watched& watched : kWatched) {
      const auto rise = static_cast<double>(risen(*then, now, watched.name));
      if (rise <= std::max(watched.number, watched.share * packets)) continue;
      findings.push_back(Finding{
          watched.kind.kind().severity, std::string(watched.kind.kind().name), culpritOf(now, host),
          fmt::format("{} rose by {:.0f} among {:.0f} packets", watched.name, rise, packets),
          std::string(watched.kind.kind().fix), rise / std::max(1.0, packets)});
    }
  }
  return findings;
}

}  // namespace weft::checks
