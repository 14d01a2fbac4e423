// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/text.h"
#include "base/threads.h"
#include "bootstrap/bootstrap.h"
#include "comm/create.h"
#include "comm/open_transport.h"
#include "comm/rounds.h"
#include "topology/cores.h"
#include "transports/gather.h"

namespace weft::comm {
namespace {

struct Wish {
  std::int32_t color = 0;
  std::int32_t key = 0;
  // Ranks of a color that want the same, and what the parent has, may have a part of the parent.
  std::uint64_t config = 0;
  std::uint64_t likeParent = 0;
  cpu_set_t cores;
};

// The parent's ranks of this rank's color, in the order of the new communicator.
std::vector<std::uint32_t> group(const std::vector<Wish>& wishes, int color) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t r = 0; r < wishes.size(); ++r)
    if (wishes[r].color == color) members.push_back(r);
  std::ranges::stable_sort(members, {}, [&](std::uint32_t r) { return wishes[r].key; });
  return members;
}

// How a rank of the new communicator comes to it: it has it, or all join by the first one's id.
struct Way {
  std::uint64_t byId = 0;
  bootstrap::UniqueId id;
};

// One rank's part in a split: rounds of the parent, in which each color does what it needs. All
// ranks of the parent take part in all of them, so there are equally many whatever the colors do.
class Split {
 public:
  Split(Communicator& parent, int color, int key, const CommConfig& config)
      : parent_(parent),
        core_(parent.core()),
        deadline_(Deadline::in(parent.config().initTimeoutMs)),
        color_(color),
        key_(key),
        config_(config),
        rounds_(parent, deadline_) {}

  Status run(std::shared_ptr<Communicator>* out);

 private:
  Status hearWishes();
  Status branch();
  Status tellWay(const Status& branched, std::vector<Way>* ways);
  Status join(const bootstrap::UniqueId& id, std::shared_ptr<Communicator>* out) const;
  bool isLikeParent() const;
  bool mayBranch() const;
  transport::Exchange exchange();

  Communicator& parent_;
  const std::shared_ptr<Core> core_;
  const Deadline deadline_;
  const int color_, key_;
  const CommConfig& config_;
  Rounds rounds_;
  std::vector<Wish> wishes_;
  std::vector<std::uint32_t> members_;
  std::uint32_t rank_ = 0;  // in the new one
  std::shared_ptr<Communicator> made_;
};

bool Split::isLikeParent() const {
  return config_.transport == parent_.config().transport && core_->parts.selection.lost.empty();
}

Status Split::hearWishes() {
  const std::uint64_t wants = Hash().add(semanticConfig(config_)).add(config_.epochsBefore).value();
  const Wish mine{color_, key_, wants, isLikeParent(), topology::allowedCores()};
  WEFT_TRY(rounds_.gather(mine, &wishes_));
  if (color_ < 0) return {};
  members_ = group(wishes_, color_);
  rank_ =
      static_cast<std::uint32_t>(std::ranges::find(members_, parent_.rank()) - members_.begin());
  return {};
}

// The same on all ranks of the color.
bool Split::mayBranch() const {
  if (color_ < 0) return false;
  const Wish& first = wishes_[members_[0]];
  return std::ranges::all_of(members_, [&](std::uint32_t r) {
    return wishes_[r].likeParent != 0 && wishes_[r].config == first.config;
  });
}

// The rounds among the members of this rank's color.
transport::Exchange Split::exchange() {
  return [this](std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) {
    if (all == nullptr) return parent_.firstError();
    std::vector<std::vector<std::byte>> everybody;
    WEFT_TRY(rounds_.exchange(mine, &everybody));
    all->clear();
    for (const std::uint32_t member : members_) all->push_back(std::move(everybody[member]));
    return Status();
  };
}

Status Split::branch() {
  Parent parent{core_->parts, members_, {}};
  for (const std::uint32_t member : members_) parent.cores.push_back(wishes_[member].cores);
  return withoutExceptions(
      [&] { return branchCommunicator(parent, rank_, exchange(), config_, deadline_, &made_); });
}

// What became of it, for all of this color: nobody has a communicator whose other ranks failed.
Status Split::tellWay(const Status& branched, std::vector<Way>* ways) {
  if (color_ < 0) return rounds_.upTo(rounds_.count() + 1);
  Way mine{!made_, {}};
  Status told = branched;
  if (told.ok() && !made_ && rank_ == 0) told = bootstrap::createUniqueId(&mine.id);
  transport::TransportSetup setup;
  setup.rank = rank_;
  setup.ranks = static_cast<std::uint32_t>(members_.size());
  setup.exchange = exchange();
  return transport::gather(setup, told, mine, ways);
}

Status Split::join(const bootstrap::UniqueId& id, std::shared_ptr<Communicator>* out) const {
  return joinCommunicator(id, static_cast<int>(members_.size()), static_cast<int>(rank_), config_,
                          deadline_.orSooner(Deadline::in(config_.initTimeoutMs)), out);
}

Status Split::run(std::shared_ptr<Communicator>* out) {
  WEFT_TRY(hearWishes());
  const int before = rounds_.count();
  const Status branched = mayBranch() ? branch() : Status();
  WEFT_TRY(rounds_.upTo(before + branchRounds(core_->parts)));
  std::vector<Way> ways;
  WEFT_TRY(tellWay(branched, &ways));
  if (color_ < 0) return {};
  if (ways[0].byId != 0) return join(ways[0].id, out);
  *out = std::move(made_);
  return {};
}

}  // namespace

Status splitCommunicator(Communicator& parent, int color, int key, const CommConfig& config,
                         std::shared_ptr<Communicator>* out) {
  return Split(parent, color, key, config).run(out);
}

}  // namespace weft::comm
