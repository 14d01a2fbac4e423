// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bootstrap/messages.h"
#include "control/loss.h"
#include "control/page_report.h"
#include "control/rank_set.h"
#include "net/channel.h"

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
//   both            Bye      I leave    (the server's, with a Loss: it is gone)
//
// A rank may have a relay between it and the server, one for all ranks of its host (relay.h), and
// says and hears the same. Between the two, each message is in one of type Relayed, with the ranks
// that say or get it, and there are three more:
//
//   relay -> server Info     these have come to me
//   relay -> server Ended    Loss: they have gone without a good-bye
//   relay -> server Bye      by itself: all have gone; closes once it is read
//   relay -> rank   Roster   unasked: I have passed on what you said, which tells that I am alive
//
// Communicators that were split off speak over the link of the first (groups.h), each message in one
// of type Grouped. There are two more, of which the first says nothing of the others:
//
//   both            Bye      I leave this one; the server's: I have heard that
//   rank -> server  Info     I heard of this one before I had it; what have I missed?
//
// A round of questions is at most a question and an answer each way: 200 bytes a connection where
// all behind it do the same, of which 112 are frames. Ranks that do something else, or are late, add to each answer
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

// The longest message from the server: news with a group and a silence for each rank, or a part;
// for a relay the ranks that it is for, and which group.
inline std::size_t maxMessageBytes(std::size_t ranks) {
  return 40 + ranks * 129 + net::Channel::kMaxFrameAfter;
}

// What a relay calls itself, in place of a configuration, in the Info of its handshake.
inline constexpr const char* kRelay = "relay";

net::Bytes encodeRelayed(const RankSet& ranks, net::MessageType type, const net::Bytes& body);
bool decodeRelayed(net::ByteView bytes, std::size_t ranks, RankSet* set, net::Message* message);

net::Bytes encode(const Loss& loss);
bool decode(net::ByteView bytes, Loss* loss);

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
