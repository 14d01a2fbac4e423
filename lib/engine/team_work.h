// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>

#include "engine/team.h"
#include "transports/window.h"

namespace weft::engine {

// How much of a call its rank's team shares: cuts the bytes of a large step into as many pieces side
// by side as pay for what the team costs. Without a team, or while another communicator has it, or
// where a call is short, one thread does all.
class TeamWork {
 public:
  explicit TeamWork(const Crew& crew) : crew_(crew) {}

  std::uint32_t members() const { return crew_.team ? crew_.team->size() : 1; }
  // What one thread needs to copy so many bytes.
  double copyNs(std::uint64_t bytes) const { return static_cast<double>(bytes) * crew_.nsPerByte; }

  // A call that one thread would work on for `ns`: has the team, if that is much.
  class Call {
   public:
    Call(TeamWork& work, double ns) : work_(work) {
      if (work.crew_.team) work.begin(ns);
    }
    ~Call() {
      if (work_.hasTeam_) work_.end();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    TeamWork& work_;
  };
  bool hasTeam() const { return hasTeam_; }

  // For a step that takes one thread `ns`; 1 without a team.
  std::uint32_t piecesFor(double ns) { return hasTeam_ ? piecesOf(ns) : 1; }
  // body(piece, from, end) for so many pieces at most, of whole units; do all succeed? A cache line
  // holds whole elements. What a body throws on any thread is thrown here.
  template <class Body>
  bool share(std::uint32_t pieces, std::uint64_t bytes, const Body& body,
             std::uint64_t unit = transport::kLine);
  // Copies, body(from, end) a piece: whether all succeed, or nothing, where one thread is as good.
  template <class Body>
  std::optional<bool> copy(std::uint64_t bytes, const Body& body) {
    const std::uint32_t pieces = piecesFor(copyNs(bytes));
    if (pieces < 2) return {};
    return share(pieces, bytes, [&](std::uint32_t, std::uint64_t from, std::uint64_t end) {
      return body(from, end);
    });
  }

 private:
  void begin(double ns);
  void end();
  std::uint32_t piecesOf(double ns);

  const Crew crew_;
  bool hasTeam_ = false;
  double leftNs_ = 0;  // what one thread would still need for this call
  bool wakes_ = false;
};

template <class Body>
bool TeamWork::share(std::uint32_t pieces, std::uint64_t bytes, const Body& body,
                     std::uint64_t unit) {
  struct Job {
    const Body& body;
    std::uint64_t each, bytes;
    std::atomic<bool> failed{false};
    std::atomic<bool> threw{false};
    std::exception_ptr thrown = nullptr;  // what was first
    bool run(std::uint32_t piece, std::uint64_t from, std::uint64_t end) {
      try {
        return body(piece, from, end);
      } catch (...) {
        if (!threw.exchange(true)) thrown = std::current_exception();
        return false;
      }
    }
  } job{body, transport::roundUp((bytes + pieces - 1) / pieces, unit), bytes};
  const auto onePiece = [](void* arg, int piece) {
    Job& j = *static_cast<Job*>(arg);
    const std::uint64_t from = std::min(j.bytes, static_cast<std::uint64_t>(piece) * j.each);
    const std::uint64_t end = std::min(j.bytes, from + j.each);
    if (from < end && !j.run(static_cast<std::uint32_t>(piece), from, end))
      j.failed.store(true, std::memory_order_relaxed);
  };
  crew_.team->run(pieces, onePiece, &job, wakes_);
  if (job.thrown) std::rethrow_exception(job.thrown);
  return !job.failed.load(std::memory_order_relaxed);
}

}  // namespace weft::engine
