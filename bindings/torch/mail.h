// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "elements.h"
#include "queue.h"
#include "rendezvous.h"

namespace weft::pytorch {

// Messages with tags. weft's own send and receive are matched in the order of issue, by both sides; torch's by source
// and tag, in any order, beside collectives. So each pair of ranks that talk gets, at its first message, a communicator
// of its own for each direction, with a queue at the sender and a thread at the receiver. A header of 16 bytes with the
// tag goes in front of each message. The receiver's thread takes the bytes into the tensor that a receive has named,
// or, if none has yet, into memory that it keeps until one does.
//   What it costs: two ranks' threads and a communicator for each direction that is used, a copy of each message that
// comes before its receive, and no limit to how many of those wait.
class Mail final : public Executor, public std::enable_shared_from_this<Mail> {
 public:
  explicit Mail(const Identity& who)
      : who_(who), timeout_(who.timeout), ways_(static_cast<std::size_t>(who.size)) {}

  Work send(const at::Tensor& tensor, int to, int tag);
  Work receive(const at::Tensor& tensor, std::optional<int> from, int tag);
  // Of receives from now on.
  void setTimeout(Milliseconds timeout) { timeout_ = timeout; }
  // What was sent gets until then to leave; receives that nobody has answered fail.
  void close(std::chrono::steady_clock::time_point until);

  // ---- Executor of receives; sends are their queue's.
  std::chrono::steady_clock::time_point deadline(const Call&) const override;
  void expire(Call&) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Header {
    std::int64_t tag = 0;
    std::uint64_t bytes = 0;
  };
  struct Receive {
    c10::intrusive_ptr<Call> call;
    Elements into;
    std::optional<int> from;
    std::int64_t tag = 0;
    Clock::time_point deadline;
    bool matches(int source, std::int64_t sent) const {
      return tag == sent && from.value_or(source) == source;
    }
  };
  // Ends it by a message of so many bytes, which `get` writes to where it is told.
  static void fulfil(const Receive& receive, int from, std::uint64_t bytes,
                     const std::function<void(void*)>& get);
  struct Letter {  // came before its receive
    int from = 0;
    std::int64_t tag = 0;
    std::vector<char> bytes;
  };
  struct Way {  // to and from one rank
    std::shared_ptr<Queue> out;
    Communicator outComm;
    std::thread in;
    weftComm_t inComm = nullptr;  // while `in` uses it
    std::string ended;            // why `in` has
  };

  Way& way(int rank) { return ways_[static_cast<std::size_t>(rank)]; }
  weftComm_t outgoing(int to);
  void transmit(int to, const Elements& from, int tag);
  void listen(int from);
  void serve(int from);
  void accept(int from, weftComm_t comm);
  void keep(Letter letter);
  void hold(int from, weftComm_t comm);
  std::optional<Letter> takeLetter(const Receive& wanted);
  std::optional<Receive> takeReceive(int from, std::int64_t tag);
  std::string describeMissing(const Receive& wanted) const;
  void failReceives(const std::string& why, const std::function<bool(const Receive&)>& which);
  void noteEnd(int from, const std::string& why);
  bool allEnded() const;

  void checkOpen() const;

  const Identity who_;
  std::atomic<Milliseconds> timeout_;
  std::vector<Way> ways_;
  mutable std::mutex mutex_;  // of what follows, and of the ways
  std::condition_variable ended_;
  std::list<Receive> receives_;  // in order
  std::list<Letter> letters_;    // in order
  std::atomic<bool> closing_ = false;
};

}  // namespace weft::pytorch
