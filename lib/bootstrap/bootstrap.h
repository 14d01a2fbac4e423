// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/line.h"
#include "bootstrap/messages.h"
#include "bootstrap/root_service.h"
#include "bootstrap/this_process.h"
#include "bootstrap/unique_id.h"

namespace weft::bootstrap {

class Approach;

// From so many ranks on, those of a host come to the root over one connection (host_hub.h). For fewer
// it is not worth a thread on each host.
inline constexpr int kHubFrom = 64;
inline bool haveHubs(int ranks, int from = kHubFrom) { return ranks >= from; }

// What join() says about this library and how its root behaves. Tests play other versions and
// shorten times with it.
struct JoinOptions {
  std::string version = libraryVersion();
  WireRange wire;
  RootOptions root;
  int hubFrom = kHubFrom;  // ranks
  // Who has taken the name of the hub but does not answer has not found the root yet, or is stopped,
  // and then all wait for it: half of the time, or this, leaves enough to be seen at the root.
  std::int64_t hubPatienceMs = 10000;
  // Silence of a hub, before it is asked whether it lives, and after; then the root is asked.
  std::int64_t hubSilenceMs = 5000;
  std::string host;  // tests play several on one
};

// How the ranks of one communicator find each other: all connect to one root, a thread of the
// process that made the unique id (or of rank 0, for an id that is an agreed address), prove to
// each other that they hold the id's secret, and say who they are. The root stays for further
// rounds until every rank has closed.
//
// A star: right for creating a communicator, not for moving data. The root has a connection to each
// rank or, from kHubFrom ranks on, to each host, and in each round sends n parts over each, as what
// differs between them (table.h).
//
// One object belongs to one rank, one thread at a time. Ranks may be threads of one process. After
// an error every further call returns the same error.
class Bootstrap {
 public:
  // Joins as `rank` of `ranks`, and waits for all others until the deadline. configText is
  // "key=value;..." of settings that must agree, at most kMaxConfigBytes.
  //
  // Either every rank succeeds, or those that are there get an error with the same text:
  //   Mismatch     world sizes, versions, configurations differ; a rank joined twice or is too high
  //   Timeout      some did not come by the earliest deadline of all ranks: names them
  //   RemoteError  a rank, or the process of the root, died: names it
  // On this rank alone: InvalidArgument for bad arguments, or an id that is damaged, stale (without
  // its root) or from another job.
  static Status join(const UniqueId& id, int ranks, int rank, std::string configText,
                     Deadline deadline, std::unique_ptr<Bootstrap>* out,
                     const JoinOptions& options = {});
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  // All ranks.
  const std::vector<PeerName>& ranks() const { return ranks_; }

  // Every rank's part, by rank; also a barrier. At most kMaxPartBytes each. Same errors as join().
  Status allGather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all,
                   Deadline deadline);

  // Between rounds, at once: why there will be no other one, as far as is known.
  Status heard();

  // Says good-bye. Allowed as soon as this rank needs no further round; the others may go on
  // waiting for rounds that have begun, so all ranks must make the same number. Idempotent.
  void close();
  // Instead of close(): all other ranks get `why`, with this rank's name in front, from what they
  // wait for or call next.
  void abandon(const Status& why);

 private:
  Bootstrap() = default;

  Status meet(Approach& approach, InfoMessage info, Deadline deadline, net::Bytes* roster);
  // Sends one message and waits for the answer, a table or an error.
  Status exchange(net::MessageType type, net::Bytes body, net::MessageType answerType,
                  net::Bytes* answer, Deadline deadline);

  Line line_;
  std::vector<PeerName> ranks_;
  std::uint32_t round_ = 1;
  Status failure_;
};

enum class IdScope {
  Network,      // any rank that can reach this host
  ThisProcess,  // listens on loopback only
};

// Makes an id and starts its root in this process, which must live until all ranks have joined. It
// listens on one interface only: WEFT_SOCKET_IFNAME's, else the one with the default route, else
// loopback (interfaces.h). With WEFT_COMM_ID it only makes uniqueIdFromAddress of it, and needs the
// shared secret unless WEFT_AUTH=off.
Status createUniqueId(UniqueId* id, IdScope scope = IdScope::Network,
                      const RootOptions& options = {});

// The id that everybody computes who knows where rank 0 will listen ("host:port") and the secret.
// Names are resolved now, with patience until the deadline.
Status uniqueIdFromAddress(std::string_view hostPort, std::string_view secret, Deadline deadline,
                           UniqueId* id);

}  // namespace weft::bootstrap
