// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// The memory that one rank offers to its peers: control page, arrival cells, landing arena. The
// same layout serves threads (local), processes (shm) and, as registered memory, network
// transports.
namespace weft {

inline constexpr std::size_t kLine = 64;
inline constexpr std::uint32_t kParities = 4;    // invocations that may be in flight (D)
inline constexpr std::size_t kInlineBytes = 48;  // payload that travels inside a cell
inline constexpr std::uint32_t kSegmentMagic = 0x77656654;
inline constexpr std::uint32_t kSegmentVersion = 1;
inline constexpr std::size_t kTokenBytes = 16;

// One arrival: flag, fingerprint and a small payload in one cache line, so that a short message
// costs one line transfer. Written by the peer that puts, `word` last; read by the owner of the
// segment.
struct alignas(kLine) Cell {
  std::atomic<std::uint64_t> word{0};  // arrivalWord(); release store, acquire load
  std::uint64_t stamp = 0;             // fingerprint of the sender's call
  std::byte inlined[kInlineBytes] = {};
};
static_assert(sizeof(Cell) == kLine);

// The flag's value: which invocation (epoch, from 1), and how far the sender's completed
// invocations lag behind it. The lag is the credit: whoever sees it knows what the sender no longer
// reads.
inline constexpr std::uint64_t kMaxLag = 255;
inline std::uint64_t arrivalWord(std::uint64_t epoch, std::uint64_t completed) {
  const std::uint64_t lag = epoch - completed;
  return epoch << 8 | (lag < kMaxLag ? lag : kMaxLag);
}
inline std::uint64_t epochOf(std::uint64_t word) { return word >> 8; }
// Everything up to here was complete at the sender; 0 if the lag did not fit.
inline std::uint64_t completedOf(std::uint64_t word) {
  const std::uint64_t lag = word & kMaxLag;
  return lag == kMaxLag ? 0 : epochOf(word) - lag;
}

// What a rank called, for the sentence that names both sides of a mismatch. Written by the owner
// before it sends anything of that call; a reader that finds `seq` equal before and after has read
// a whole record.
struct alignas(kLine) CallRecord {
  std::atomic<std::uint64_t> seq{0};
  std::atomic<std::uint64_t> fingerprint{0};
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> what{0};  // kind | type << 8 | op << 16 | root << 32
};

inline constexpr std::size_t kCallRecords = 64;
inline constexpr std::size_t kVerdictText = 1000;

// The first failure that anybody declared; one for a communicator, on rank 0's page, so that all
// survivors report the same cause.
struct alignas(kLine) Verdict {
  enum State : std::uint32_t { None, Writing, Published };
  std::atomic<std::uint32_t> state{None};
  std::uint32_t code = 0;
  char text[kVerdictText] = {};
};

struct ControlPage {
  std::uint32_t magic = kSegmentMagic;
  std::uint32_t version = kSegmentVersion;
  std::int32_t rank = -1;
  std::int32_t pid = 0;
  // Random, also told to the peers in another way: proves that a mapping or an address is this
  // page.
  std::byte token[kTokenBytes] = {};
  std::atomic<std::uint64_t> probe{0};  // target of trial writes at set-up

  // Owner: all invocations up to this one are complete here, so their slots may be overwritten.
  alignas(kLine) std::atomic<std::uint64_t> completed{0};
  // Owner sleeps in a futex on `doorbell` while `sleeping` is 1; a peer adds to doorbell and wakes
  // it.
  alignas(kLine) std::atomic<std::uint32_t> doorbell{0};
  std::atomic<std::uint32_t> sleeping{0};
  // Owner: 1 = whoever stores something that the owner may sleep on must fence before it reads
  // `sleeping` (transports/mapped/doorbell.h does it).
  std::atomic<std::uint32_t> ringFence{1};
  // Owner: 1 + the core on which it last waited, so that those who wait for it know whether it
  // needs theirs.
  alignas(kLine) std::atomic<std::uint32_t> core{0};
  // Owner: number of the call in progress or last made.
  alignas(kLine) std::atomic<std::uint64_t> callSeq{0};
  std::atomic<std::uint32_t> inCall{0};
  std::atomic<std::uint32_t> left{0};  // 1: destroyed its end; it will make no further call
  alignas(kLine) Verdict verdict;  // on a line of its own: every call looks whether there is one
  CallRecord calls[kCallRecords];
};

// Where things lie in every rank's segment. Equal on all ranks of a communicator.
struct SegmentLayout {
  std::uint32_t ranks = 0;
  std::uint32_t tags = 0;      // collective cells per parity
  std::uint32_t pairTags = 0;  // point-to-point cells, for all peers together
  std::size_t arenaBytes = 0;  // landing arena per parity
  std::size_t pairBytes = 0;   // point-to-point landing, for all peers together

  std::size_t cells() const { return roundUp(sizeof(ControlPage), 4096); }
  std::size_t pairCells() const { return cells() + std::size_t{kParities} * tags * sizeof(Cell); }
  std::size_t arena() const { return roundUp(pairCells() + pairTags * sizeof(Cell), 4096); }
  std::size_t pairArena() const { return arena() + kParities * arenaBytes; }
  std::size_t size() const { return roundUp(pairArena() + pairBytes, 4096); }

  static constexpr std::size_t roundUp(std::size_t n, std::size_t to) {
    return (n + to - 1) / to * to;
  }
};

// A mapped segment, own or a peer's.
class SegmentView {
 public:
  SegmentView() = default;
  SegmentView(std::byte* base, const SegmentLayout& layout) : base_(base), layout_(&layout) {}

  explicit operator bool() const { return base_ != nullptr; }
  std::byte* base() const { return base_; }
  ControlPage& control() const { return *reinterpret_cast<ControlPage*>(base_); }
  Cell* cells() const { return reinterpret_cast<Cell*>(base_ + layout_->cells()); }
  Cell* pairCells() const { return reinterpret_cast<Cell*>(base_ + layout_->pairCells()); }
  std::byte* arena() const { return base_ + layout_->arena(); }
  std::byte* pairArena() const { return base_ + layout_->pairArena(); }

 private:
  std::byte* base_ = nullptr;
  const SegmentLayout* layout_ = nullptr;
};

}  // namespace weft
