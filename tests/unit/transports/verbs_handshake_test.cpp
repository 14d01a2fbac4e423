// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace weft::verbs {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kEdge = 5;
constexpr int kPatienceMs = 1000;

// Both ends of an edge, a network that loses, doubles and delays what they say, and a clock.
class Pair {
 public:
  struct End : Handshakes::Ends {
    End(Pair& in, std::uint32_t self) : pair(in), id(self), handshakes(*this, kPatienceMs) {}

    Status make(std::uint32_t edge, Endpoint* mine) override {
      EXPECT_EQ(edge, kEdge);
      ++made;
      if (!makeFails.empty()) return Status::error(Code::SystemError, makeFails);
      *mine = endpoint();
      return {};
    }
    Status join(std::uint32_t, const Endpoint& theirs) override {
      ++joins;
      if (!joinFails.empty()) return Status::error(Code::SystemError, joinFails);
      joined = theirs;
      return {};
    }
    void say(std::uint32_t, const Word& word) override { pair.send(1 - id, word); }
    // Only then do its writes find somebody.
    void ready(std::uint32_t) override {
      ++readies;
      EXPECT_EQ(pair.ends[1 - id].joined, endpoint());
    }
    void fail(std::uint32_t edge, const std::string& why) override {
      failures.push_back(why);
      handshakes.end(edge);
    }
    Endpoint endpoint() const { return {100 + id, 7 + id}; }

    Pair& pair;
    const std::uint32_t id;
    Handshakes handshakes;
    int made = 0, joins = 0, readies = 0;
    Endpoint joined;
    std::string makeFails, joinFails;
    std::vector<std::string> failures;
  };

  explicit Pair(std::uint32_t seed = 1, double loss = 0) : random_(seed), loss_(loss) {}

  void send(std::uint32_t to, const Word& word) {
    ++said;
    const auto copies = [&] { return chance(loss_) ? 0 : chance(loss_) ? 2 : 1; };
    for (int i = copies(); i > 0; --i)
      post_.push_back({to, word, now + milliseconds(loss_ > 0 ? random_() % 40 : 1)});
  }
  // Delivers and ticks until `ms` have passed.
  void run(int ms) {
    for (const auto end = now + milliseconds(ms); now < end; now += milliseconds(1)) {
      for (End& one : ends) one.handshakes.tick(now);
      const auto due = std::ranges::stable_partition(
          post_, [&](const Letter& letter) { return letter.at > now; });
      const std::vector<Letter> arrived(due.begin(), due.end());
      post_.erase(due.begin(), due.end());
      for (const Letter& letter : arrived) ends[letter.to].handshakes.take(kEdge, letter.word);
    }
  }
  void want(std::uint32_t who) { ends[who].handshakes.want(kEdge, now); }
  void lose(double share) { loss_ = share; }

  Handshakes::Time now{};
  std::array<End, 2> ends{End(*this, 0), End(*this, 1)};
  int said = 0;

 private:
  struct Letter {
    std::uint32_t to;
    Word word;
    Handshakes::Time at;
  };
  bool chance(double share) { return std::uniform_real_distribution<>()(random_) < share; }

  std::mt19937 random_;
  double loss_;
  std::vector<Letter> post_;
};

void expectConnected(Pair& pair) {
  for (const auto& end : pair.ends) {
    EXPECT_EQ(end.made, 1);
    EXPECT_EQ(end.joins, 1);
    EXPECT_EQ(end.readies, 1);
    EXPECT_EQ(end.joined, pair.ends[1 - end.id].endpoint());
    EXPECT_TRUE(end.failures.empty());
    EXPECT_FALSE(end.handshakes.isPending());
    EXPECT_TRUE(end.handshakes.isJoined(kEdge));
  }
}

TEST(VerbsHandshake, OneEndBegins) {
  Pair pair;
  EXPECT_FALSE(pair.ends[0].handshakes.isJoined(kEdge));
  pair.want(0);
  EXPECT_TRUE(pair.ends[0].handshakes.isPending());
  pair.run(10);
  expectConnected(pair);
  EXPECT_EQ(pair.said, 3);
  pair.want(0);
  pair.want(1);
  pair.run(1000);
  expectConnected(pair);
  EXPECT_EQ(pair.said, 3);
}

TEST(VerbsHandshake, BothEndsBegin) {
  Pair pair;
  pair.want(0);
  pair.want(1);
  pair.run(10);
  expectConnected(pair);
}

TEST(VerbsHandshake, WordsAreLostDoubledAndLate) {
  for (std::uint32_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Pair pair(seed, 0.2);
    pair.want(seed % 2);
    if (seed % 3 == 0) pair.run(static_cast<int>(seed % 60));
    if (seed % 3 != 1) pair.want(1 - seed % 2);
    pair.run(kPatienceMs - 100);
    EXPECT_EQ(pair.ends[seed % 2].readies, 1);
    pair.want(1 - seed % 2);
    pair.run(kPatienceMs - 100);
    expectConnected(pair);
  }
}

// The last word of the end that began is lost. The other one learns it all the same when it wants to
// write, or from the first bytes.
TEST(VerbsHandshake, AnEndThatOnlyAnsweredIsReadyLater) {
  for (const bool bytes : {false, true}) {
    Pair pair;
    pair.want(0);
    pair.run(1);  // the offer is on its way
    while (pair.ends[1].joins == 0) pair.run(1);
    pair.lose(1);
    pair.run(10);
    EXPECT_EQ(pair.ends[0].readies, 1);
    EXPECT_EQ(pair.ends[1].readies, 0);
    pair.lose(0);
    if (bytes) {
      pair.ends[1].handshakes.heard(kEdge);
      EXPECT_EQ(pair.ends[1].readies, 1);
    }
    pair.want(1);
    pair.run(10);
    expectConnected(pair);
  }
}

