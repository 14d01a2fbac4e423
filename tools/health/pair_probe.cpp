// SPDX-License-Identifier: Apache-2.0
#include "tools/health/pair_probe.h"

#include <algorithm>
#include <chrono>

namespace weft::health {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRoundTrips = 20;
constexpr std::size_t kPieceWords = 32 * 1024;  // 256 KiB
constexpr std::size_t kLeastPieces = 4;         // more than what a network lets through in a burst
constexpr std::size_t kMostPieces = 32;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

PairProbe::PairProbe(Crew& crew, std::uint64_t seed, double seconds)
    : crew_(crew),
      seconds_(seconds),
      seed_(seed),
      out_(kPieceWords * kMostPieces),
      in_(out_.size()),
      rates_(static_cast<std::size_t>(crew.size())) {
  Pattern(seed_, crew_.rank()).fill(out_.data(), out_.size());
}

PairProbe::View PairProbe::measure(int peer) {
  const bool first = crew_.rank() < peer;
  View view;
  view.microseconds = pingPong(peer, first, &view.wrong);
  if (first) view.gigabytes = sendData(peer);
  view.wrong += receiveData(peer);
  if (!first) view.gigabytes = sendData(peer);
  return view;
}

// The best of some, in microseconds one way. The first of the pair holds the clock.
double PairProbe::pingPong(int peer, bool first, double* wrong) {
  const Pattern pattern(seed_, peer);
  double best = 0;
  for (std::size_t i = 0; i < kRoundTrips; ++i) {
    const auto start = Clock::now();
    if (first) crew_.send(peer, &out_[i], sizeof out_[i]);
    crew_.receive(peer, in_.data(), sizeof in_[0]);
    if (!first) crew_.send(peer, &out_[i], sizeof out_[i]);
    const double time = since(start) / 2 * 1e6;
    if (first && (best == 0 || time < best)) best = time;
    *wrong += in_[0] == pattern[i] ? 0 : 1;
  }
  return best;
}

// Within a host a short transfer has a chance to see no interruption, however busy the cores are.
std::uint64_t PairProbe::piecesFor(int peer, double rate) const {
  const bool inside = crew_.members()[static_cast<std::size_t>(peer)].host == crew_.me().host;
  const double seconds = inside ? seconds_ / 8 : seconds_;
  const double wanted = rate * seconds / (kPieceWords * sizeof(std::uint64_t));
  const std::size_t least = inside ? 1 : kLeastPieces;
  return std::clamp(static_cast<std::size_t>(wanted), least, kMostPieces);
}

// As many pieces as the link takes in the time that it has; the time ends when the peer has them
// all. GB/s.
double PairProbe::sendData(int peer) {
  double& rate = rates_[static_cast<std::size_t>(peer)];
  const std::uint64_t pieces = piecesFor(peer, rate);
  crew_.send(peer, &pieces, sizeof pieces);
  std::uint64_t answer = 0;
  crew_.receive(peer, &answer, sizeof answer);  // the peer is ready
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < pieces; ++i)
    crew_.send(peer, &out_[i * kPieceWords], kPieceWords * sizeof(std::uint64_t));
  crew_.receive(peer, &answer, sizeof answer);
  rate = static_cast<double>(pieces * kPieceWords * sizeof(std::uint64_t)) / since(start);
  return rate / 1e9;
}

// How many words were not what the peer sent.
double PairProbe::receiveData(int peer) {
  std::uint64_t pieces = 0;
  crew_.receive(peer, &pieces, sizeof pieces);
  pieces = std::min<std::uint64_t>(pieces, kMostPieces);
  std::fill_n(in_.begin(), pieces * kPieceWords, 0);  // what does not come must not look right
  crew_.send(peer, &pieces, sizeof pieces);
  for (std::uint64_t i = 0; i < pieces; ++i)
    crew_.receive(peer, &in_[i * kPieceWords], kPieceWords * sizeof(std::uint64_t));
  crew_.send(peer, &pieces, sizeof pieces);
  const auto wrong = Pattern(seed_, peer).countWrong(in_.data(), pieces * kPieceWords);
  return static_cast<double>(wrong);
}

}  // namespace weft::health
