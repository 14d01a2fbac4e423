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
  control::LinkOffer links;
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

// What a rank's blob in a round begins with: where it is. At last it has what it can have, which may be
// nothing, or its color joins by an id.
enum class Stage : std::uint8_t { Branching, Through, WantsId };

bool isAt(Stage stage, const std::vector<std::byte>& blob) {
  return !blob.empty() && blob[0] == static_cast<std::byte>(stage);
}

// One rank's part in a split: rounds of the parent, in which each color does what it needs. All
// ranks of the parent take part in all of them: who is through tells what became of it in each, until all
// are; and if any color wants an id, there is one more.
class Split {
 public:
  Split(Communicator& parent, int color, int key, const CommConfig& config)
      : parent_(parent),
        core_(parent.core()),
        deadline_(Deadline::in(parent.config().initTimeoutMs)),
        color_(color),
        key_(key),
        config_(config),
        link_(core_->parts.remoteRanks.get()),
        rounds_(parent, deadline_) {}

  Status run(std::shared_ptr<Communicator>* out);

 private:
  Status hearWishes();
  Status branch();
  Status agree(const Status& branched, bootstrap::UniqueId* id);
  Status shareId(bootstrap::UniqueId* id);
  Status join(const bootstrap::UniqueId& id, std::shared_ptr<Communicator>* out) const;
  bool isLikeParent() const;
  bool mayBranch() const;
  void keepMembers(Stage stage, std::vector<std::vector<std::byte>> everybody,
                   std::vector<std::vector<std::byte>>* all) const;
  Status round(Stage stage, std::span<const std::byte> mine,
               std::vector<std::vector<std::byte>>* all, bool* isLast);
  transport::Exchange exchange(Stage stage);

  Communicator& parent_;
  const std::shared_ptr<Core> core_;
  const Deadline deadline_;
  const int color_, key_;
  const CommConfig& config_;
  control::LinkBranch link_;
  Rounds rounds_;
  std::vector<Wish> wishes_;
  std::vector<std::uint32_t> members_;
  std::uint32_t rank_ = 0;  // in the new one
  std::shared_ptr<Communicator> made_;
  bool idsFollow_ = false;
};

bool Split::isLikeParent() const {
  return config_.transport == parent_.config().transport && core_->parts.selection.lost.empty();
}

Status Split::hearWishes() {
  const std::uint64_t wants = Hash().add(semanticConfig(config_)).add(config_.epochsBefore).value();
  const Wish mine{color_, key_, wants, isLikeParent(), link_.offer(), topology::allowedCores()};
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

// Of the members of this rank's color. Of one that is through, while this one is not, nothing is left
// but what it will tell.
void Split::keepMembers(Stage stage, std::vector<std::vector<std::byte>> everybody,
                        std::vector<std::vector<std::byte>>* all) const {
  all->clear();
  for (const std::uint32_t member : members_) {
    std::vector<std::byte>& theirs = everybody[member];
    const bool fits = isAt(Stage::Branching, theirs) == (stage == Stage::Branching);
    theirs.erase(theirs.begin(), fits && !theirs.empty() ? theirs.begin() + 1 : theirs.end());
    all->push_back(std::move(theirs));
  }
}

// Who has no memory for it would be a round behind the others.
Status Split::round(Stage stage, std::span<const std::byte> mine,
                    std::vector<std::vector<std::byte>>* all, bool* isLast) try {
  std::vector<std::byte> said{static_cast<std::byte>(stage)};
  said.insert(said.end(), mine.begin(), mine.end());
  std::vector<std::vector<std::byte>> everybody;
  WEFT_TRY(rounds_.exchange(said, &everybody));
  const auto count = [&](Stage at) {
    return std::ranges::count_if(everybody, [at](const auto& blob) { return isAt(at, blob); });
  };
  *isLast = count(Stage::Branching) == 0;
  idsFollow_ = count(Stage::WantsId) != 0;
  keepMembers(stage, std::move(everybody), all);
  return {};
} catch (...) {
  return parent_.fail(statusOfException());
}

transport::Exchange Split::exchange(Stage stage) {
  return [this, stage](std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) {
    if (all == nullptr) return parent_.firstError();
    for (bool isLast = false; !isLast;) {
      WEFT_TRY(round(stage, mine, all, &isLast));
      if (stage == Stage::Branching) break;
    }
    return Status();
  };
}

Status Split::branch() {
  Parent parent{core_->parts, members_, {}, link_};
  std::vector<control::LinkOffer> offers;
  for (const std::uint32_t member : members_) {
    parent.cores.push_back(wishes_[member].cores);
    offers.push_back(wishes_[member].links);
  }
  return withoutExceptions([&] {
    link_.choose(rank_, members_, offers);
    return branchCommunicator(parent, rank_, exchange(Stage::Branching), config_, deadline_,
                              &made_);
  });
}

// What became of it, for all of this color: nobody has a communicator whose other ranks failed.
Status Split::agree(const Status& branched, bootstrap::UniqueId* id) {
  const bool wantsId = color_ >= 0 && branched.ok() && !made_;
  Status told = branched;
  if (wantsId && rank_ == 0) told = bootstrap::createUniqueId(id);
  transport::TransportSetup setup;
  setup.rank = rank_;
  setup.ranks = static_cast<std::uint32_t>(members_.size());
  setup.exchange = exchange(wantsId ? Stage::WantsId : Stage::Through);
  const Status agreed = transport::agree(setup, told);
  if (idsFollow_) WEFT_TRY(shareId(id));
  return agreed;
}

// Every color's.
Status Split::shareId(bootstrap::UniqueId* id) {
  std::vector<bootstrap::UniqueId> ids;
  WEFT_TRY(rounds_.gather(*id, &ids));
  if (color_ >= 0) *id = ids[members_[0]];
  return {};
}

Status Split::join(const bootstrap::UniqueId& id, std::shared_ptr<Communicator>* out) const {
  return joinCommunicator(id, static_cast<int>(members_.size()), static_cast<int>(rank_), config_,
                          deadline_.orSooner(Deadline::in(config_.initTimeoutMs)), out);
}

Status Split::run(std::shared_ptr<Communicator>* out) {
  WEFT_TRY(hearWishes());
  const Status branched = mayBranch() ? branch() : Status();
  bootstrap::UniqueId id;
  WEFT_TRY(agree(branched, &id));
  if (color_ < 0) return {};
  if (!made_) return join(id, out);
  *out = std::move(made_);
  return {};
}

}  // namespace

Status splitCommunicator(Communicator& parent, int color, int key, const CommConfig& config,
                         std::shared_ptr<Communicator>* out) {
  return Split(parent, color, key, config).run(out);
}

}  // namespace weft::comm
