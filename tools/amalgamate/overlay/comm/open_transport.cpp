// SPDX-License-Identifier: Apache-2.0
// The transports of one host: memory that processes or threads share.
#include "comm/open_transport.h"

#include <algorithm>
#include <string>

#include "transports/local/local.h"
#include "transports/shm/shm.h"

namespace weft::comm {
namespace {

Status otherHost(const std::vector<PeerName>& names, const std::vector<std::uint32_t>& hosts) {
  const auto other =
      std::ranges::find_if(hosts, [](std::uint32_t host) { return host != 0; }) - hosts.begin();
  return Status::error(
      Code::InvalidUsage, "weft_amalgamated.cpp reaches ranks of one host: not rank ", other,
      " (host ", names[static_cast<std::size_t>(other)].host, ") from rank 0 (host ", names[0].host,
      "): they share no memory or are in different network namespaces; fix: link libweft");
}

bool isOneProcess(const std::vector<PeerName>& names) {
  return std::ranges::all_of(names, [&](const PeerName& name) { return name.pid == names[0].pid; });
}

}  // namespace

Status openTransport(const transport::TransportSetup& setup, TransportSelection* selection,
                     std::unique_ptr<transport::Transport>* out) {
  const std::string& wanted = selection->wanted;
  if (wanted != "auto" && wanted != "shm" && wanted != "local")
    return Status::error(Code::InvalidArgument, "weft_amalgamated.cpp has no transport '", wanted,
                         "'; fix: auto, local or shm, or link libweft");
  const std::vector<std::uint32_t> hosts = hostsOf(setup.names);
  if (!isOneHost(hosts)) return otherHost(setup.names, hosts);
  const bool threads = isOneProcess(setup.names);
  if (wanted == "local" && !threads)
    return Status::error(
        Code::InvalidUsage,
        "transport 'local' is for ranks that are threads of one process; fix: use shm or auto");
  return threads && wanted != "shm" ? local::makeLocal(setup, out) : shm::makeShm(setup, out);
}

// Memory has no cables.
bool goAround(const std::vector<PeerName>&, const std::vector<RankPair>&, TransportSelection*) {
  return false;
}
bool isMesh(const std::vector<PeerName>&, const TransportSelection&) { return false; }

std::string carrierOf(const std::vector<PeerName>&, const TransportSelection&, const RankPair&) {
  return "memory";
}

}  // namespace weft::comm
