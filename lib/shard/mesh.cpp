// SPDX-License-Identifier: Apache-2.0
#include "shard/mesh.h"

#include "base/invalid.h"
#include "base/text.h"
#include "comm/create.h"

namespace weft::shard {

Status checkDegrees(const Degrees& d, std::uint32_t ranks) {
  const auto divides = [](std::uint32_t a, std::uint32_t b) { return a != 0 && b % a == 0; };
  if (divides(d.param, d.grad) && divides(d.grad, d.state) && divides(d.state, ranks)) return {};
  return invalid("degrees {", d.param, ", ", d.grad, ", ", d.state, "} on ", ranks,
                 " ranks: each must divide the next, and the last the number of ranks; fix: "
                 "ZeRO-1 is {1, 1, ",
                 ranks, "}, ZeRO-2 {1, ", ranks, ", ", ranks, "}, MiCS {p, p, p} with p a divisor");
}

Status Mesh::make(comm::Communicator& parent, const Degrees& degrees, Mesh* out) {
  WEFT_TRY(checkDegrees(degrees, parent.ranks()));
  Mesh mesh;
  mesh.degrees_ = degrees;
  mesh.rank_ = parent.rank();
  mesh.ranks_ = parent.ranks();
  mesh.sizes_ = {degrees.param, degrees.grad / degrees.param, degrees.state / degrees.grad,
                 parent.ranks() / degrees.state};
  std::uint32_t stride = 1;
  for (std::size_t level = 0; level < kLevels; ++level) {
    mesh.strides_[level] = stride;
    mesh.positions_[level] = mesh.rank_ / stride % mesh.sizes_[level];
    stride *= mesh.sizes_[level];
  }
  WEFT_TRY(mesh.split(parent));
  *out = std::move(mesh);
  return {};
}

// Every rank takes part in every split, whether it is in a group or not.
Status Mesh::split(comm::Communicator& parent) {
  // Of those who call together none comes here.
  if (parent.callers() == nullptr) crew_ = parent.core()->parts.crew;
  if (ranks_ == 1) return {};
  comm::CommConfig config = parent.config();
  config.beCalledByOne();
  const auto named = [&](const char* what) {
    config.name = text(parent.name(), ".", what);
    return config;
  };
  WEFT_TRY(comm::splitCommunicator(parent, 0, static_cast<int>(rank_), named("shard"), &world_));
  constexpr const char* kNames[kLevels] = {"params", "gradients", "state", "replicas"};
  for (std::size_t level = 0; level < kLevels; ++level) {
    if (sizes_[level] == 1) continue;
    if (sizes_[level] == ranks_) {
      groups_[level] = world_;
      continue;
    }
    const std::uint32_t color = rank_ - positions_[level] * strides_[level];
    WEFT_TRY(comm::splitCommunicator(parent, static_cast<int>(color),
                                     static_cast<int>(positions_[level]), named(kNames[level]),
                                     &groups_[level]));
  }
  if (sizes_[0] == 1) return {};
  return comm::splitCommunicator(parent, static_cast<int>(rank_ - positions_[0]),
                                 static_cast<int>(positions_[0]), named("gather"), &gatherers_);
}

std::uint32_t Mesh::rankOf(Level level, std::uint32_t position) const {
  const auto l = static_cast<std::size_t>(level);
  return rank_ - positions_[l] * strides_[l] + position * strides_[l];
}

Mesh::Part Mesh::part(std::uint64_t bucketElements, Level level) const {
  Part part{0, bucketElements};
  for (std::size_t l = 0; l <= static_cast<std::size_t>(level) && l < 3; ++l) {
    part.elements /= sizes_[l];
    part.offset += positions_[l] * part.elements;
  }
  return part;
}

// Each once.
std::vector<comm::Communicator*> Mesh::communicators() const {
  std::vector<comm::Communicator*> all;
  if (world_) all.push_back(world_.get());
  if (gatherers_) all.push_back(gatherers_.get());
  for (const auto& group : groups_)
    if (group && group != world_) all.push_back(group.get());
  return all;
}

std::uint64_t Mesh::movedBytes() const {
  std::uint64_t bytes = 0;
  for (const comm::Communicator* const c : communicators()) bytes += c->movedBytes();
  return bytes;
}

void Mesh::abort() {
  for (comm::Communicator* const c : communicators()) (void)c->abort();
}

// A lost link would be recovered from at the next call, which never comes.
void Mesh::fail(const Status& cause) {
  const Code code = cause.code() == Code::LinkLost ? Code::RemoteError : cause.code();
  for (comm::Communicator* const c : communicators())
    (void)c->fail(Status::error(code, std::string(cause.text())));
}

}  // namespace weft::shard
