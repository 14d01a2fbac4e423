// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "net/stream.h"

namespace weft::bootstrap {

// Reaches the root of an id and proves itself to it: connects, again and again until the deadline
// or until it is clear that this can never succeed, and does the rank's half of the handshake.
class Joiner {
 public:
  Joiner(const IdContent& id, const Hello& hello, Deadline deadline)
      : id_(id), hello_(hello), deadline_(deadline) {}

  // Is called before each round of attempts; an error ends them. It may add an address to be tried
  // after the id's own, and says which of them this rank should serve but somebody else does.
  using Prepare = std::function<Status(std::vector<net::Address>* addresses, std::string* taken)>;
  void beforeEachRound(Prepare prepare) { prepare_ = std::move(prepare); }

  Status run(std::size_t maxMessage, std::unique_ptr<net::Stream>* out, std::string* rootName);

  enum class Result { Joined, Refused, Foreign, Failed, Poor };
  // The same with a hub in place of the root, connected already, and with as much patience. Who fails
  // has it still: it may have seen the proof, and would take its end for the rank's.
  Result tryHub(net::Socket hub, std::size_t maxMessage, Deadline patience,
                std::unique_ptr<net::Stream>* out);

 private:
  struct Attempt {
    Result result;
    std::string why;
  };
  Attempt tryOnce(const net::Address& address, Deadline limit);
  Attempt prove(net::Stream* stream, Deadline limit, Deadline welcome);
  Attempt answerChallenge(net::Stream* stream, const net::Bytes& hello, const net::Message& message,
                          Deadline limit);
  static Attempt awaitWelcome(net::Stream* stream, Deadline limit);
  Status hopeless(const std::vector<Attempt>& attempts) const;
  Status outOfTime() const;
  std::string where() const;
  PeerName self() const;

  IdContent id_;
  Hello hello_;
  Deadline deadline_;
  Prepare prepare_ = [](std::vector<net::Address>*, std::string*) { return Status(); };
  std::string taken_;
  Deadline::Clock::time_point began_ = Deadline::Clock::now();
  std::size_t maxMessage_ = 0;
  std::unique_ptr<net::Stream> stream_;
  std::string rootName_;
  std::string lastFailures_;  // of all addresses
};

}  // namespace weft::bootstrap
