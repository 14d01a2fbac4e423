// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ctime>
#include <utility>

#include "base/invalid.h"
#include "base/knobs.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/job.h"
#include "bootstrap/listen.h"
#include "bootstrap/secret.h"
#include "net/fd_limit.h"

namespace weft::bootstrap {
namespace {

// The resolver opens /etc/hosts and a socket to a name server; without them it finds no name.
constexpr std::uint64_t kResolveFds = 4;

Status idFromCommIdKnob(UniqueId* id) {
  std::string address, secret, policy;
  std::int64_t patienceMs = 0;
  WEFT_TRY(readText(Knob::CommId, &address));
  WEFT_TRY(readText(Knob::Auth, &policy));
  WEFT_TRY(readInteger(Knob::InitTimeoutMs, &patienceMs));
  WEFT_TRY(readSecret(&secret));
  if (secret.empty() && policy != "off")
    return invalidVariable(
        "WEFT_COMM_ID",
        "WEFT_COMM_ID needs a shared secret. fix: set WEFT_SECRET or WEFT_SECRET_FILE on all "
        "ranks, or WEFT_AUTH=off to let anybody join");
  return ofVariable("WEFT_COMM_ID",
                    uniqueIdFromAddress(address, secret, Deadline::in(patienceMs), id));
}

}  // namespace

Status createUniqueId(UniqueId* id, IdScope scope, const RootOptions& options) {
  if (scope == IdScope::Network && isSet(Knob::CommId)) return idFromCommIdKnob(id);
  IdContent content;
  std::vector<net::Socket> listeners;
  WEFT_TRY(listenForRanks(scope, &listeners, &content.addresses));
  WEFT_TRY(net::randomBytes(content.secret));
  content.createdUnixSeconds = std::time(nullptr);
  content.job = currentJob();
  WEFT_TRY(startRoot(std::move(listeners), content.secret, options));
  *id = encodeId(content);
  return {};
}

Status uniqueIdFromAddress(std::string_view hostPort, std::string_view secret, Deadline deadline,
                           UniqueId* id) {
  net::HostPort target;
  IdContent content;
  WEFT_TRY(net::parseHostPort("WEFT_ROOT, WEFT_COMM_ID or the launcher's address of rank 0",
                              hostPort, &target));
  WEFT_TRY(net::reserveFds(kResolveFds));
  WEFT_TRY(net::resolve(target, deadline, &content.addresses));
  content.origin = IdContent::Origin::Address;
  if (content.addresses.size() > kMaxIdAddresses) content.addresses.resize(kMaxIdAddresses);
  content.secret = net::sha256({net::bytesOf("weft shared secret "), net::bytesOf(secret)});
  *id = encodeId(content);
  return {};
}

}  // namespace weft::bootstrap
