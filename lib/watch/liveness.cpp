// SPDX-License-Identifier: Apache-2.0
#include "watch/liveness.h"

#include <algorithm>
#include <csignal>

#include "base/log.h"
#include "base/mark.h"
#include "base/text.h"

namespace weft::watch {
namespace {

std::int64_t inMilliseconds(Liveness::Clock::duration span) {
  return std::chrono::ceil<std::chrono::milliseconds>(span).count();
}

}  // namespace

Liveness::Liveness(transport::Transport& transport, const std::vector<PeerName>& names, Warn warn)
    : warn_(warn ? std::move(warn) : Warn([](const std::string& line) { logWarn(line); })) {
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    const int deathFd = transport.deathFd(i);
    const int statFd = transport.statFd(i);
    if (deathFd < 0 && statFd < 0 && WEFT_MARK("a peer that cannot be watched")) continue;
    peers_.push_back(
        {.index = i, .name = names[i], .deathFd = deathFd, .statFd = statFd, .stoppedAt = {}});
  }
  chosen_.reserve(peers_.size());
  deaths_.reserve(peers_.size());
}

void Liveness::chooseWhom() {
  chosen_.clear();
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (peers_[i].ended) chosen_.push_back(i);
  for (std::size_t k = std::min(kAtOnce, peers_.size()); k > 0; --k) {
    if (!peers_[next_].ended) chosen_.push_back(next_);
    next_ = (next_ + 1) % peers_.size();
  }
  deaths_.clear();
  for (const std::size_t i : chosen_) deaths_.push_back({peers_[i].deathFd, POLLIN, 0});
}

Status Liveness::check(const Matters& matters) {
  if (!firstError_.ok() || peers_.empty()) return firstError_;
  const Clock::time_point now = Clock::now();
  chooseWhom();
  ::poll(deaths_.data(), deaths_.size(), 0);  // skips entries without a descriptor
  for (std::size_t i = 0; i < chosen_.size() && firstError_.ok(); ++i) {
    Peer& peer = peers_[chosen_[i]];
    const Status status = look(peer, (deaths_[i].revents & POLLIN) != 0, now);
    peer.ended = !status.ok();
    if (!peer.ended)
      peer.aliveAt = now;
    else if (!matters || matters(peer.index))
      firstError_ = status;
  }
  return firstError_;
}

Status Liveness::look(Peer& peer, bool dead, Clock::time_point now) {
  ProcStat stat;
  const bool known = peer.statFd >= 0 && readProcStat(peer.statFd, &stat);
  // The kernel fetches the exit code before the flags; a process may have ended in between.
  if (known && stat.dying() && stat.exitCode == 0) (void)readProcStat(peer.statFd, &stat);
  if (dead || (known && stat.dying())) return ended(peer, known ? &stat : nullptr, now);
  if (known) noteStop(peer, stat, now);
  return {};
}

bool Liveness::isStill(std::uint32_t peer) const {
  const auto it = std::ranges::find(peers_, peer, &Peer::index);
  if (it == peers_.end()) return false;
  pollfd death{it->deathFd, POLLIN, 0};
  if (::poll(&death, 1, 0) > 0 && (death.revents & POLLIN) != 0) return true;
  ProcStat stat;
  return it->statFd >= 0 && readProcStat(it->statFd, &stat) && (stat.dying() || stat.stopped());
}

void Liveness::noteStop(Peer& peer, const ProcStat& stat, Clock::time_point now) {
  if (!stat.stopped()) {
    peer.stopped = peer.warned = false;
    return;
  }
  if (!peer.stopped) peer.stoppedAt = now;
  peer.stopped = true;
  if (peer.warned || now - peer.stoppedAt < kStopPatience) return;
  peer.warned = true;
  warn_(stopOf(peer) + text("; fix: kill -CONT ", peer.name.pid, ", or detach the debugger"));
}

std::string Liveness::stopOf(const Peer& peer) const {
  return text(peer.name, " is stopped (by a signal or a debugger) for at least ",
              inMilliseconds(Clock::now() - peer.stoppedAt), " ms");
}

std::vector<Liveness::Stopped> Liveness::stopped() const {
  std::vector<Stopped> all;
  for (const Peer& peer : peers_)
    if (peer.stopped) all.push_back({peer.name, stopOf(peer)});
  return all;
}

// A process that its parent has already collected no longer tells how it ended.
Status Liveness::ended(const Peer& peer, const ProcStat* stat, Clock::time_point now) const {
  const std::string cause = stat != nullptr ? stat->cause() : "was killed or has exited";
  const bool killed = stat != nullptr && (stat->exitCode & 0x7f) == SIGKILL;
  return Status::error(
      {.code = Code::RemoteError,
       .who = peer.name,
       .what = text("{who} ", cause, " at most ", inMilliseconds(now - peer.aliveAt), " ms ago"),
       .fix = killed ? "look for the out-of-memory killer (dmesg) or for who sent it"
                     : "look at that rank's own output"});
}

}  // namespace weft::watch
