// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/messages.h"
#include "control/page_report.h"

namespace weft::control {

// What a rank and the server say to each other, after the handshake and Info:
//
//   server -> rank  Roster   you are seated
//   rank -> server  Query    what do the others do?          (empty, in both directions)
//   server -> rank  Query    what do you do?
//   rank -> server  Report   PageReport
//   server -> rank  Report   News: the answer to the rank's Query, of all whom the server knows
//   rank -> server  Failed   a cause: make it the first error    (messages.h encodes both)
//   server -> rank  Error    the first cause, or another that takes the place of a lost link
//   server -> rank  Ended    Ending: that rank is gone without a good-bye
//   rank -> server  Gather   bytes for all others
//   server -> rank  Gathered Part: what that rank gave, in its order
//   both            Bye      I leave

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
  Status why;
};

struct Part {
  std::uint32_t rank = 0;
  bool last = false;  // it has left and gives nothing more
  net::Bytes bytes;
};

inline std::size_t maxNewsBytes(std::size_t ranks) {
  return 4 + ranks * (8 + PageReport::kMaxBytes);
}

net::Bytes encode(const PageReport& page);
bool decode(net::ByteView bytes, PageReport* page);

// Ranks are < `ranks` in what is decoded.
net::Bytes encode(const News& news);
bool decode(net::ByteView bytes, std::size_t ranks, News* news);

net::Bytes encode(const Ending& ending);
bool decode(net::ByteView bytes, std::size_t ranks, Ending* ending);

net::Bytes encode(const Part& part);
bool decode(net::ByteView bytes, std::size_t ranks, Part* part);

}  // namespace weft::control
