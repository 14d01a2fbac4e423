// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/verify/buffers.h"
#include "tests/verify/job.h"
#include "verify/memory.h"
#include "verify/order.h"

namespace weft::verify {

// The ranks of a job on symbolic memory: what each op of the engine's (engine/executor.cpp,
// engine/compute.cpp) does to bytes, and whether it may. When an op runs is its caller's business.
class Machine {
 public:
  Machine(const Job& job, const Lanes& lanes);

  // The caller of `rank` enters call `call`, and leaves it. Meanwhile its buffers are the call's:
  // entering writes them all, and so does leaving, since the caller may.
  Status enter(std::uint32_t rank, std::uint32_t call);
  Status leave(std::uint32_t rank, std::uint32_t call);
  // A lane's first moment, and its last: all its puts have read their sources.
  void open(std::uint32_t lane);
  void close(std::uint32_t lane);

  bool hasArrived(std::uint32_t lane, const plan::BoundOp& wait) const;
  Status run(std::uint32_t lane, std::uint32_t step);
  // At the end: is every arrival awaited, and every result right?
  Status checkEnd() const;

 private:
  struct Arrival {
    std::uint32_t lane = ~0u;  // of the receiver's: which invocation it is for
    std::uint32_t sender = 0;
    std::uint32_t put = 0;
    bool isEntry = false;  // a signal: its payload tells about the sender's buffers
  };
  // A rank's arrival slots, of one lane or of one place in the rings.
  struct Arrivals {
    explicit Arrivals(std::uint32_t count)
        : memory(count * static_cast<std::uint32_t>(sizeof(transport::ArrivalSlot))),
          raised(count) {}
    Memory memory;
    std::vector<Arrival> raised;  // by index
  };
  // Some bytes somewhere.
  struct Range {
    Memory* memory = nullptr;
    std::uint32_t begin = 0, bytes = 0;
  };
  struct Part {
    std::uint64_t begin = 0, bytes = 0;
  };
  // The op at work.
  struct Step {
    std::uint32_t lane, number;
    const plan::BoundOp& op;
    std::uint32_t bytes;
    std::uint32_t put = Access::kLocal;
  };

  struct Sent {
    std::uint32_t lane, step, put;
  };

  Status useBuffers(std::uint32_t rank, std::uint32_t call, std::uint32_t time, const char* what);

  Status put(Step step);
  Status checkPut(const Step& step) const;
  void learnThatSlotsAreFree(const Step& step, std::uint32_t peer);
  Status locateTarget(const Step& step, Range* target);
  Part ofRing(std::uint32_t lane, std::uint32_t writer) const;
  Range inRings(std::uint32_t rank, const Step& step, std::uint64_t offset);
  bool knowsEntry(const Step& step, std::uint32_t index, std::uint32_t sender) const;
  Status deliver(const Step& step, std::uint32_t number, const Pieces& payload);
  Status wait(const Step& step);
  Status admit(const Step& last);

  Status compute(const Step& step);
  Status copy(const Step& step);
  Status fold(const Step& step);
  Value blockAt(const Step& step);
  Status runEpilogue(const Step& step, const Pieces& addends);
  Status finish(const Step& step, Pieces* pieces);
  Status store(const Step& step, const Pieces& pieces);
  Status checkOverlap(const Step& step, const plan::Place& source);

  Status locate(const Step& step, const plan::Place& place, Range* range);
  Status locateIn(const Step& step, std::uint32_t rank, bool in, std::uint64_t offset,
                  Range* range);
  Status locatePeers(const Step& step, const plan::Place& place, Range* range);
  Status locatePublished(const Step& step, const plan::Place& place, Range* range);
  Status publish(const Step& step);
  Status touch(const Step& step, const Range& range, bool write);
  Status read(const Step& step, const plan::Place& place, Pieces* pieces);
  Status write(const Step& step, const Range& range, const Pieces& pieces);

  std::uint64_t lengthOf(std::uint32_t lane, const plan::BoundOp& op) const;
  Memory& arenaOf(std::uint32_t rank, std::uint32_t lane);
  Memory& publishedOf(std::uint32_t rank, std::uint32_t lane);
  Arrivals& arrivalsOf(std::uint32_t rank, std::uint32_t lane);
  const Arrivals& arrivalsOf(std::uint32_t rank, std::uint32_t lane) const {
    return const_cast<Machine*>(this)->arrivalsOf(rank, lane);
  }
  Buffers& buffersOf(std::uint32_t lane) { return buffers_[lanes_[lane].call]; }
  Status violation(const Step& step, const std::string& what) const {
    return lanes_.violation(step.lane, step.number, what);
  }
  std::string describe(const Access& access) const;

  const Job& job_;
  const Lanes& lanes_;
  Order order_;
  std::vector<Buffers> buffers_;             // by call
  std::vector<Memory> arenas_;               // by rank and lane
  std::vector<Memory> published_;            // by rank and lane
  std::vector<Memory> ringArenas_;           // by rank
  std::vector<Arrivals> ofLanes_, ofRings_;  // by rank and lane; by rank and place in a ring
  std::vector<std::vector<bool>> admitted_;  // by lane: the peers whose buffers it may touch
  std::vector<Sent> sent_;
  std::vector<Clock> completed_;  // by lane: what its rank knew on completing it
};

}  // namespace weft::verify
