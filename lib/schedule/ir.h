// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"

// The schedule IR: a collective is a pure function `rank -> short serial list of ops` over slots.
//
// Slots. A slot holds one chunk of one buffer of one rank. In and Out are the user's buffers, Tmp
// is library memory, Signal slots have an arrival flag and no bytes. Which chunk an In or Out slot
// holds is fixed by the collective (collective.h); a Tmp slot holds what was last written to it.
//
// Chunks. Slots move *logical chunks* 0 .. Schedule::logicalChunks-1. A schedule never knows
// lengths: the binder gives every logical chunk a length (equal parts of a vector, or the caller's
// block lengths for block collectives, where they may differ and may be zero). So the uneven forms
// (all-gather-v, reduce-scatter-v) are the very same schedules. Every op says which logical chunks
// it moves (Op::shape), since a Tmp slot has no length of its own. Empty chunks still raise their
// arrivals.
//
// Arrivals. A Put raises ONE arrival, that of the first slot of the run it wrote at the peer; a
// Wait names exactly the run of one Put and the rank that puts, and each arrival is waited for
// exactly once. The target of a Put is written by that Put alone until its Wait is through. So a
// rank's own program says all that it exchanges with its peers.
//
// Put is asynchronous: it reads its source at any time until the peer's Wait for it is through, so
// a schedule never overwrites a Put's source unless a chain of messages proves that Wait. What the
// schedule leaves to the engine: a call returns only when the sources of its own Puts are read.
//
// Shared buffers. A Reduce operand or a Copy source may be an In slot of a peer (Slot::owner),
// where the ranks reach each other's buffers by loads and stores. Such a read is ordered like any
// other: the peer has entered the call before, and does not leave it until it knows the read is
// through.
//
// Published. Where ranks read each other's Tmp memory, a rank that puts the same into Tmp of many
// may keep it in its own, once, for all of them to read (transforms.h). That is how its puts are
// bound; the program is the same, so what is proved of it holds: nobody but the sender ever writes
// there, and it does so again only when all who read it have completed.
//
// Segments and lanes are the engine's: it cuts a long message into segments and runs this same
// program once for each (an *invocation*). It sees to it that a peer's slots are free again before
// a later invocation puts into them.
//
// Everything here is plain data, immutable once built; a Schedule may be shared between threads.
namespace weft::schedule {

enum class OpKind : uint8_t { Put, Wait, Copy, Reduce, Apply };

enum class ApplyId : uint8_t {
  Scale,   // multiply by the caller's factor (pre-multiplied sum), before anything is added
  Finish,  // turn a complete sum into the result (divide for average); once on every complete sum
};

enum class Buf : uint8_t { In, Out, Tmp, Signal };

inline constexpr uint32_t kMine = ~0u;

struct Slot {
  Buf buf;
  uint32_t index;
  uint32_t owner = kMine;  // a peer: its slot, to be read only (see "Shared buffers")
  friend bool operator==(const Slot&, const Slot&) = default;
};

constexpr Slot in(uint32_t i) { return {Buf::In, i}; }
constexpr Slot out(uint32_t i) { return {Buf::Out, i}; }
constexpr Slot tmp(uint32_t i) { return {Buf::Tmp, i}; }
constexpr Slot signalSlot(uint32_t i) { return {Buf::Signal, i}; }
constexpr Slot inOf(uint32_t peer, uint32_t i) { return {Buf::In, i, peer}; }
constexpr Slot operator+(Slot s, uint32_t offset) { return {s.buf, s.index + offset, s.owner}; }

// Consecutive logical chunks first .. first+chunks-1 (never wrapping round).
struct Span {
  uint32_t first;
  uint32_t chunks = 1;
};

// One step of one rank. Runs are consecutive slots: src .. src+chunks-1 and so on.
//
//   Put     read my run src, write run dst of rank `peer`, raise that run's arrival.
//           chunks == 0 is a signal: src is unused, dst is a Signal slot of the peer.
//   Wait    until the arrival of my run dst from rank `peer` (chunks == 0: of my Signal slot dst).
//   Copy    dst = src
//   Reduce  dst = operand0 op operand1 op ... in the listed order, each operand the first slot of a
//           run. Narrow types are widened and the result is rounded once. dst may equal an operand.
//   Apply   dst = f(src), element by element; dst may equal src.
struct Op {
  OpKind kind = OpKind::Put;
  ApplyId apply = ApplyId::Scale;
  uint32_t peer = 0;
  Slot src = tmp(0), dst = tmp(0);
  uint32_t chunks = 0;
  uint32_t shape = 0;  // logical chunk in the run's first slot; the next slot has shape+1, ...
  uint32_t firstOperand = 0, operands = 0;  // Reduce: Program::operands[firstOperand ..+ operands)

