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
    mapped::MappedPeer peer;
    peer.sameProcess = true;
    peer.window = mapped::findOffer(info.token);
    if (!peer.window)
      return Status::error(Code::InvalidUsage, "local transport: ", nameOf(info),
                           " is not a thread of pid ", ::getpid(),
                           "; fix: WEFT_TRANSPORT=shm or auto");
    WEFT_TRY(checkControlPage(info, peer.window->base()));
    peers->push_back(std::move(peer));
  }
  return {};
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
  const Status found = findPeers(infos, &parts.peers);
  chooseBarriers(infos, window->base());
  WEFT_TRY(agree(setup, found));
  *out = std::make_unique<mapped::MappedTransport>(std::move(parts));
  return {};
}

}  // namespace weft::local
