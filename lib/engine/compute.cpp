// SPDX-License-Identifier: Apache-2.0
#include "engine/compute.h"

#include <algorithm>

#include "base/copy.h"
#include "reduce/reduce.h"

namespace weft::engine {
namespace {

// Bytes at once where results go to several places: a tile and where it goes fit any second-level cache, from
// where the further ones get it. Of 8 KiB, which the first level holds, calls took 1.2 to 1.5 times as long: the
// lines of another core's buffer, which have a way to go, are asked for anew with each tile (docs/performance.md).
constexpr std::uint64_t kTile = 128 << 10;

std::uint64_t tileAt(std::uint64_t at, std::uint64_t bytes) { return std::min(kTile, bytes - at); }

}  // namespace

Compute::Compute(PeerBuffers& peers, std::uint32_t ranks)
    : peers_(peers), sources_(std::max(ranks, 1u)) {
  targets_.reserve(ranks);
  stores_.reserve(ranks);
  far_.reserve(ranks);
}

bool Compute::run(const Frame& frame, const plan::BoundOp& op, std::uint64_t from,
                  std::uint64_t end) {
  const bool whole = peers_.mapped() && !(op.finish && frame.plan.callsEpilogue);
  if (whole) return runPiece({frame, op, from, end - from});
  for (; from < end; from += plan::kTileBytes)
    if (!runPiece({frame, op, from, std::min(plan::kTileBytes, end - from)})) return false;
  return true;
}

inline bool Compute::runPiece(const Piece& piece) {
  findTargets(piece);
  if (!findSources(piece)) return false;
  if (piece.op.kind == plan::BoundOp::Kind::Fold)
    fold(piece);
  else
    copy(piece);
  return far_.empty() || storeFar(piece);
}

void Compute::findTarget(const Piece& piece, const plan::Place& place) {
  if (place.base == plan::Base::Published) {
    targets_.push_back(peers_.publishes() + piece.publishedAt(place));
    return stores_.push_back(&peers_.storesTo(place.peer));
  }
  std::byte* const here = place.isPeers() ? peers_.address(place) : nullptr;
  if (place.isPeers() && here == nullptr) {
    far_.push_back(&place);
    return;
  }
  targets_.push_back(here != nullptr ? here + piece.from : piece.own(place));
  stores_.push_back(here != nullptr ? &peers_.storesTo(place.peer) : nullptr);
}

void Compute::findTargets(const Piece& piece) {
  targets_.clear();
  stores_.clear();
  far_.clear();
  findTarget(piece, piece.op.dst);
  for (std::uint32_t k = 0; k < piece.op.spread; ++k)
    findTarget(piece, piece.frame.plan.operands[piece.op.firstSpread + k]);
}

bool Compute::findSource(const Piece& piece, const plan::Place& place, std::uint32_t k) {
  if (!place.isPeers()) {
    sources_[k] = piece.own(place);
    return true;
  }
  if (place.base == plan::Base::Published) {
    sources_[k] = peers_.published(place.peer) + piece.publishedAt(place);
    return true;
  }
  if (const std::byte* const here = peers_.address(place)) {
    sources_[k] = here + piece.from;
    return true;
  }
  if (!fetched_) fetched_ = std::make_unique<std::byte[]>(sources_.size() * plan::kTileBytes);
  std::byte* const tile = fetched_.get() + k * plan::kTileBytes;
  sources_[k] = tile;
  return peers_.load(place, piece.from, tile, piece.bytes);
}

bool Compute::findSources(const Piece& piece) {
  const plan::BoundOp& op = piece.op;
  if (op.kind != plan::BoundOp::Kind::Fold) return findSource(piece, op.src, 0);
  for (std::uint32_t k = 0; k < op.operands; ++k)
    if (!findSource(piece, piece.frame.plan.operands[op.first + k], k)) return false;
  return true;
}

// From where it is in the cache.
bool Compute::storeFar(const Piece& piece) {
  const bool folds = piece.op.kind == plan::BoundOp::Kind::Fold;
  const void* const made = !targets_.empty() ? targets_[0] : folds ? tile_.data() : sources_[0];
  return std::ranges::all_of(far_, [&](const plan::Place* place) {
    return peers_.store(*place, piece.from, static_cast<const std::byte*>(made), piece.bytes);
  });
}

bool Compute::isInPlace(const plan::BoundOp& op) const {
  return std::any_of(sources_.begin(), sources_.begin() + op.operands, [this](const void* source) {
    return std::ranges::find(targets_, source) != targets_.end();
  });
}

void Compute::fold(const Piece& piece) {
  const plan::Plan& plan = piece.frame.plan;
  const plan::BoundOp& op = piece.op;
  if (op.finish && plan.callsEpilogue) return runEpilogue(piece);
  if (streams(piece) && plan.spread != nullptr && !isInPlace(op))
    plan.spread(targets_.data(), targets_.size(), sources_.data(), op.operands, piece.count(),
                piece.divisor());
  else if (targets_.size() > 1)
    foldInTiles(piece);
  else if (op.dst.isPeersBuffer())
    foldAway(piece);
  else
    plan.fold(targets_[0], sources_.data(), op.operands, piece.count(), piece.divisor());
}

// Results that this rank does not keep: into the peer's buffer at once, the way that is the quicker one; by
// way of tiles it took 1.1 to 1.5 times as long. Where the buffer is not mapped, a tile holds them for
// storeFar().
void Compute::foldAway(const Piece& piece) {
  const plan::Plan& plan = piece.frame.plan;
  if (targets_.empty()) tile_.resize(plan::kTileBytes);
  void* const to = targets_.empty() ? tile_.data() : targets_[0];
  const auto fold = [&](bool past) {
    if (past)
      plan.spread(&to, 1, sources_.data(), piece.op.operands, piece.count(), piece.divisor());
    else
      plan.fold(to, sources_.data(), piece.op.operands, piece.count(), piece.divisor());
  };
  if (targets_.empty() || plan.spread == nullptr || isInPlace(piece.op))
    fold(false);
  else
    peers_.foldsTo(piece.op.dst.peer).store(to, piece.bytes, fold);
}

// The epilogue makes a piece where it stays in the cache, from where all targets get it.
void Compute::runEpilogue(const Piece& piece) {
  plan::Epilogue& epilogue = *piece.frame.epilogue;
  const std::span addends(sources_.data(), piece.op.operands);
  const std::uint64_t first = (piece.frame.shift + piece.from) / piece.frame.plan.elementBytes;
  if (streams(piece) && epilogue.runToAll(targets_, addends, first, piece.count())) return;
  auto* made = static_cast<std::byte*>(targets_[0]);
  const bool streamed = streams(piece) && made != nullptr;
  if (streamed) {
    tile_.resize(plan::kTileBytes);
    made = tile_.data();
  }
  epilogue.run(made, addends, first, piece.count());
  if (streamed)
    reduce::copyStream(targets_.data(), targets_.size(), made, piece.bytes);
  else
    copyToAll(made, 0, piece.bytes);
}

// Copy, Store, Scale, Finish, Publish.
void Compute::copy(const Piece& piece) {
  if (targets_.empty()) return;
  const plan::Plan& plan = piece.frame.plan;
  const plan::BoundOp& op = piece.op;
  const void* const src = sources_[0];
  if (op.kind == plan::BoundOp::Kind::Scale)
    return plan.scale(targets_[0], src, piece.count(), piece.frame.scalar);
  const bool isThere = targets_.size() == 1 && targets_[0] == src;  // in place
  if (streams(piece) && !isThere)
    reduce::copyStream(targets_.data(), targets_.size(), src, piece.bytes);
  else if (targets_.size() > 1)
    copyInTiles(piece);
  else
    copyTo(0, 0, src, piece.bytes);
  if (op.kind == plan::BoundOp::Kind::Finish)
    reduce::finish(plan.type, targets_[0], piece.count(), plan.divisor);
}

void Compute::copyTo(std::size_t target, std::uint64_t at, const void* from, std::uint64_t bytes) {
  std::byte* const to = static_cast<std::byte*>(targets_[target]) + at;
  if (stores_[target] != nullptr)
    stores_[target]->copy(to, from, bytes);
  else
    copyBytes(to, from, bytes);
}

// A tile goes to all targets while it is in the second-level cache.
void Compute::copyToAll(const std::byte* made, std::uint64_t at, std::uint64_t bytes) {
  for (std::size_t k = 0; k < targets_.size(); ++k) copyTo(k, at, made, bytes);
}

void Compute::copyInTiles(const Piece& piece) {
  const auto* const src = static_cast<const std::byte*>(sources_[0]);
  for (std::uint64_t at = 0, n = 0; at < piece.bytes; at += n) {
    n = tileAt(at, piece.bytes);
    copyToAll(src + at, at, n);
  }
}

void Compute::advanceSources(const plan::BoundOp& op, std::uint64_t bytes) {
  for (std::uint32_t k = 0; k < op.operands; ++k)
    sources_[k] = static_cast<const std::byte*>(sources_[k]) + bytes;
}

void Compute::foldInTiles(const Piece& piece) {
  const plan::Plan& plan = piece.frame.plan;
  auto* const first = static_cast<std::byte*>(targets_[0]);
  for (std::uint64_t at = 0, n = 0; at < piece.bytes; at += n) {
    n = tileAt(at, piece.bytes);
    plan.fold(first + at, sources_.data(), piece.op.operands, n / plan.elementBytes,
              piece.divisor());
    advanceSources(piece.op, n);
    copyToAll(first + at, at, n);
  }
}

}  // namespace weft::engine
