// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/approach.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/log.h"
#include "bootstrap/agreed_root.h"
#include "bootstrap/host_hub.h"
#include "net/local_socket.h"

namespace weft::bootstrap {
namespace {

// The root was there when the hub was.
constexpr std::int64_t kAgainMs = 5000;
constexpr std::chrono::milliseconds kPause{2};

}  // namespace

Approach::Approach(const IdContent& id, const Hello& hello, PeerName self, Deadline deadline,
                   const JoinOptions& options)
    : id_(id),
      hello_(hello),
      self_(std::move(self)),
      deadline_(deadline),
      options_(options),
      maxMessage_(std::max(maxRosterBytes(static_cast<std::size_t>(hello.size)),
                           maxPartsBytes(static_cast<std::size_t>(hello.size)))) {}

Status Approach::find(Line* line) {
  if (wantsHub()) WEFT_TRY(throughHub(line));
  return *line ? Status() : direct(joiner(deadline_), hello_.rank, maxMessage_, line);
}

Status Approach::findAgain(Line* line) const {
  return direct(joiner(Deadline::in(kAgainMs).orSooner(deadline_)), hello_.rank, maxMessage_, line);
}

// Not whoever is to start the root: a hub would wait for it.
bool Approach::wantsHub() const {
  return haveHubs(hello_.size, options_.hubFrom) &&
         (id_.origin != IdContent::Origin::Address || hello_.rank != 0);
}

Joiner Approach::joiner(Deadline deadline) const {
  Joiner joiner(id_, hello_, deadline);
  if (id_.origin == IdContent::Origin::Address && hello_.rank == 0) {
    joiner.beforeEachRound(
        [agreed = AgreedRoot(id_, options_.root)](auto* addresses, auto* taken) mutable {
          const Status started = agreed.start(addresses);
          *taken = agreed.taken();
          return started;
        });
  }
  return joiner;
}

Status Approach::direct(Joiner joiner, int rank, std::size_t maxMessage, Line* line) {
  std::unique_ptr<net::Stream> stream;
  std::string rootName;
  WEFT_TRY(joiner.run(maxMessage, &stream, &rootName));
  *line = Line::direct(std::move(stream), rank, std::move(rootName));
  return {};
}

// No line and no error: there is no hub to be had.
Status Approach::throughHub(Line* line) {
  const std::string name = hubName(id_.secret, hello_, options_.host);
  const Deadline patience =
      Deadline::in(deadline_.remaining() / 2).orSooner(Deadline::in(options_.hubPatienceMs));
  Joiner toHub = joiner(deadline_);
  for (bool made = false; !patience.expired(); std::this_thread::sleep_for(kPause)) {
    net::Socket socket;
    const int taken = made ? EADDRINUSE : net::listenAtName(name, &socket);
    if (taken == 0) WEFT_TRY(makeHub(std::move(socket), &made));
    if (taken != EADDRINUSE && !made) return {};
    const int missed = net::connectToName(name, &socket);
    if (missed == ECONNREFUSED) made = false;  // it has ended since
    if (missed != 0) continue;
    const Joiner::Result result = toHub.tryHub(std::move(socket), maxMessage_, patience, &silent_);
    if (result == Joiner::Result::Joined)
      *line = Line::throughHub(std::move(silent_), hello_.rank,
                               std::chrono::milliseconds(options_.hubSilenceMs));
    if (result != Joiner::Result::Failed) return {};
    made = false;
  }
  return {};
}

// The error is that of a rank that does not find the root.
Status Approach::makeHub(net::Socket listener, bool* made) {
  HubSpec spec{.leader = self_,
               .listener = std::move(listener),
               .secret = id_.secret,
               .root = nullptr,
               .rootName = {}};
  WEFT_TRY(joiner(deadline_).run(maxMessage_, &spec.root, &spec.rootName));
  const InfoMessage info{self_, kHubConfig, deadline_.pollTimeoutMs(), false};
  spec.root->tell(net::MessageType::Info, encode(info), deadline_);
  const Status started = startHub(std::move(spec));
  *made = started.ok();
  if (!*made) logInfo("bootstrap: rank ", hello_.rank, " goes without a hub: ", started.text());
  return {};
}

}  // namespace weft::bootstrap