TEST(VerbsHandshake, WhoGetsNoAnswerGivesUpInTime) {
  Pair pair(1, 1);
  pair.want(0);
  pair.run(kPatienceMs - 1);
  EXPECT_TRUE(pair.ends[0].failures.empty());
  pair.run(600);  // the longest pause
  ASSERT_EQ(pair.ends[0].failures.size(), 1u);
  EXPECT_EQ(pair.ends[0].failures[0], "no answer to its connection within 1000 ms");
  EXPECT_FALSE(pair.ends[0].handshakes.isPending());
  EXPECT_LE(pair.said, 8);  // less and less often
  pair.want(0);
  EXPECT_EQ(pair.ends[0].made, 1);
}

// A link that was cut, or whose end cannot be made, is told to who offers.
TEST(VerbsHandshake, AnEndThatIsNoneRefuses) {
  const std::array<void (*)(Pair::End&), 3> causes{
      [](Pair::End& end) { end.handshakes.end(kEdge); },
      [](Pair::End& end) { end.makeFails = "no more"; },
      [](Pair::End& end) { end.joinFails = "no way"; }};
  for (const auto& cause : causes) {
    Pair pair;
    cause(pair.ends[1]);
    pair.want(0);
    pair.run(10);
    ASSERT_EQ(pair.ends[0].failures.size(), 1u);
    EXPECT_EQ(pair.ends[0].failures[0], "its end refuses to be connected, and says why");
    EXPECT_EQ(pair.ends[0].readies + pair.ends[1].readies, 0);
    const auto& said = pair.ends[1].failures;
    EXPECT_TRUE(said.empty() || said[0] == "no more" || said[0] == "no way") << said[0];
    EXPECT_EQ(pair.said, 2);
  }
}

TEST(VerbsHandshake, AnEndThatCannotBeMadeIsNotOffered) {
  Pair pair;
  pair.ends[0].makeFails = "no more";
  pair.want(0);
  pair.run(10);
  EXPECT_EQ(pair.ends[0].failures, std::vector<std::string>{"no more"});
  EXPECT_EQ(pair.said, 0);
}

// Whoever else says something of that edge changes nothing.
TEST(VerbsHandshake, OfOtherQueuePairsNothingIsTaken) {
  Pair pair;
  pair.want(0);
  pair.run(10);
  Handshakes& first = pair.ends[0].handshakes;
  first.take(kEdge, {Word::Offer, {4711, 1}, pair.ends[0].endpoint(), 0});
  first.take(kEdge, {Word::Refusal, {4711, 1}, {4711, 1}, 0});
  EXPECT_EQ(pair.said, 3);
  expectConnected(pair);
}

TEST(VerbsHandshake, MemoryIsForEdgesThatAreUsed) {
  Pair pair;
  for (std::uint32_t edge = 0; edge < 8192; ++edge)
    EXPECT_FALSE(pair.ends[0].handshakes.isJoined(edge));
  EXPECT_EQ(pair.ends[0].made, 0);
}

// ---- datagrams ------------------------------------------------------------------------------------

class VerbsDatagram : public testing::Test {
 protected:
  bool isTaken(const Datagram& datagram, std::size_t bytes = sizeof(Datagram)) {
    std::array<std::byte, sizeof(Datagram) + 8> memory{};
    std::memcpy(memory.data(), &datagram, sizeof(datagram));
    Datagram read;
    return readDatagram(std::span(memory).first(bytes), kAt, kSecret, &read);
  }
  static constexpr PortId kAt{3, 1};
  static constexpr std::uint64_t kSecret = 0x1122334455667788;
  const Datagram good_{
      .from = {2, 0}, .to = kAt, .secret = kSecret, .word = {Word::Offer, {77, 5}, {}, 0}};
};

TEST_F(VerbsDatagram, OfAPeerIsTaken) {
  EXPECT_TRUE(isTaken(good_));
  Datagram ping = good_;
  ping.word = {.kind = Word::Ping};
  EXPECT_TRUE(isTaken(ping));
}

TEST_F(VerbsDatagram, OfAnybodyElseIsNot) {
  EXPECT_FALSE(isTaken(good_, sizeof(Datagram) - 1));
  EXPECT_FALSE(isTaken(good_, sizeof(Datagram) + 1));
  EXPECT_FALSE(isTaken(good_, 0));
  const auto isTakenWith = [&](auto change) {
    Datagram bad = good_;
    change(bad);
    return isTaken(bad);
  };
  EXPECT_FALSE(isTakenWith([](Datagram& d) { d.magic ^= 1; }));
  EXPECT_FALSE(isTakenWith([](Datagram& d) { d.secret ^= 1; }));
  EXPECT_FALSE(isTakenWith([](Datagram& d) { d.to.rank = 2; }));
  EXPECT_FALSE(isTakenWith([](Datagram& d) { d.to.port = 0; }));
  EXPECT_FALSE(isTakenWith([](Datagram& d) { d.from.rank = kAt.rank; }));
  EXPECT_FALSE(isTakenWith([](Datagram& d) { d.word.kind = static_cast<Word::Kind>(9); }));
  EXPECT_FALSE(isTakenWith([](Datagram& d) { d.word.mine.number = 0; }));
  EXPECT_FALSE(isTakenWith([](Datagram& d) { d.word.mine.number = 1 << 24; }));
  EXPECT_FALSE(isTakenWith([](Datagram& d) { d.word.theirs.sequence = 1 << 24; }));
  EXPECT_FALSE(isTakenWith([](Datagram& d) { d.word.kind = Word::Refusal; }));
}

}  // namespace
}  // namespace weft::verbs
