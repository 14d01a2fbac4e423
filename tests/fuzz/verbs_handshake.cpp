// SPDX-License-Identifier: Apache-2.0
// Datagrams between ports, and the ends of edges that are fed with what they say.
#include "transports/verbs/handshake.h"

#include <cstring>
#include <vector>

#include "fuzz.h"

namespace weft::fuzz {
namespace {

using verbs::Datagram;
using verbs::Endpoint;
using verbs::Word;

constexpr verbs::PortId kAt{1, 0};
constexpr std::uint64_t kSecret = 0x77666d31;
constexpr std::uint32_t kEdges = 3;

struct Ends : verbs::Handshakes::Ends {
  verbs::Handshakes handshakes{*this, 1000};
  struct End {
    int made = 0, joins = 0, readies = 0, failures = 0;
  } ends[kEdges];
  bool fails = false;

  Status make(std::uint32_t edge, Endpoint* mine) override {
    ++ends[edge].made;
    *mine = {20 + edge, 3};
    return fails ? Status::error(Code::SystemError, "no more") : Status();
  }
  Status join(std::uint32_t edge, const Endpoint& theirs) override {
    require(theirs.known() && theirs.number <= 0xffffff, "a queue pair joins one that can be");
    require(ends[edge].made == 1, "what is joined was made");
    ++ends[edge].joins;
    return {};
  }
  void say(std::uint32_t edge, const Word& word) override {
    require(word.kind == Word::Refusal || ends[edge].made == 1, "what is offered was made");
  }
  void ready(std::uint32_t edge) override { ++ends[edge].readies; }
  void fail(std::uint32_t edge, const std::string& why) override {
    require(!why.empty(), "a failure says why");
    ++ends[edge].failures;
    handshakes.end(edge);
  }
};

void tryWords(FuzzedDataProvider& from) {
  Ends all;
  verbs::Handshakes::Time now{};
  while (from.remaining_bytes() != 0) {
    const auto edge = from.ConsumeIntegralInRange<std::uint32_t>(0, kEdges - 1);
    const auto endpoint = [&] {
      return Endpoint{from.ConsumeIntegralInRange<std::uint32_t>(0, 24),
                      from.ConsumeIntegralInRange<std::uint32_t>(2, 4)};
    };
    switch (from.ConsumeIntegralInRange(0, 4)) {
      case 0:
        all.handshakes.want(edge, now);
        break;
      case 1:
        all.fails = from.ConsumeBool();
        break;
      case 2:
        now += std::chrono::milliseconds(from.ConsumeIntegralInRange(0, 600));
        all.handshakes.tick(now);
        break;
      default: {
        Datagram datagram{.from = {0, edge}, .to = kAt, .secret = kSecret};
        datagram.word = {from.ConsumeBool() ? Word::Offer : Word::Refusal, endpoint(), endpoint(),
                         from.ConsumeBool()};
        Datagram read;
        const auto bytes = std::as_bytes(std::span(&datagram, 1));
        if (verbs::readDatagram(bytes, kAt, kSecret, &read)) all.handshakes.take(edge, read.word);
      }
    }
  }
  for (const Ends::End& end : all.ends) {
    require(end.made <= 1 && end.joins <= 1 && end.readies <= 1 && end.failures <= 1,
            "an end is made, joined, ready and given up once at most");
    require(end.readies <= end.joins, "an end that is ready was joined");
  }
}

}  // namespace

void tryInput(Input input) {
  Datagram read;
  if (verbs::readDatagram(bytesOf(input), kAt, kSecret, &read))
    require(read.to == kAt && read.secret == kSecret, "a datagram that is taken is for that port");
  FuzzedDataProvider from(input.data(), input.size());
  tryWords(from);
}

}  // namespace weft::fuzz
