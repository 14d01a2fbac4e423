// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/messages.h"

namespace weft {

// A rank that has proved to hold the secret. A rank of another version has no card: what comes
// after the handshake may look different there.
struct Member {
  Hello hello;
  RankCard card;
};

// What these members disagree about, as the one error that all of them get; OK if nothing. In the
// order of what makes the rest meaningless: versions, world size, rank range, duplicates,
// configuration. Pure: the same members in any order give the same text.
Status findConflict(std::vector<Member> members);

// "3" or "0-2,4". Sorts its argument.
std::string compactList(std::vector<int> ranks);

}  // namespace weft
