// SPDX-License-Identifier: Apache-2.0
#include "wires.h"

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <sstream>

#include "shuffled_wire.h"
#include "transports/ofi/library.h"
#include "transports/ofi/ofi.h"

namespace weft::wire {
namespace {

WireCase overOfi(const std::string& name, const std::string& mode, bool processes) {
  return {{.name = name, .processes = processes, .wire = ofi::makeOfiWire}, mode};
}

std::vector<WireCase> allWires() {
  const auto shuffled = [](const WireSetup& setup, std::unique_ptr<Wire>* out) {
    return transport::makeShuffledWire(setup, {.seed = 7, .rails = 2, .maxWrite = 30000}, out);
  };
  return {{{.name = "shuffled", .wire = shuffled}, ""},
          overOfi("tcp_rdma", "rdma", true),
          overOfi("tcp_msg", "msg", true),
          overOfi("tcp_rdma_threads", "rdma", false),
          overOfi("tcp_msg_threads", "msg", false)};
}

bool isOverOfi(const WireCase& wire) {
  return wire.fabric.name != "shuffled" && wire.fabric.name != "verbs";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const WireCase& wire) {
  return out << wire.fabric.name;
}

std::vector<WireCase> wiresUnderTest() {
  const char* asked = std::getenv("WIRES_UNDER_TEST");
  if (asked == nullptr) return allWires();
  std::vector<WireCase> wires;
  std::istringstream names(asked);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "verbs") wires.push_back({transport::verbsFabric(), ""});
    if (name == "ofi") wires.push_back(overOfi("ofi", "", true));
    for (const WireCase& wire : allWires())
      if (wire.fabric.name == name) wires.push_back(wire);
  }
  return wires;
}

std::vector<WireCase> forkedWires() {
  std::vector<WireCase> wires = wiresUnderTest();
  std::erase_if(wires, [](const WireCase& wire) { return !wire.fabric.processes; });
  return wires;
}

std::string unavailable(const WireCase& wire) {
  if (!isOverOfi(wire)) return {};
  const ofi::Library* library = nullptr;
  return ofi::openLibrary(&library).text();
}

void setEnvironment(const WireCase& wire) {
  if (wire.mode.empty()) return;
  ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
  ::setenv("WEFT_OFI_MODE", wire.mode.c_str(), 1);
}

}  // namespace weft::wire
