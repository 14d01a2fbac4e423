// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/status.h"
#include "bootstrap/messages.h"

namespace weft::bootstrap {

// A rank that has proved to hold the secret. Of one of another version only the rank is known of
// its Info: what comes after the handshake may look different there.
struct Member {
  Hello hello;
  InfoMessage info;
  std::int32_t hub = -1;  // the rank in whose process the hub is that connects it, if one does
};

// What these members disagree about, as the one error that all of them get; OK if nothing. In the
// order of what makes the rest meaningless: versions, world size, rank range, duplicates,
// configuration. Pure: the same members in any order give the same text.
Status findConflict(std::vector<Member> members);

}  // namespace weft::bootstrap
