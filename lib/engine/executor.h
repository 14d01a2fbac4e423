// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/cache_aligned.h"
#include "base/status.h"
#include "engine/footprint.h"
#include "engine/op_trace.h"
#include "engine/peer_buffers.h"
#include "engine/progress.h"
#include "engine/team_compute.h"
#include "plan/epilogue.h"
#include "plan/plan.h"
#include "transports/transport.h"
#include "watch/watch.h"

namespace weft::engine {

// One run of a plan.
struct Launch {
  const plan::Plan* plan = nullptr;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  const void* scalar = nullptr;        // pre-multiply, one element of the plan's type
  plan::Epilogue* epilogue = nullptr;  // of a plan that has one
};

// Runs plans over one transport, on the caller's thread: no allocation, no lock.
//
// A plan's segments are invocations with consecutive epochs. Up to kMaxLanes of them are in flight
// as lanes: a lane runs until its next op must wait, then another lane runs. Before an invocation e
// puts into a peer, that peer has completed e - kMaxLanes, whose slots it reuses (of a plan in a
// ring: e - plan.depth); peers learn this from the credit in every arrival, from the peer's control
// page or, where that is a mirror, because the peer tells those who put into it.
//
// One thread at a time uses an Executor.
class Executor {
 public:
  // Both outlive the executor. The watch is asked about once a millisecond while nothing moves.
  // `lanes`: invocations in flight, at most kMaxLanes. `crew`: shares the bytes of large ops.
  Executor(transport::Transport& transport, watch::Watch& watch, std::uint32_t rank,
           const WaitTuning& tuning, std::uint32_t lanes = transport::kMaxLanes,
           const Crew& crew = {});

  Status run(const Launch& launch);
  // May the next run of this plan, which was the last one to run, be a runAgain()?
  bool mayRunAgain(const plan::Plan& plan) const;
  // The same, but it prepares nothing: what it costs is mostly what such a short call costs. Lines that
  // another core holds arrive while a core goes on, for as long as its buffer has room for the stores
  // after them: some 60 of them, and no locked instruction.
  Status runAgain(const plan::Plan& plan, const std::byte* in, std::byte* out);
  // The last run of a plan that opens shared buffers found one that is not, and ran the other plan.
  // All ranks know.
  bool refused() const { return ranOther_; }
  std::uint64_t epoch() const { return lastEpoch_; }
  // The ops of later runs are added to it; null: of none. It outlives them.
  void record(OpTrace* trace) { trace_ = trace; }
  // Bytes of payload that this rank has put into, stored to or read from its peers.
  std::uint64_t movedBytes() const { return moved_.load(std::memory_order_relaxed); }
  std::size_t bytes() const {
    return compute_.bytes() + footprint_.bytes();
  }  // beyond its own size

 private:
  enum class Step : std::uint8_t { Blocked, Moved, Broken };
  friend class Progress;
  // Where an invocation finds its bytes.
  struct Frame {
    std::uint64_t epoch = 0;
    std::uint64_t shift = 0;  // segment * segmentBytes
    std::uint32_t index = 0;
    std::byte* base[5] = {};  // by Base, shifted; the peers' are in peers_
  };
  // One in flight.
  struct Lane : Frame {
    std::uint32_t next = 0;     // op to run
    std::uint32_t pending = 0;  // puts whose source may still be read
    bool active = false;
    std::uint64_t since = 0;  // where ops are traced: when this lane came to op `tried`, in ns
    std::uint32_t tried = 0;
  };

