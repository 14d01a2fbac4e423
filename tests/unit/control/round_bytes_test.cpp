// SPDX-License-Identifier: Apache-2.0
// What a round of questions costs, in bytes on all connections together: server and messages are the
// real ones, and the frames, in both directions.
#include <deque>
#include <vector>

#include "control/bodies.h"
#include "control/bundles.h"
#include "control/control_state.h"
#include "net/channel.h"
#include "remote_world.h"
#include "tests/unit/slow_build.h"

namespace weft::control {
namespace {

using namespace weft::test;

std::size_t frameBytes(net::MessageType type, const net::Bytes& body) {
  net::Channel channel;
  channel.secure({}, {}, net::Channel::kMaxFrameAfter);
  channel.send(type, body);
  std::size_t bytes = 0;
  for (net::ByteView out = channel.pending(); !out.empty(); out = channel.pending()) {
    bytes += out.size();
    channel.sent(out.size());
  }
  return bytes;
}

// A page after some calls, the last of which it is still in.
std::unique_ptr<transport::ControlPage> pageAfter(std::uint64_t calls, bool stray) {
  auto page = std::make_unique<transport::ControlPage>();
  for (std::uint64_t seq = 1; seq <= calls; ++seq) {
    transport::CallRecord& record = page->calls[seq % transport::kCallRecords];
    record.fingerprint = 0x9e3779b97f4a7c15 * seq + (stray && seq + 3 > calls);
    record.count = 1 << 20;
    record.what = ~0ull >> 8;
    record.seq = seq;
  }
  page->callSeq = calls;
  page->inCall = 1;
  return page;
}

constexpr std::uint64_t kCalls = 1'000'000;

struct Job {
  enum Kind : std::uint32_t { Usual, Late, Stray };
  explicit Job(std::uint32_t ranks) : state(namesOf(ranks, 8)), kinds(ranks, Usual) {
    for (std::uint32_t r = 0; r < ranks; ++r) state.seat(r);
    (void)deliver();
  }
  PageReport does(std::uint32_t rank, bool withCalls) const {
    return readPage(*pages[kinds[rank]], withCalls);
  }
  // What the server has for the ranks, and what it costs.
  std::deque<ControlState::Outgoing> deliver() {
    std::deque<ControlState::Outgoing> all;
    while (auto out = state.take()) {
      bytes += frameBytes(out->type, *out->body);
      all.push_back(std::move(*out));
    }
    return all;
  }
  void ask(std::uint32_t rank) {
    const net::Bytes body = encode(does(rank, false));
    PageReport page;
    ASSERT_TRUE(decode(body, &page));
    bytes += frameBytes(net::MessageType::Query, body);
    state.query(rank, page, now);
  }
  void answer(const ControlState::Outgoing& question) {
    const net::Bytes body = encode(does(question.rank, !question.body->empty()));
    PageReport page;
    ASSERT_TRUE(decode(body, &page));
    bytes += frameBytes(net::MessageType::Report, body);
    state.report(question.rank, page);
  }
  // The worst case: the first that asks has all others asked, who are about to ask as well.
  std::size_t round() {
    bytes = 0;
    ask(0);
    state.tick(now);
    std::deque<ControlState::Outgoing> questions = deliver();
    for (std::uint32_t r = 1; r < kinds.size(); ++r)
      if (kinds[r] != Late) ask(r);
    for (news.clear(); !questions.empty(); questions = deliver()) {
      for (const ControlState::Outgoing& out : questions)
        if (out.type == net::MessageType::Query)
          answer(out);
        else
          news.push_back(out);
      state.tick(now);
    }
    return bytes;
  }