  bool isSignal() const { return chunks == 0; }
  bool hasPeer() const { return kind == OpKind::Put || kind == OpKind::Wait; }
  Span span() const { return {shape, chunks}; }
};

// What one rank executes, in this order, and the builders that generators use.
struct Program {
  std::vector<Op> ops;
  std::vector<Slot> operands;

  // Does this op of the program put what the one before it has just put, to another peer?
  bool putsAgain(const Op& op) const;

  void put(uint32_t peer, Slot src, Slot dst, Span what);
  void wait(uint32_t peer, Slot dst, Span what);
  void signal(uint32_t peer, uint32_t index);  // raise Signal slot `index` of `peer`
  void waitSignal(uint32_t peer, uint32_t index);
  void copy(Slot src, Slot dst, Span what);                            // nothing if src is dst
  void reduce(Slot dst, const std::vector<Slot>& sources, Span what);  // one source: a copy
  void apply(ApplyId id, Slot src, Slot dst, Span what);

  // The same op with its operands taken from `from` (for transforms).
  void append(Op op, const Program& from);

 private:
  Op& add(OpKind kind, Slot src, Slot dst, Span what);
};

struct Schedule {
  std::string name;  // generator and transforms, for messages: "mesh+staged"
  Collective collective = Collective::AllReduce;
  uint32_t root = 0;  // rooted collectives only
  uint32_t ranks = 1;
  uint32_t inChunks = 0, outChunks = 0;  // slots of the user's buffers, on the ranks that have them
  uint32_t tmpChunks = 0;                // Tmp slots, each as long as the longest logical chunk
  uint32_t signals = 0;                  // Signal slots: arrival flags without bytes
  uint32_t logicalChunks = 1;
  uint32_t parts = 1;      // of a block: so many equal ones (collective.h)
  bool shared = false;     // opened (transforms.h): reads and writes its peers' buffers
  bool published = false;  // what is put into Tmp stays with its sender, where all read it
  bool scaled = false;     // inputs pass through Apply(Scale)
  bool made = false;       // an all-gather of blocks that Apply(Finish) makes
  uint32_t hops = 1;       // messages in a chain that no one rank's program shows: of a tree
  // How many bytes of the larger buffer had better be in one segment; 0: as many as have room.
  double segmentBytes = 0;
  // A segment sets out when a rank has done a quarter of the one before, up to its last put, not at once
  // with it: links then serve the older ones first, as the order of ops does.
  bool isPaced = false;
  // Some ranks use what several puts brought as one run.
  bool joinsPuts = false;
  // Ranks that stand for all: each rank has its like among them, which puts as much to any one peer,
  // and keeps as much, as it does; and all others but these reach into a rank's buffers as these do.
  std::vector<uint32_t> typical = {0};
  // Pure: the same answer on every machine.
  std::function<Program(uint32_t rank)> program = nullptr;
};

// Named "all-reduce mesh", with the In and Out slots that collective.h says for so many chunks of a
// vector, or blocks in so many parts; Tmp, signals and program are to come.
Schedule emptySchedule(Collective collective, std::string_view algorithm, uint32_t ranks,
                       uint32_t chunks, uint32_t root = 0, uint32_t parts = 1);

// The others of n ranks, from the one after `me` on, and from the one before it back. So ranks send
// and wait, and no two of them start on the same peer.
std::vector<uint32_t> after(uint32_t me, uint32_t n);
std::vector<uint32_t> before(uint32_t me, uint32_t n);

}  // namespace weft::schedule
