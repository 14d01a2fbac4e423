// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "transports/transport.h"

namespace weft::faulty {

using namespace transport;

// How badly a faulty transport behaves. Everything it does is legal under transport.h; what it
// finds are callers that rely on more. Written as "seed=7,hold=0.5,cut=1000:2"; a key left out
// means 0, except depth and delay. Rates are probabilities for each put.
struct Faults {
  std::uint64_t seed = 0;
  double hold = 0;           // put is kept back, then issued in random order by poll()
  double again = 0;          // put is refused for now
  double late = 0;           // PutDone comes some polls after the put has been issued
  std::uint32_t depth = 64;  // puts in flight; Again beyond
  std::uint32_t delay = 8;   // most polls that a held put or a late event waits
  bool scribble = false;     // garbage in the target before the real bytes, where it is mapped
  bool check = false;        // a source changed before its PutDone makes the put fail
  // Faults of links, as "cut=N:peer", of each link to the peer, or "cut=N:from-peer", of one.
  struct Link {
    std::uint64_t number = 0;
    std::uint32_t peer = 0;
    std::optional<std::uint32_t> from;
  };
  std::vector<Link> cuts;  // breaks at the N-th put
  std::vector<Link> lags;  // each put arrives N microseconds late
  std::vector<Link>
      corrupts;  // a bit of the N-th put, or get, of 64 bytes and more is flipped: not legal
  std::vector<Link> raises;  // "raise=N:rank-SIGNAL": to oneself, at the N-th put to anybody
};
Status parseFaults(const std::string& spec, Faults* faults);

// Draws all its decisions from one generator, seeded with `seed` and the rank, so that the same
// calls meet the same faults.
class FaultyTransport final : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, const Faults& faults);

  const char* name() const override { return name_.c_str(); }
  Caps caps() const override;
  const WindowLayout& layout() const override { return inner_->layout(); }
  WindowView own() const override { return inner_->own(); }
  std::shared_ptr<std::byte> window() const override { return inner_->window(); }
  ControlPage* control(std::uint32_t peer) const override { return inner_->control(peer); }
  bool isMirrored(std::uint32_t peer) const override { return inner_->isMirrored(peer); }
  std::string describe(std::uint32_t peer) const override { return inner_->describe(peer); }
  int deathFd(std::uint32_t peer) const override { return inner_->deathFd(peer); }
  int statFd(std::uint32_t peer) const override { return inner_->statFd(peer); }

  // Loads and stores cannot fail; the signals that order them are puts, and late like all others.
  std::uint64_t share(const void* memory, std::size_t bytes) const override {
    return inner_->share(memory, bytes);
  }
  std::byte* reach(std::uint32_t peer, std::uint64_t reference) const override {
    return inner_->reach(peer, reference);
  }
  const std::byte* mapped(std::uint32_t peer) const override { return inner_->mapped(peer); }

  bool getFrom(std::uint32_t peer, std::uint64_t from, void* to, std::size_t bytes) override;
  bool putTo(std::uint32_t peer, std::uint64_t to, const void* from, std::size_t bytes) override;
  bool hasDirect(std::uint32_t peer) const override { return inner_->hasDirect(peer); }
  Status commit(std::uint32_t peer, std::size_t from, std::size_t bytes) override {
    return inner_->commit(peer, from, bytes);
  }

  void acquireProgress() override { inner_->acquireProgress(); }
  void releaseProgress() override { inner_->releaseProgress(); }
  PutResult put(const Put&) override;
  bool tell(std::uint32_t peer, std::uint64_t completed) override {
    return inner_->tell(peer, completed);
  }
  int poll(Event* out, int max) override;
  std::size_t outstanding() const override;
  bool isPending(std::uint32_t peer) const override {
    return inner_->isPending(peer) ||
           std::ranges::count(held_, peer, [](const Held& held) { return held.put.peer; }) != 0;
  }
  void wake(std::uint32_t peer) override { inner_->wake(peer); }
  void sever(std::uint32_t peer) override { breakLink(peer, "severed"); }
  bool isDown(std::uint32_t peer) const override {
    return peers_[peer].broken || inner_->isDown(peer);
  }
  const Status& lastError() const override { return lastError_; }

 private:
  struct Peer {
    std::uint64_t puts = 0;
    std::uint64_t largePuts = 0, largeGets = 0;  // those of 64 bytes and more
    bool broken = false;
  };
  struct Held {
    Put put;
    std::uint32_t polls = 0;          // until it may be issued
    std::uint64_t sum = 0;            // of the source, if checked
    Deadline::Clock::time_point due;  // not before
  };
  struct Late {
    Event event;
    std::uint32_t polls = 0;  // until it may be told
  };

  bool chance(double rate);
  std::uint32_t someTime();
  bool full() const { return held_.size() + late_.size() >= faults_.depth; }
  void raiseNow();
  bool cutsNow(const Put&);
  static const Faults::Link* find(const std::vector<Faults::Link>& links, std::uint32_t from,
                                  std::uint32_t to);
  bool isSpoiled(std::uint32_t from, std::uint32_t to, std::size_t bytes,
                 std::uint64_t* large) const;
  void flipOneBit(void* memory, std::size_t bytes);
  bool corrupts(Put* put);
  Status brokenLink(std::uint32_t peer, const std::string& how) const;
  PutResult pass(const Put&);
  void hold(const Put&, std::uint64_t microseconds = 0);
  void scribble(const Put&);
  bool issue(const Held&);
  void issueRipe();
  void pollInner();
  int tell(Event* out, int max);
  void breakLink(std::uint32_t peer, const std::string& why);
  bool answers(std::uint32_t peer, bool done);
  void fail(const Status& why);

  std::unique_ptr<Transport> inner_;
  Faults faults_;
  std::string name_;
  std::mutex copying_;  // by several threads
  Status lastError_;
  std::mt19937_64 random_;
  std::uint32_t self_;
  std::uint64_t puts_ = 0;
  std::vector<Peer> peers_;
  std::vector<std::vector<std::byte>> corrupted_;
  std::vector<Held> held_;
  std::vector<Late> late_;
};

// Seeded faults over any transport, as `spec` says.
Status makeFaulty(std::unique_ptr<Transport> inner, const std::string& spec,
                  std::unique_ptr<Transport>* out);

}  // namespace weft::faulty