  [[gnu::always_inline]] Status runPlan(const plan::Plan& plan, const Launch& launch);
  [[gnu::always_inline]] Status runOne(const Launch& launch);
  Status runLanes(const Launch& launch);
  [[gnu::always_inline]] Status finish(Lane& lane);
  [[gnu::noinline]] Status goOn(const Frame& frame, std::uint32_t op);
  static constexpr std::size_t kFewOps = 32;  // of a plan of short messages
  [[gnu::always_inline]] void expectPut(const plan::BoundOp& op, std::uint64_t epoch);
  [[gnu::always_inline]] Frame frameOf(std::uint64_t epoch, const std::byte* in, std::byte* out,
                                       std::uint64_t segment) const;
  Status poll();
  Lane& laneOf(std::uint64_t epoch) { return lanes_[epoch % transport::kMaxLanes]; }
  Step openBuffers(Lane& lane);
  bool mayOpen(std::uint64_t epoch, std::uint64_t first);
  Lane& open(std::uint64_t epoch, const Launch& launch, std::uint64_t segment);
  Status drain();
  Step advance(Lane& lane);
  void comeTo(Lane& lane) const;
  void trace(Lane& lane, const plan::BoundOp& op) const;
  [[gnu::always_inline]] Step runOp(const Frame& frame, const plan::BoundOp& op,
                                    std::uint32_t* pending);
  [[gnu::always_inline]] Step put(const Frame& frame, const plan::BoundOp& op,
                                  std::uint32_t* pending);
  bool copyAhead(transport::Put* put);
  std::optional<bool> copyByTeam(transport::Put* put, std::uint64_t bytes);
  void advance(transport::Put* put, std::uint64_t bytes);
  [[gnu::always_inline]] transport::Put messageOf(const Frame& frame,
                                                  const plan::BoundOp& op) const;
  bool mayTouchPeers();
  void noteSent(const plan::BoundOp& op, const transport::Put& put);
  [[gnu::always_inline]] Step wait(const Frame& frame, const plan::BoundOp& op);
  static bool isPlainCopy(const plan::BoundOp& op);
  const std::byte* source(const Frame& frame, const plan::Place& place) const;
  std::byte* target(const Frame& frame, const plan::Place& place) const;
  [[gnu::always_inline]] Step compute(const Frame& frame, const plan::BoundOp& op);
  Step computeByPieces(const Frame& frame, const plan::BoundOp& op, std::uint64_t bytes);
  // May epoch `epoch` write there, by what is known already?
  bool hasCredit(std::uint32_t peer, std::uint64_t epoch) const {
    return completedBy_[peer] + plan_->depth >= epoch;
  }
  bool mayPut(std::uint32_t peer, std::uint64_t epoch);
  bool mayPublish(std::uint64_t epoch);
  // Whom the op waits for, if it does.
  std::uint32_t peerOf(const Lane& lane, const plan::BoundOp& op) const;
  transport::ArrivalSlot* arrivalsOf(std::uint64_t epoch) const;
  std::uint64_t landingAt(std::uint64_t epoch) const;
  std::uint64_t offsetOf(const transport::ArrivalSlot* slot) const {
    return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(slot) - own_.base());
  }
  // From where on, in all windows, puts count their targets, and what is published its places.
  std::uint64_t landingOf(const Frame& frame) const;
  std::uint64_t publishedOf(const Frame& frame) const;
  bool arrived(const Frame& frame, const plan::BoundOp& wait) const {
    return transport::epochOf(
               arrivalAt(frame, wait.arrival).flag.load(std::memory_order_acquire)) == frame.epoch;
  }
  bool awaitsHere(const Seat& seat) const;
  bool awaitsHere(const Lane& lane, const Seat& seat) const;
  bool ready();
  bool ready(const Lane& lane);
  std::uint32_t waitingFor() const;
  watch::Watch::Needs needs() const { return {}; }
  void close(Lane& lane);
  void tellCompleted();
  void tellWriters();
  void forget(std::uint64_t cookie) { --lanes_[cookie].pending; }
  void count(std::uint64_t bytes) {  // one thread writes
    moved_.store(moved_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  std::uint64_t length(const Frame& frame, const plan::BoundOp& op) const {
    const std::uint64_t left = op.limit > frame.shift ? op.limit - frame.shift : 0;
    return left < op.max ? left : op.max;
  }
  std::byte* at(const Frame& frame, const plan::Place& p) const {
    return frame.base[static_cast<unsigned>(p.base)] + p.offset;
  }
  transport::ArrivalSlot& arrivalAt(const Frame& frame, std::uint32_t index) const {
    return reinterpret_cast<transport::ArrivalSlot*>(
        frame.base[static_cast<unsigned>(plan::Base::Arrivals)])[index];
  }

  transport::Transport& transport_;
  watch::Watch& watch_;
  const transport::WindowLayout& layout_;
  const std::uint32_t rank_;
  const WaitTuning tuning_;
  const std::uint32_t lanesInFlight_;
  transport::WindowView own_;
  // Where these begin in it; on the way of every call.
  transport::ArrivalSlot* const arrivals_;
  transport::ArrivalSlot* const ring_;
  const std::uint64_t arena_, ringArena_, published_;
  Progress progress_;
  base::CacheAlignedVector<std::uint64_t> completedBy_;  // by rank: known to be complete there
  std::vector<transport::ControlPage*> controls_;
  // Who may sleep until this rank's page tells that it has completed something.
  struct Onlooker {
    transport::ControlPage* page;
    std::uint32_t rank;
  };
  std::vector<Onlooker> onlookers_;
  // By rank: what it knows to be complete here; kNoNeed if it can read this rank's page.
  static constexpr std::uint64_t kNoNeed = ~std::uint64_t{0};
  base::CacheAlignedVector<std::uint64_t> toldTo_;
  Footprint footprint_;
  PeerBuffers peers_;
  TeamCompute compute_;
  std::array<Lane, transport::kMaxLanes> lanes_;
  std::uint64_t lastEpoch_ = layout_.epochsBefore;
  std::uint64_t completed_ = layout_.epochsBefore;
  // In this rank's page. Who has no room in a ring reads that line over and over, and so takes it from this
  // rank: of short calls it is told the peers in steps of an eighth of a ring, and before this rank waits.
  std::uint64_t told_ = completed_;
  static constexpr std::uint32_t kTellings = 8;
  const plan::Plan* plan_ = nullptr;
  const Launch* launch_ = nullptr;
  OpTrace* trace_ = nullptr;
  Entry entry_;
  bool refused_ = false;   // a buffer of somebody's is not shared
  bool ranOther_ = false;  // so the last call ran the other plan
  Status broken_;
  std::atomic<std::uint64_t> moved_{0};
};

}  // namespace weft::engine
