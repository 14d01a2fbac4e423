// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bootstrap/messages.h"
#include "control/page_report.h"
#include "control/rank_set.h"

namespace weft::control {

// What a rank and the server say to each other, after the handshake and Info:
//
//   server -> rank  Roster   you are seated
//   rank -> server  Query    PageReport: this I do; what do the others do?
//   server -> rank  Query    what do you do?    (empty; with a byte: and which calls were the last?)
//   rank -> server  Report   PageReport
//   server -> rank  Report   News: the answer to the rank's Query, of all ranks; of some, unasked
//   rank -> server  Failed   a cause: make it the first error    (messages.h encodes both)
//   server -> rank  Error    the first cause, or another that takes the place of a lost link
//   server -> rank  Ended    Ending: those ranks are gone without a good-bye
//   rank -> server  Gather   bytes for all others
//   server -> rank  Gathered Part: what that rank gave, in its order
//   both            Bye      I leave
//
// A round of questions is at most a question and an answer each way: 200 bytes a rank where all do
// the same, of which 112 are frames. Ranks that do something else, or are late, add to each answer
// some 15 bytes a group of them, 2 to 4 a range of ranks, and at most a bit a rank; groups that have
// called different things, 64 bytes, once before it is an error.

struct News {
  // Ranks that do the same.
  struct Group {
    bool inCall = false, left = false;
    PageReport::Call last;  // number 0: none yet
    // Its words are told. Whoever has made it knows them already: same fingerprint, same calls.
    bool described = false;
    std::optional<PageReport::Call> parting;  // the first call that not all have made alike
    RankSet ranks;
  };
  struct Silence {
    std::uint32_t ms = 0;  // they have owed an answer for so long
    RankSet ranks;
  };
  // Of all ranks: those of the first group travel as all whom no other names.
  bool whole = false;
  // Calls that tell whether all agree are still to come.
  bool settled = true;
  std::vector<Group> groups;  // each rank once
  std::vector<Silence> silences;
};

struct Ending {
  RankSet ranks;
  Status why;  // OK: their connections closed
};

struct Part {
  std::uint32_t rank = 0;
  bool last = false;  // it has left and gives nothing more
  net::Bytes bytes;
};

// A group and a silence for each rank.
inline std::size_t maxNewsBytes(std::size_t ranks) { return 16 + ranks * 128; }

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
