// SPDX-License-Identifier: Apache-2.0
#include "watch/watch.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "plan/call.h"
#include "plan/plan.h"
#include "tests/unit/still_transport.h"
#include "tests/unit/watch/load_of_test.h"
#include "tests/unit/watch/nobody_remote.h"

namespace {
time_t secondsAhead = 0;
std::optional<timespec> stoppedAt;
}  // namespace

// Of this program, whose clock tests put forward.
extern "C" [[gnu::visibility("default")]] int clock_gettime(clockid_t clock,
                                                            timespec* now) noexcept {
  const auto failed = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (stoppedAt) *now = *stoppedAt;
  now->tv_sec += secondsAhead;
  return failed;
}

namespace weft::watch {
namespace {

// One page for all ranks: nothing but its first error matters here.
class OnePage final : public test::StillTransport {
 public:
  explicit OnePage(std::uint32_t ranks) : StillTransport(ranks) {}
  transport::WindowView own() const override {
    return {reinterpret_cast<std::byte*>(&page_), layout_};
  }
  transport::ControlPage* control(std::uint32_t) const override { return &page_; }

 private:
  mutable transport::ControlPage page_;
};

// A control link on which tests look in while a cause is on its way.
class Proposals final : public NobodyRemote {
 public:
  std::function<void()> meanwhile;

  void propose(const Status&) override { meanwhile(); }
};

const std::vector<PeerName> kNames{{0, "a", 100}, {1, "b", 101}};

// A call that stopped for an error that nobody could name yet told "OK" to all others.
TEST(Watch, IsNotBrokenBeforeItCanSayWhy) {
  OnePage transport(2);
  Proposals remote;
  Watch watch(transport, 0, kNames, "w", &remote);
  int asked = 0;
  remote.meanwhile = [&] {
    ++asked;
    EXPECT_EQ(watch.isBroken(), !watch.firstError().ok());
  };
  EXPECT_EQ(watch.abort().code(), Code::Aborted);
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(watch.isBroken());
  EXPECT_EQ(watch.firstError().code(), Code::Aborted);
}

TEST(Watch, KeepsItsErrorWhereARankDiedWhileItWroteTheFirst) {
  OnePage transport(2);
  transport::FirstError& first = transport.control(0)->firstError;
  first.state = transport::FirstError::Writing;
  Watch watch(transport, 0, kNames, "w");
  EXPECT_TRUE(watch.firstError().ok());
  const Status told = watch.declare(Status::error(Code::RemoteError, "rank 1 has ended"));
  EXPECT_EQ(told.text(), "rank 1 has ended");
  EXPECT_TRUE(watch.isBroken());
  EXPECT_EQ(watch.firstError().text(), told.text());
  EXPECT_EQ(watch.abort().text(), told.text());
  first.state = transport::FirstError::None;  // it only was slow, and somebody else comes first
  ASSERT_TRUE(publishFirstError(Status::error(Code::Timeout, "late"), &first));
  EXPECT_EQ(watch.firstError().text(), told.text()) << "what was said holds";
}

// A page for each rank.
class Pages final : public test::StillTransport {
 public:
  explicit Pages(std::uint32_t ranks = 2) : StillTransport(ranks), pages_(ranks) {}
  transport::WindowView own() const override {
    return {reinterpret_cast<std::byte*>(&pages_[0]), layout_};
  }
  transport::ControlPage* control(std::uint32_t rank) const override { return &pages_[rank]; }

