// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/stream.h"

namespace weft {

// Reaches the root of an id and proves itself to it: connects, again and again until the deadline
// or until it is clear that this can never succeed, and does the rank's half of the handshake.
class Joiner {
 public:
  Joiner(const IdContent& id, const Hello& hello, Deadline deadline)
      : id_(id), hello_(hello), deadline_(deadline) {}

  // Is called before each round of attempts; an error ends them. It may add an address to be tried
  // after the id's own.
  using Prepare = std::function<Status(std::vector<Address>* addresses)>;
  void beforeEachRound(Prepare prepare) { prepare_ = std::move(prepare); }

  Status run(std::size_t maxMessage, std::unique_ptr<Stream>* out, std::string* rootName);

 private:
  enum class Result { Joined, Refused, Foreign, Failed, Poor };
  struct Attempt {
    Result result;
    std::string why;
  };
  Attempt tryOnce(const Address& address, Deadline limit);
  Attempt prove(Stream* stream, Deadline limit);
  Attempt answerChallenge(Stream* stream, const Bytes& hello, const Message& message,
                          Deadline limit);
  Attempt awaitWelcome(Stream* stream, Deadline limit);
  Status hopeless(const std::vector<Attempt>& attempts) const;
  Status outOfTime() const;
  std::string where() const;

  IdContent id_;
  Hello hello_;
  Deadline deadline_;
  Prepare prepare_ = [](std::vector<Address>*) { return Status(); };
  Deadline::Clock::time_point began_ = Deadline::Clock::now();
  std::size_t maxMessage_ = 0;
  std::unique_ptr<Stream> stream_;
  std::string rootName_;
  std::string lastFailures_;  // of all addresses
};

// Waits for the next message on a stream. False: the deadline passed (*error is OK), or the
// connection is gone or speaks nonsense (*error says so).
bool awaitMessage(Stream* stream, Deadline deadline, Message* message, Status* error);
// Sends all that is pending. The same.
bool awaitFlushed(Stream* stream, Deadline deadline, Status* error);

}  // namespace weft
