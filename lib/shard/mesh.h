// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "shard/levels.h"

namespace weft::shard {

// The levels as groups of communicators.
class Mesh {
 public:
  // Collective over `parent`, in turn with its other calls, and over `parts`, which joins the ranks
  // of equal number of the meshes with the other parts of the model; null: there are none. The
  // mesh's communicators are its own.
  static Status make(comm::Communicator& parent, comm::Communicator* parts, const Degrees& degrees,
                     Mesh* out);

  const Degrees& degrees() const { return degrees_; }
  std::uint32_t rank() const { return rank_; }
  const Levels& levels() const { return levels_; }
  std::uint32_t ranks() const { return levels_.ranks(); }
  std::uint32_t size(Level level) const { return levels_.size(level); }
  std::uint32_t position(Level level) const { return levels_.positionOf(rank_, level); }
  // The rank in the whole mesh of member `position` of this rank's group.
  std::uint32_t rankOf(Level level, std::uint32_t position) const {
    return levels_.rankOf(rank_, level, position);
  }

  // Null for groups of one. Used by one thread at a time, like world().
  comm::Communicator* group(Level level) const {
    return groups_[static_cast<std::size_t>(level)].get();
  }
  comm::Communicator* world() const { return world_.get(); }
  // The ranks of equal number of all parts of the model; null if this mesh has all of it.
  comm::Communicator* parts() const { return parts_.get(); }
  // The Param group once more, for gathers that run beside the reductions; null for one.
  comm::Communicator* gatherers() const { return gatherers_.get(); }
  // The rank's threads: those of its communicators.
  const engine::Crew& crew() const { return crew_; }
  void abort();
  // Ends what any rank does in any group: whoever is in another one than the cause hears of it,
  // too.
  void fail(const Status& cause);
  // The payload that all communicators of the mesh have moved.
  std::uint64_t movedBytes() const;

  // What is left to this rank of a bucket of so many elements after the reduction at `level`.
  using Part = Levels::Part;
  Part part(std::uint64_t bucketElements, Level level) const {
    return levels_.partOf(rank_, bucketElements, level);
  }

 private:
  Status split(comm::Communicator& parent);
  Status joinParts(comm::Communicator& parts, const std::string& name);
  std::vector<comm::Communicator*> communicators() const;

  Degrees degrees_;
  Levels levels_;
  std::uint32_t rank_ = 0;
  std::array<std::shared_ptr<comm::Communicator>, kLevels> groups_;
  std::shared_ptr<comm::Communicator> world_, gatherers_, parts_;
  engine::Crew crew_;
};

}  // namespace weft::shard
