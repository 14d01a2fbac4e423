// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "base/threads.h"
#include "comm/communicator.h"
#include "engine/work_stream.h"

// From a checked call to its execution: now, in a stream, or at the end of a group.
namespace weft::api {

// How many groups are open on this thread. In the first TLS block, so that reading it costs no
// call.
extern constinit thread_local int groupDepth [[gnu::tls_model("initial-exec")]];

// What makes and issues a call on `comm`: an exception on one rank alone would leave others waiting,
// and calls behind it. It is the end of the communicator.
template <class Body>
Status failingAll(comm::Communicator& comm, Body&& body) {
  try {
    return body();
  } catch (...) {
    return comm.fail(statusOfException());
  }
}

// To a thread that may not issue calls now: another one does, or the communicator is destroyed.
Status refusal(comm::Communicator& comm);

// Must calls of this thread wait for the end of a group?
inline bool inGroup() { return groupDepth > 0; }
Status groupStart();
// Runs what was collected since the outermost start; the first error.
Status groupEnd();

// The turn of a call that runs on the thread that issues it.
class OwnTurn {
 public:
  explicit OwnTurn(engine::Turns& turns) : turns_(turns), ticket_(turns.take()) {}
  ~OwnTurn() {
    turns_.doneWhileIssuing(ticket_);
    turns_.endIssue();
  }
  OwnTurn(const OwnTurn&) = delete;
  OwnTurn& operator=(const OwnTurn&) = delete;

  bool hasCome() const { return turns_.isTurn(ticket_); }
  std::uint64_t ticket() const { return ticket_; }

 private:
  engine::Turns& turns_;
  const std::uint64_t ticket_;
};

// Waits for it; *timeoutMs becomes what is left.
Status awaitOwnTurn(comm::Communicator& comm, const OwnTurn& turn, int* timeoutMs);

// Runs the call on this thread, in turn. The hot path: no allocation.
[[gnu::always_inline]] inline Status runNow(comm::Communicator& comm, const plan::Call& call,
                                            const void* in, void* out, const void* scalar,
                                            int timeoutMs, const char* label) {
  if (!comm.turns().beginIssue()) return refusal(comm);
  const OwnTurn turn(comm.turns());
  if (!turn.hasCome()) WEFT_TRY(awaitOwnTurn(comm, turn, &timeoutMs));
  return comm.run(call, in, out, scalar, timeoutMs, label);
}

// Runs `call` on this thread when all calls that were issued before it are done.
Status runInTurn(comm::Communicator& comm, const std::function<Status()>& call);

// In the group if there is one, else on the stream, else (no stream) now.
Status submit(std::shared_ptr<comm::Communicator> comm, std::shared_ptr<engine::WorkStream> stream,
              comm::Operation operation);

// Sends and receives on this thread, in turn, as runNow.
Status runPairsNow(comm::Communicator& comm, std::span<const engine::PairOp> pairs, int timeoutMs,
                   const char* label);
// Of a group: is this one, without a stream, among sends and receives of one communicator that are all which
// the group has collected so far? Then it is collected, too.
bool joinBatch(const std::shared_ptr<comm::Communicator>& comm, const engine::PairOp& pair,
               int timeoutMs, const char* label);

// Creations meet in a group: each would wait for the others. Outside of one, `create` runs now.
// The ranks of `parent`, if there is one, hear of it where there is no memory to begin.
Status submitCreation(std::function<Status()> create,
                      std::shared_ptr<comm::Communicator> parent = nullptr);

}  // namespace weft::api
