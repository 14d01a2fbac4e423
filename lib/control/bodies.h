// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/messages.h"
#include "control/page_report.h"

namespace weft {

// What a rank and the hub say to each other, after the handshake and the card:
//
//   hub -> rank    Roster   you are seated
//   rank -> hub    Query    what do the others do?          (empty, in both directions)
//   hub -> rank    Query    what do you do?
//   rank -> hub    Report   PageReport
//   hub -> rank    Report   News: the answer to the rank's Query, of all whom the hub knows
//   rank -> hub    Failed   a cause: make it the verdict    (messages.h encodes both)
//   hub -> rank    Verdict  the first cause, or another that takes the place of a lost link
//   hub -> rank    Ended    Ending: that rank is gone without a good-bye
//   rank -> hub    Gather   bytes for all others
//   hub -> rank    Gathered Part: what that rank gave, in its order
//   both           Bye      I leave

struct News {
  struct Entry {
    std::uint32_t rank = 0;
    std::uint32_t silenceMs = 0;  // it has owed an answer for so long
    PageReport page;
  };
  std::vector<Entry> entries;
};

struct Ending {
  std::uint32_t rank = 0;
  std::string why;
};

struct Part {
  std::uint32_t rank = 0;
  bool last = false;  // it has left and gives nothing more
  Bytes bytes;
};

inline std::size_t maxNewsBytes(std::size_t ranks) {
  return 4 + ranks * (8 + PageReport::kMaxBytes);
}

Bytes encode(const PageReport& page);
bool decode(ByteView bytes, PageReport* page);

// Ranks are < `ranks` in what is decoded.
Bytes encode(const News& news);
bool decode(ByteView bytes, std::size_t ranks, News* news);

Bytes encode(const Ending& ending);
bool decode(ByteView bytes, std::size_t ranks, Ending* ending);

Bytes encode(const Part& part);
bool decode(ByteView bytes, std::size_t ranks, Part* part);

}  // namespace weft