  ControlState state;
  std::vector<Kind> kinds;
  const Clock::time_point now = Clock::now();
  std::size_t bytes = 0;
  std::vector<ControlState::Outgoing> news;
  const std::unique_ptr<transport::ControlPage> pages[3] = {
      pageAfter(kCalls, false), pageAfter(kCalls - 1, false), pageAfter(kCalls, true)};
};

constexpr std::size_t kCallsOfOneGroup = 700;  // asked for and told, with their frames
std::vector<std::uint32_t> sizes() {
#if defined(__SANITIZE_THREAD__)
  return {8, 64};  // bytes are counted by one thread
#else
  if (kSlowBuild) return {8, 64, 128, 256};
  return {8, 64, 128, 256, 1024, 4096};
#endif
}

TEST(RoundBytes, AtMost200ARankWhereAllDoTheSame) {
  for (const std::uint32_t n : sizes()) {
    Job job(n);
    const std::size_t bytes = job.round();
    EXPECT_EQ(job.news.size(), n);
    EXPECT_LE(bytes, 200 * n) << n;
    RecordProperty(text("bytes_a_rank_at_", n), static_cast<int>(bytes / n));
  }
}

TEST(RoundBytes, AtMost200ARankWhereSomeAreLate) {
  for (const std::uint32_t n : sizes()) {
    for (const std::uint32_t late : {1u, 8u}) {
      Job job(n);
      for (std::uint32_t r = 0; r < late && r < n / 2; ++r) job.kinds[n / 2 + r] = Job::Late;
      EXPECT_LE(job.round(), 200 * n + 2 * kCallsOfOneGroup) << n << ", " << late << " late";
      EXPECT_LE(job.round(), 200 * n) << n << ", " << late << " late, for the second time";
    }
  }
}

// The most that can be said of two groups: a bit a rank.
TEST(RoundBytes, ABitARankWhereEveryOtherIsLate) {
  for (const std::uint32_t n : sizes()) {
    Job job(n);
    for (std::uint32_t r = 1; r < n; r += 2) job.kinds[r] = Job::Late;
    EXPECT_LE(job.round(), (200 + n / 8) * n + 2 * kCallsOfOneGroup) << n;
  }
}

TEST(RoundBytes, ADisagreementCostsItsCallsOnce) {
  for (const std::uint32_t n : sizes()) {
    Job job(n);
    job.kinds[n / 3] = Job::Stray;
    EXPECT_LE(job.round(), 300 * n + 2 * kCallsOfOneGroup) << n;
    News news;
    ASSERT_TRUE(decode(*job.news.back().body, n, &news));
    ASSERT_EQ(news.groups.size(), 2u);
    for (const News::Group& group : news.groups) {
      ASSERT_TRUE(group.parting.has_value());
      EXPECT_EQ(group.parting->seq, kCalls - 2);
    }
  }
}

// Hosts of eight ranks, all but the first with a relay. What goes over the server's connections.
struct RelayedJob {
  static constexpr std::uint32_t kEach = 8;

  explicit RelayedJob(std::uint32_t ranks) : state(namesOf(ranks, kEach)), does(ranks, 0) {
    for (std::uint32_t r = 0; r < ranks; ++r)
      state.seat(r, r < kEach ? std::nullopt : std::optional(r / kEach * kEach));
    while (state.take()) {
    }
  }
  // From ranks or to them, each host's at once.
  void carry(const std::vector<ControlState::Outgoing>& messages) {
    std::map<std::uint32_t, Bundles> hosts;
    for (const ControlState::Outgoing& m : messages) {
      if (m.rank < kEach)
        bytes += frameBytes(m.type, *m.body);
      else
        hosts[m.rank / kEach].add(m.rank, m.type, m.body);
    }
    for (auto& [host, bundle] : hosts)
      for (const net::Bytes& body : bundle.take())
        bytes += frameBytes(net::MessageType::Relayed, body);
  }
  net::Bytes pageOf(std::uint32_t rank, bool withCalls) const {
    return encode(readPage(*pages[does[rank]], withCalls));
  }
  void say(std::uint32_t rank, net::MessageType type, bool withCalls,
           std::vector<ControlState::Outgoing>* said) {
    const auto body = std::make_shared<const net::Bytes>(pageOf(rank, withCalls));
    said->push_back({rank, type, body});
    PageReport page;
    ASSERT_TRUE(decode(*body, &page));
    if (type == net::MessageType::Query)
      state.query(rank, page, now);
    else
      state.report(rank, page);
  }
  std::vector<ControlState::Outgoing> hear() {
    state.tick(now);
    std::vector<ControlState::Outgoing> heard;
    while (auto out = state.take()) heard.push_back(std::move(*out));
    carry(heard);
    return heard;
  }
  // The worst case, as above: asked, and about to ask.
  std::size_t round() {
    bytes = 0;
    std::vector<ControlState::Outgoing> said;
    say(0, net::MessageType::Query, false, &said);
    std::vector<ControlState::Outgoing> heard = hear();
    for (std::uint32_t r = 1; r < does.size(); ++r) say(r, net::MessageType::Query, false, &said);
    for (; !heard.empty(); heard = hear(), said.clear()) {
      for (const ControlState::Outgoing& question : heard)
        if (question.type == net::MessageType::Query)
          say(question.rank, net::MessageType::Report, !question.body->empty(), &said);
      carry(said);
    }
    return bytes;
  }

  ControlState state;
  std::vector<int> does;  // which page a rank has
  const Clock::time_point now = Clock::now();
  std::size_t bytes = 0;
  const std::unique_ptr<transport::ControlPage> pages[2] = {pageAfter(kCalls, false),
                                                            pageAfter(kCalls, true)};
};

TEST(RoundBytes, GrowWithTheHostsWhereTheyHaveRelays) {
  for (const std::uint32_t n : sizes()) {
    const std::size_t hosts = (n + 7) / 8;
    RelayedJob job(n);
    const std::size_t bytes = job.round();
    EXPECT_LE(bytes, 200 * (8 + hosts - 1)) << n;
    RecordProperty(text("bytes_at_", n), static_cast<int>(bytes));
    job.does[n / 3] = 1;
    EXPECT_LE(job.round(), 400 * 8 + 500 * (hosts - 1) + 2 * kCallsOfOneGroup) << n;
  }
}

}  // namespace
}  // namespace weft::control