 private:
  mutable std::vector<transport::ControlPage> pages_;
};

// Of most ranks elsewhere only the fingerprint is known at first: that of a neighbour says what they did.
TEST(Watch, RanksThatMadeTheSameCallsAreKnownByOneOfThem) {
  constexpr std::uint32_t kRanks = 64, kOdd = 5;
  Pages transport(kRanks);
  const auto call = [&](std::uint32_t rank, std::uint64_t fingerprint, std::uint64_t what) {
    transport::ControlPage& page = *transport.control(rank);
    page.calls[1].fingerprint = fingerprint;
    page.calls[1].what = what;
    page.calls[1].seq = page.callSeq = 1;
  };
  std::vector<PeerName> names;
  for (std::uint32_t r = 0; r < kRanks; ++r) names.push_back({static_cast<int>(r), "h", 100});
  plan::Call made;
  made.collective = schedule::Collective::AllReduce;
  plan::Plan plan;
  plan.what = plan::packWhat(made);
  plan.count = 2;
  Watch watch(transport, 0, names, "w");
  watch.enter(plan, 60000, nullptr);
  const std::uint64_t tag = transport.control(0)->calls[1].fingerprint;
  for (std::uint32_t r = 1; r < kRanks; ++r) call(r, tag, kUnknownWords);
  call(kOdd, tag + 1, plan.what);
  transport.control(kOdd)->calls[1].count = 3;
  const Status said = watch.disagreement(kOdd);
  EXPECT_EQ(said.data().who.rank, static_cast<int>(kOdd)) << said.text();
  EXPECT_NE(said.text().find("ranks 0-4,6-63 called all_reduce(count=2, "), std::string::npos)
      << said.text();
}

// What rank 0 says of its wait for rank 1 after ten seconds.
std::string saidAfterTenSeconds(Watch& watch) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(watch.trouble(1).ok());
  secondsAhead = 10;
  EXPECT_TRUE(watch.trouble(1).ok());
  secondsAhead = 0;
  return testing::internal::GetCapturedStderr();
}

// In a barrier, rank 1 having made so many calls.
std::string saidInABarrier(std::uint64_t calls) {
  Pages transport;
  transport.control(1)->callSeq = calls;
  plan::Plan plan;
  plan::Call call;
  call.collective = schedule::Collective::Barrier;
  plan.what = plan::packWhat(call);
  Watch watch(transport, 0, kNames, "w");
  watch.enter(plan, 60000, nullptr);
  return saidAfterTenSeconds(watch);
}

// In a message, with this deadline.
std::string saidInAMessage(int timeoutMs) {
  Pages transport;
  Watch watch(transport, 0, kNames, "w");
  watch.enterPairs(timeoutMs, nullptr);
  return saidAfterTenSeconds(watch);
}

// The news of rank 1's death comes with the `looks`-th look for it; with each a hundredth of a second goes by.
class LateNews final : public NobodyRemote {
 public:
  explicit LateNews(int looks) : left_(looks) {}
  Status ended(std::uint32_t rank) const override {
    if (rank != 1) return {};
    stoppedAt->tv_nsec += 10000000;
    return --left_ > 0 ? Status() : Status::error(Code::RemoteError, "rank 1 died");
  }

