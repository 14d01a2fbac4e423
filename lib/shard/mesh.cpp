// SPDX-License-Identifier: Apache-2.0
#include "shard/mesh.h"

#include "base/invalid.h"
#include "base/text.h"
#include "comm/create.h"

namespace weft::shard {

Status Mesh::make(comm::Communicator& parent, comm::Communicator* parts, const Degrees& degrees,
                  Mesh* out) {
  WEFT_TRY(checkDegrees(degrees, parent.ranks()));
  Mesh mesh;
  mesh.degrees_ = degrees;
  mesh.rank_ = parent.rank();
  mesh.levels_ = Levels(degrees, parent.ranks());
  WEFT_TRY(mesh.split(parent));
  if (parts != nullptr) WEFT_TRY(mesh.joinParts(*parts, parent.name()));
  *out = std::move(mesh);
  return {};
}

// Every rank takes part in every split, whether it is in a group or not.
Status Mesh::split(comm::Communicator& parent) {
  // Of those who call together none comes here.
  if (parent.callers() == nullptr) crew_ = parent.core()->parts.crew;
  if (ranks() == 1) return {};
  comm::CommConfig config = parent.config();
  config.beCalledByOne();
  const auto named = [&](const char* what) {
    config.name = text(parent.name(), ".", what);
    return config;
  };
  WEFT_TRY(comm::splitCommunicator(parent, 0, static_cast<int>(rank_), named("shard"), &world_));
  constexpr const char* kNames[kLevels] = {"params", "gradients", "state", "replicas"};
  const auto splitAt = [&](Level level, const char* name, auto* group) {
    return comm::splitCommunicator(parent, static_cast<int>(rankOf(level, 0)),
                                   static_cast<int>(position(level)), named(name), group);
  };
  for (const Level level : kAllLevels) {
    const auto l = static_cast<std::size_t>(level);
    if (size(level) == ranks())
      groups_[l] = world_;
    else if (size(level) > 1)
      WEFT_TRY(splitAt(level, kNames[l], &groups_[l]));
  }
  return size(Level::Param) == 1 ? Status() : splitAt(Level::Param, "gather", &gatherers_);
}

Status Mesh::joinParts(comm::Communicator& parts, const std::string& name) {
  comm::CommConfig config = parts.config();
  config.beCalledByOne();
  config.name = text(name, ".parts");
  return comm::splitCommunicator(parts, 0, static_cast<int>(parts.rank()), config, &parts_);
}

// Each once.
std::vector<comm::Communicator*> Mesh::communicators() const {
  std::vector<comm::Communicator*> all;
  if (world_) all.push_back(world_.get());
  if (gatherers_) all.push_back(gatherers_.get());
  if (parts_) all.push_back(parts_.get());
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
