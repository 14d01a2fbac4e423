// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/environment.h"

#include <fmt/format.h>
#include <unistd.h>
#include <weft/weft.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/knobs.h"
#include "bootstrap/secret.h"
#include "net/interfaces.h"
#include "tools/checks/kinds.h"
#include "topology/fabric_file.h"

namespace weft::doctor {
namespace {

using checks::HostReport;
using checks::makeFinding;

constexpr const char* kCulprit = "environment";

// Variables of other libraries, and weft's for the same purpose.
struct Twin {
  const char* name;
  const char* ours;
};
constexpr Twin kTwins[] = {
    {"NCCL_DEBUG", "WEFT_DEBUG"},
    {"NCCL_DEBUG_FILE", "WEFT_DEBUG_FILE"},
    {"NCCL_SOCKET_IFNAME", "WEFT_SOCKET_IFNAME"},
    {"GLOO_SOCKET_IFNAME", "WEFT_SOCKET_IFNAME"},
    {"OMPI_MCA_btl_tcp_if_include", "WEFT_SOCKET_IFNAME"},
    {"NCCL_IB_HCA", "WEFT_NET_DEVICES"},
    {"UCX_NET_DEVICES", "WEFT_NET_DEVICES"},
    {"NCCL_NET", "WEFT_TRANSPORT"},
    {"NCCL_SHM_DISABLE", "WEFT_TRANSPORT"},
    {"NCCL_IB_DISABLE", "WEFT_TRANSPORT"},
    {"UCX_TLS", "WEFT_TRANSPORT"},
    {"NCCL_ALGO", "WEFT_ALGO"},
    {"NCCL_BUFFSIZE", "WEFT_SEGMENT_KB"},
    {"NCCL_IB_GID_INDEX", "WEFT_ROCE_GID"},
    {"UCX_IB_GID_INDEX", "WEFT_ROCE_GID"},
    {"NCCL_TOPO_FILE", "WEFT_TOPO_FILE"},
    {"NCCL_COMM_ID", "WEFT_COMM_ID"},
    {"NEURON_RT_ROOT_COMM_ID", "WEFT_COMM_ID"},
};
constexpr const char* kShown[] = {"WEFT_", "FI_",  "NCCL_",  "OMPI_MCA_", "UCX_",
                                  "GLOO_", "IBV_", "RDMAV_", "NEURON_RT_"};

std::string valueIn(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string() : found->second;
}

void refuse(const Status& status, HostReport& report) {
  if (status.ok()) return;
  report.findings.push_back(
      makeFinding("env-invalid", kCulprit, status.message(), 0.9, status.data().fix));
}

Status parse(const KnobInfo& info) {
  std::int64_t number = 0;
  bool flag = false;
  std::string text;
  switch (info.type) {
    case KnobType::Integer:
    case KnobType::ByteSize:
      return readInteger(info.knob, &number);
    case KnobType::Flag:
      return readFlag(info.knob, &flag);
    default:
      return readText(info.knob, &text);
  }
}

std::string textOf(Knob knob) {
  std::string text;
  return readText(knob, &text).ok() ? text : std::string();
}

Status checkAlgorithm() {
  const std::string wanted = textOf(Knob::Algo), all = weftAlgorithms(nullptr);
  std::string names = all;
  std::ranges::replace_if(
      names, [](char c) { return c == ';' || c == '=' || c == ','; }, ' ');
  std::istringstream words(names);
  for (std::string name; words >> name;) {
    if (name == wanted) return {};
  }
  if (wanted.empty() || wanted == "auto") return {};
  return Status::error(Code::InvalidArgument,
                       fmt::format("WEFT_ALGO={} is no algorithm. fix: one of {}", wanted, all));
}

Status checkTopology() {
  topology::Fabric fabric;
  const std::string file = textOf(Knob::TopoFile);
  return file.empty() ? Status() : topology::readFabric(file, &fabric);
}

Status checkMeshFile() {
  const std::string file = textOf(Knob::MeshFile);
  if (file.empty() || ::access(file.c_str(), R_OK) == 0) return {};
  return Status::error(
      Code::InvalidArgument,
      fmt::format("WEFT_MESH_FILE={} cannot be read. fix: correct or unset it", file));
}

// Where rank 0 would listen if it ran here.
Status checkBootstrapRoot(HostReport& report) {
  std::vector<net::Interface> interfaces;
  std::vector<net::Address> addresses;
  WEFT_TRY(net::listInterfaces(&interfaces));
  WEFT_TRY(net::chooseAddresses(interfaces, textOf(Knob::SocketIfname),
                                net::defaultRouteInterface(), &addresses));
  std::string all;
  for (const net::Address& address : addresses) {
    std::string text = address.text();
    text.resize(text.rfind(':'));  // no port yet
    all += fmt::format("{}{}", all.empty() ? "" : ", ", text);
  }
  report.add("launcher.meeting-address", all);
  return {};
}

bool isSecret(std::string_view name) {
  return name == "WEFT_SECRET" || name.find("KEY") != name.npos ||
         name.find("TOKEN") != name.npos || name.find("PASSWORD") != name.npos;
}

void addFacts(const Variables& variables, HostReport& report) {
  for (const auto& [name, value] : variables) {
    const bool shown =
        std::ranges::any_of(kShown, [&](const char* prefix) { return name.starts_with(prefix); });
    if (shown) report.add("env." + name, isSecret(name) ? "(not shown)" : value);
  }
}

void findTwins(const Variables& variables, HostReport& report) {
  for (const Twin& twin : kTwins) {
    if (valueIn(variables, twin.name).empty() || !valueIn(variables, twin.ours).empty()) continue;
    report.findings.push_back(makeFinding(
        "env-other-library", kCulprit,
        fmt::format("{} is set, which weft does not read, and {} is not", twin.name, twin.ours), 0,
        fmt::format("set {} if it is meant for weft, too", twin.ours)));
  }
}

// Does libfabric's own filter ("efa,tcp", "^tcp") leave out this provider?
bool leavesOut(std::string_view filter, std::string_view provider) {
  const bool except = filter.starts_with('^');
  if (except) filter.remove_prefix(1);
  std::istringstream names{std::string(filter)};
  bool named = false;
  for (std::string name; std::getline(names, name, ',');)
    named |= name.substr(0, name.find(';')) == provider;
  return named == except;
}

void findProviderConflict(const Variables& variables, HostReport& report) {
  const std::string filter = valueIn(variables, "FI_PROVIDER");
  const std::string wanted = valueIn(variables, "WEFT_OFI_PROVIDER");
  if (filter.empty()) return;
  std::vector<std::string> providers{wanted.substr(0, wanted.find(';'))};
  if (wanted.empty() || wanted == "auto") providers = {"efa", "tcp"};
  if (!std::ranges::all_of(providers, [&](const auto& p) { return leavesOut(filter, p); })) return;
  report.findings.push_back(
      makeFinding("env-conflict", kCulprit,
                  fmt::format("FI_PROVIDER={} hides the libfabric provider that weft takes ({})",
                              filter, fmt::join(providers, " or ")),
                  0.8, "unset FI_PROVIDER"));
}

void findConflicts(const Variables& variables, HostReport& report) {
  const auto is = [&](const char* name, auto... values) {
    return ((valueIn(variables, name) == values) || ...);
  };
  const auto add = [&](const char* what, const char* fix) {
    report.findings.push_back(makeFinding("env-conflict", kCulprit, what, 0.5, fix));
  };
  findProviderConflict(variables, report);
  if (is("FI_EFA_USE_DEVICE_RDMA", "0") && is("WEFT_OFI_MODE", "rdma"))
    add("FI_EFA_USE_DEVICE_RDMA=0 forbids what WEFT_OFI_MODE=rdma asks for",
        "unset FI_EFA_USE_DEVICE_RDMA");
  if (is("FI_LOG_LEVEL", "debug", "trace"))
    add("FI_LOG_LEVEL makes libfabric log on every call, which is slow", "unset FI_LOG_LEVEL");
  if (!is("WEFT_SECRET", "") && !is("WEFT_SECRET_FILE", ""))
    add("both WEFT_SECRET and WEFT_SECRET_FILE are set; the file is ignored", "unset one of them");
}

}  // namespace

Variables variablesOfProcess() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string line = *entry;
    const std::size_t equals = line.find('=');
    if (equals != line.npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return variables;
}

void checkKnobs(HostReport& report) {
  for (const std::string& line : unknownKnobs())
    report.findings.push_back(makeFinding("env-unknown", kCulprit, line, 0.5));
  for (const KnobInfo& info : knobTable()) {
    if (isSet(info.knob)) refuse(parse(info), report);
  }
  std::string secret;
  for (const Status& status : {checkAlgorithm(), checkTopology(), checkMeshFile(),
                               bootstrap::readSecret(&secret), checkBootstrapRoot(report)})
    refuse(status, report);
}

void checkVariables(const Variables& variables, HostReport& report) {
  addFacts(variables, report);
  findTwins(variables, report);
  findConflicts(variables, report);
}

}  // namespace weft::doctor