 private:
  mutable int left_;
};

// A rank that had left on hearing of a death was named in its place, by one that heard of it a little later.
TEST(Watch, WhoLosesALinkWaitsForNewsOfADeathAsLongAsTheMachineIsCrowded) {
  const Status cut = Status::error({.code = Code::RemoteError, .who = kNames[1], .what = "cut"});
  const auto said = [&](double load, int looks) {
    Pages transport;
    LateNews remote(looks);
    Watch watch(transport, 0, kNames, "w", &remote);
    plan::Plan plan;
    watch.enter(plan, 60000, nullptr);
    loadOfTest = load;
    stoppedAt = timespec{1000, 0};
    const Status status = watch.lost(cut);
    stoppedAt.reset();
    return status;
  };
  EXPECT_NE(said(0.5, 5).message().find("rank 1 died"), std::string::npos);
  EXPECT_EQ(said(0.5, 50).code(), Code::LinkLost);
  EXPECT_NE(said(8, 50).message().find("rank 1 died"), std::string::npos);
  EXPECT_EQ(said(8, 90).code(), Code::LinkLost);
}

TEST(Watch, WhoHasComeIsNotBlamedForALongCall) {
  const std::string said = saidInABarrier(1);
  EXPECT_NE(said.find("waiting for 10 s; all ranks have come and are at it"), std::string::npos)
      << said;
  EXPECT_EQ(said.find("rank 1"), std::string::npos) << said;
}

TEST(Watch, WhoHasNotComeIsNamed) {
  const std::string said = saidInABarrier(0);
  EXPECT_NE(
      said.find(
          "waiting for 10 s; rank 1 did not call it; rank 1 (host b, pid 101) made no call yet"),
      std::string::npos)
      << said;
}

// A thread that receives whatever may come, of the back end of PyTorch, warned of it after 10, 20, 40 seconds.
TEST(Watch, WhoListensForEverSaysNothingOfIt) {
  EXPECT_NE(saidInAMessage(60000).find("waiting for 10 s; waiting for rank 1"), std::string::npos);
  EXPECT_EQ(saidInAMessage(std::numeric_limits<int>::max()), "");
}

// The call of that rank, the first of its communicator.
void called(const Pages& transport, std::uint32_t rank, std::uint64_t count) {
  transport::ControlPage& page = *transport.control(rank);
  page.callSeq = 1;
  page.calls[1].fingerprint = count;
  page.calls[1].count = count;
  page.calls[1].seq = 1;
}

// Whom a mismatch names in a world of five, where ranks 1 to 4 have made calls of so many elements;
// 0: none yet.
std::string blamed(const std::vector<std::uint64_t>& counts) {
  Pages transport(5);
  std::vector<PeerName> names;
  for (int r = 0; r < 5; ++r) names.emplace_back(r, "h", 100 + r);
  plan::Plan plan;
  plan.count = plan.fingerprint = 7;
  Watch watch(transport, 0, names, "w");
  watch.enter(plan, 60000, nullptr);
  for (std::uint32_t r = 1; r < 5; ++r)
    if (counts[r - 1] != 0) called(transport, r, counts[r - 1]);
  const Status told = watch.disagreement(1);
  EXPECT_EQ(told.code(), Code::Mismatch);
  return told.data().who.rank < 0 ? "" : std::to_string(told.data().who.rank);
}

// With many ranks on few cores some are always late.
TEST(Watch, WhoDiffersFromMostIsNamedThoughSomeHaveNotCalled) {
  EXPECT_EQ(blamed({7, 7, 7, 8}), "4");
  EXPECT_EQ(blamed({7, 8, 7, 0}), "2");
  EXPECT_EQ(blamed({8, 8, 8, 0}), "0");
  EXPECT_EQ(blamed({8, 7, 0, 0}), "") << "the other two may side with either";
  EXPECT_EQ(blamed({8, 8, 7, 0}), "") << "two and two";
  EXPECT_EQ(blamed({8, 9, 7, 7}), "") << "two of them differ";
}

// Over a control link the fingerprint of a call may be known before its words are.
TEST(Watch, AMismatchIsNoticedBeforeTheWordsOfTheCallCome) {
  Pages transport(3);
  std::vector<PeerName> names;
  for (int r = 0; r < 3; ++r) names.emplace_back(r, "h", 100 + r);
  plan::Plan plan;
  plan.count = plan.fingerprint = 7;
  Proposals remote;
  remote.meanwhile = [] {};
  Watch watch(transport, 0, names, "w", &remote);
  watch.enter(plan, 60000, nullptr);
  for (const std::uint32_t r : {1u, 2u}) called(transport, r, r == 1 ? 7 : 8);
  transport.control(1)->calls[1].fingerprint = transport.control(0)->calls[1].fingerprint.load();
  transport.control(2)->calls[1].what = kUnknownWords;
  const Status told = watch.disagreement(2);
  EXPECT_EQ(told.code(), Code::Mismatch);
  EXPECT_NE(told.text().find("rank 2 called another call"), std::string::npos) << told.text();
  EXPECT_EQ(told.data().who.rank, 2);
}

}  // namespace
}  // namespace weft::watch
