// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "transports/local/local.h"
#include "transports/mapped/mapped_transport.h"
#include "transports/mapped/offer.h"
#include "transports/setup.h"

namespace weft::local {
namespace {

Status findPeers(const std::vector<PeerInfo>& infos, std::vector<mapped::MappedPeer>* peers) {
  for (const PeerInfo& info : infos) {
    const std::shared_ptr<Mapping> window = mapped::findOffer(info.token);
    if (!window)
      return Status::error(Code::InvalidUsage, "local transport: ", nameOf(info),
                           " is not a thread of pid ", ::getpid(),
                           "; fix: WEFT_TRANSPORT=shm or auto");
    WEFT_TRY(checkControlPage(info, window->base()));
    peers->emplace_back().window = pagesOf(window);
  }
  return {};
}

// Threads need nothing but each other's windows.
Status branch(const mapped::MappedParts&, const TransportSetup& setup,
              std::span<const std::uint32_t>, std::unique_ptr<Transport>* out) {
  return makeLocal(setup, out);
}

}  // namespace

Status makeLocal(const TransportSetup& setup, std::unique_ptr<Transport>* out) {
  PeerInfo info = describe(setup);
  std::shared_ptr<Mapping> window;
  const Status created = makeWindow(setup, &info, &window);
  const mapped::Offer offer(info.token, window);
  std::vector<PeerInfo> infos;
  WEFT_TRY(gather(setup, created, info, &infos));
  WEFT_TRY(checkPeers("local", infos));

  mapped::MappedParts parts{"local", setup.rank, setup.layout, allAllowDirect(infos), {}};
  parts.branch = branch;
  const Status found = findPeers(infos, &parts.peers);
  chooseBarriers(infos, reinterpret_cast<ControlPage*>(window->base()));
  WEFT_TRY(agree(setup, found));
  *out = std::make_unique<mapped::MappedTransport>(std::move(parts));
  return {};
}

}  // namespace weft::local
