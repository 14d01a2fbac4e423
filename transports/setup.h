// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "transports/gather.h"
#include "transports/mapping.h"
#include "transports/transport.h"

// What all set-ups share: who the peers are, and memory for the window.
namespace weft::transport {

using Token = std::array<std::byte, kTokenBytes>;

// What each rank tells all others first. Plain bytes: whoever does not have the same layout of them
// is not on this host or runs another weft, and `magic`, `version` and the length tell.
struct PeerInfo {
  std::uint32_t magic = kWindowMagic;
  std::uint32_t version = kWindowVersion;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t barriers = 0;  // hasHeavyFences()
  std::uint32_t allowDirect = 0;
  std::uint64_t netNamespace = 0;
  WindowLayout layout;
  Token process = {};            // names its process among those of its host (shm), and its heap
  std::uint64_t heapBytes = 0;   // 0 if it has none
  std::uint64_t probe = 0;       // the address of its shm::Probe
  std::uint64_t namespaces = 0;  // equal where pids are, and rights over other processes
  char bootId[40] = {};
  char host[64] = {};
  Token token = {};   // public name of the window
  Token secret = {};  // whoever knows it learned it through the exchange
};

// All but token and secret, and what only shm says.
PeerInfo describe(const TransportSetup&);
Status randomToken(Token*);

// Same weft, world, layout and, if asked for, host? The result is the same on all ranks.
enum class HostsOf { One, Any };
Status checkPeers(const char* transport, const std::vector<PeerInfo>& infos,
                  HostsOf hosts = HostsOf::One);

PeerName nameOf(const PeerInfo&);

// Private memory of `setup.rank`; `what` it is for goes into the error.
Status mapPrivate(const TransportSetup& setup, const char* what, std::size_t bytes,
                  std::shared_ptr<Mapping>*);
// This rank's window in private memory, and its token.
Status makeWindow(const TransportSetup&, PeerInfo*, std::shared_ptr<Mapping>*);
// Writes the header of one's own control page.
void initControlPage(const PeerInfo&, void* at);
// Is this mapping the window of that rank?
Status checkControlPage(const PeerInfo&, const std::byte* base);
// Do all permit copies by address (WEFT_CMA)?
bool allAllowDirect(const std::vector<PeerInfo>& infos);
// Frees the peers from fencing if all of them can be ordered by membarrier.
void chooseBarriers(const std::vector<PeerInfo>& infos, ControlPage* own);

// Differs between hosts and between boots of one host. Empty if /proc is not there.
std::string bootId();
// 0 if /proc is not there.
std::uint64_t netNamespace();
// How much memory this process may lock, for errors.
std::string lockableMemory();

// The rest of `to`, at least one byte, must be zero.
template <std::size_t N>
void copyText(char (&to)[N], const std::string& from) {
  std::copy_n(from.data(), std::min(from.size(), N - 1), to);
}

}  // namespace weft::transport
