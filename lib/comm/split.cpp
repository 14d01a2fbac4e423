// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "bootstrap/bootstrap.h"
#include "comm/agree.h"
#include "comm/create.h"

namespace weft::comm {
namespace {

struct Wish {
  std::int32_t color = 0;
  std::int32_t key = 0;
};

// The parent's ranks of this rank's color, in the order of the new communicator.
std::vector<std::uint32_t> group(const std::vector<Wish>& wishes, int color) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t r = 0; r < wishes.size(); ++r)
    if (wishes[r].color == color) members.push_back(r);
  std::ranges::stable_sort(members, {}, [&](std::uint32_t r) { return wishes[r].key; });
  return members;
}

}  // namespace

// The first rank of each color makes an id; the parent carries it to the others.
Status splitCommunicator(Communicator& parent, int color, int key, const CommConfig& config,
                         std::shared_ptr<Communicator>* out) {
  const Deadline deadline = Deadline::in(parent.config().initTimeoutMs);
  std::vector<Wish> wishes;
  WEFT_TRY(gatherRecords(&parent, Wish{color, key}, &wishes, deadline.pollTimeoutMs(), "split"));
  const std::vector<std::uint32_t> members = group(wishes, color);
  bootstrap::UniqueId mine;
  Status made;
  if (color >= 0 && members[0] == parent.rank()) made = bootstrap::createUniqueId(&mine);
  WEFT_TRY(agreeOn(&parent, made, deadline.pollTimeoutMs(), "split"));
  std::vector<bootstrap::UniqueId> ids;
  WEFT_TRY(gatherRecords(&parent, mine, &ids, deadline.pollTimeoutMs(), "split"));
  if (color < 0) return {};
  const auto me = std::ranges::find(members, parent.rank());
  return joinCommunicator(ids[members[0]], static_cast<int>(members.size()),
                          static_cast<int>(me - members.begin()), config,
                          deadline.orSooner(Deadline::in(config.initTimeoutMs)), out);
}

}  // namespace weft::comm
