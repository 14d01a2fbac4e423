// SPDX-License-Identifier: Apache-2.0
// Errors as data: the fields of weftErrorInfo_t on every rank, whoever saw the error first, and the
// line that is printed from them.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <sstream>
#include <weft/weft.hpp>

#include "world.h"

namespace weft::testing {
namespace {

// ---- the struct ---------------------------------------------------------------------------------

weftErrorInfo_t infoOf(weftComm_t comm) {
  weftErrorInfo_t info = WEFT_ERROR_INFO_INITIALIZER;
  EXPECT_EQ(weftGetLastErrorInfo(comm, &info), weftSuccess);
  return info;
}

std::string sentenceOf(const weftErrorInfo_t& info) {
  const std::string message = info.message;
  if (*info.fix == 0) return message;
  return message + (message.back() == '.' ? " fix: " : "; fix: ") + info.fix;
}

TEST(ErrorInfo, IsThatOfTheThreadWithoutACommunicator) {
  ASSERT_EQ(weftCommCount(nullptr, nullptr), weftInvalidArgument);
  const std::string line = weftGetLastError(nullptr);
  const weftErrorInfo_t info = infoOf(nullptr);
  EXPECT_EQ(info.result, weftInvalidArgument);
  EXPECT_EQ(info.rank, -1);
  EXPECT_EQ(sentenceOf(info), line);
  EXPECT_EQ(weftGetLastError(nullptr), line) << "reading it does not change it";
  EXPECT_STREQ(info.host, "");
  EXPECT_EQ(info.missingCount, 0);
}

TEST(ErrorInfo, NamesTheVariableThatIsRefused) {
  ::setenv("WEFT_LANES", "none", 1);
  weftComm_t comm = nullptr;
  const weftResult_t result = weftCommInitAll(&comm, 1, nullptr);
  ::unsetenv("WEFT_LANES");
  ASSERT_EQ(result, weftInvalidArgument);
  EXPECT_STREQ(infoOf(nullptr).variable, "WEFT_LANES");
  EXPECT_EQ(lastErrorInfo().variable, "WEFT_LANES");
  ASSERT_EQ(weftCommCount(nullptr, nullptr), weftInvalidArgument);
  EXPECT_STREQ(infoOf(nullptr).variable, "") << "of an argument";
}

TEST(ErrorInfo, NeedsItsInitializer) {
  EXPECT_EQ(weftGetLastErrorInfo(nullptr, nullptr), weftInvalidArgument);
  weftErrorInfo_t info{};
  EXPECT_EQ(weftGetLastErrorInfo(nullptr, &info), weftInvalidArgument);
  info = WEFT_ERROR_INFO_INITIALIZER;
  info.size = 1 << 20;
  EXPECT_EQ(weftGetLastErrorInfo(nullptr, &info), weftInvalidArgument);
  const std::string line = weftGetLastError(nullptr);
  EXPECT_NE(line.find("WEFT_ERROR_INFO_INITIALIZER"), std::string::npos) << line;
}

TEST(ErrorInfo, FillsInWhatAnOlderCallerHas) {
  ASSERT_EQ(weftCommCount(nullptr, nullptr), weftInvalidArgument);
  weftErrorInfo_t info = WEFT_ERROR_INFO_INITIALIZER;
  info.size = offsetof(weftErrorInfo_t, host);
  info.host = "untouched";
  info.missingCount = 77;
  ASSERT_EQ(weftGetLastErrorInfo(nullptr, &info), weftSuccess);
  EXPECT_EQ(info.result, weftInvalidArgument);
  EXPECT_EQ(info.size, offsetof(weftErrorInfo_t, host));
  EXPECT_STREQ(info.host, "untouched");
  EXPECT_EQ(info.missingCount, 77);
}

TEST(ErrorInfo, LeavesTheFieldsOfANewerCaller) {
  struct Newer {
    weftErrorInfo_t known = WEFT_ERROR_INFO_INITIALIZER;
    long further = 42;
  } newer;
  newer.known.size = sizeof(newer);
  ASSERT_EQ(weftCommCount(nullptr, nullptr), weftInvalidArgument);
  ASSERT_EQ(weftGetLastErrorInfo(nullptr, &newer.known), weftSuccess);
  EXPECT_EQ(newer.known.result, weftInvalidArgument);
  EXPECT_EQ(newer.further, 42);
}

TEST(ErrorInfo, IsCarriedByTheException) {
  try {
    check(weftCommCount(nullptr, nullptr));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), weftInvalidArgument);
    EXPECT_EQ(error.info().message, "comm is NULL");
    EXPECT_EQ(error.what(), error.info().message);
    EXPECT_EQ(error.info().rank, -1);
  }
}

// ---- every kind of error ------------------------------------------------------------------------

// What a rank says of its error: "rank|pid|call|missing ranks", or what is wrong with that.
std::string told(weftResult_t result, weftComm_t comm) {
  const std::string line = weftGetLastError(comm);
  weftErrorInfo_t info = WEFT_ERROR_INFO_INITIALIZER;
  if (weftGetLastErrorInfo(comm, &info) != weftSuccess) return "no info";
  if (info.result != result) return "another result than the call's";
  if (sentenceOf(info) != line) return sentenceOf(info) + " is not " + line;
  if (info.rank >= 0 && *info.host == 0) return "no host: " + line;
  const std::string call = info.call;
  std::ostringstream all;
  all << info.rank << '|' << info.pid << '|' << call.substr(0, call.find(" on communicator "))
      << '|';
  for (int i = 0; i < info.missingCount; ++i) all << info.missingRanks[i] << ' ';
  return all.str();
}

struct Way {
  const char* name;
  Kind kind;
  const char* transport;
};
class Fields : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override { ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1); }
  void TearDown() override { ::unsetenv("WEFT_OFI_PROVIDER"); }
  static World world(int ranks) { return {GetParam().kind, ranks, GetParam().transport}; }
};
INSTANTIATE_TEST_SUITE_P(Ways, Fields,
                         ::testing::Values(Way{"threads", Kind::Threads, "auto"},
                                           Way{"processes", Kind::Processes, "auto"},
                                           Way{"ofi", Kind::Processes, "ofi"}),
                         [](const auto& way) { return way.param.name; });

void expectAll(const std::vector<std::string>& lines, const std::vector<int>& ranks,
               const std::string& begin, const std::string& end) {
  for (const int r : ranks) {
    const std::string& line = lines[static_cast<std::size_t>(r)];
    EXPECT_TRUE(line.starts_with(begin) && line.ends_with(end)) << "rank " << r << ": " << line;
  }
}

TEST_P(Fields, OfALateRank) {
  Shared<Arrivals> begun, ended;
  const auto lines = run(world(4), [&](const Rank& r) -> std::string {
    if (const weftResult_t first = weftBarrier(r.comm, nullptr, nullptr); first != weftSuccess)
      return outcome(first, r.comm);
    if (!begun->meet(4)) return "they do not come";
    if (r.rank == 2) return ended->await(3) ? "" : "they hear nothing";
    weftOpts_t opts = WEFT_OPTS_INITIALIZER;
    opts.timeoutMs = 2000;
    const std::string line = told(weftBarrier(r.comm, nullptr, &opts), r.comm);
    ended->arrive();
    return line;
  });
  expectAll(lines, {0, 1, 3}, "2|", "|barrier() #2|2 ");
}

TEST_P(Fields, OfAMismatch) {
  const auto lines = run(world(3), [](const Rank& r) -> std::string {
    float value = 1;
    const weftRedOp_t op = r.rank == 2 ? weftMax : weftSum;
    return told(weftAllReduce(&value, &value, 1, weftFloat, op, r.comm, nullptr, nullptr), r.comm);
  });
  const std::string calls =
      "rank 2 called all_reduce(count=1, float, max); ranks 0-1 called all_reduce(count=1, float, "
      "sum)|";
  expectAll(lines, {0, 1, 2}, "2|", "|" + calls);
}

TEST_P(Fields, OfAnAbort) {
  const auto lines = run(world(3), [](const Rank& r) -> std::string {
    if (r.rank == 1) weftCommAbort(r.comm);
    return told(weftBarrier(r.comm, nullptr, nullptr), r.comm);
  });
  expectAll(lines, {0, 1, 2}, "1|", "||");
}

class Ended : public Fields {};
INSTANTIATE_TEST_SUITE_P(Ways, Ended,
                         ::testing::Values(Way{"processes", Kind::Processes, "auto"},
                                           Way{"ofi", Kind::Processes, "ofi"}),
                         [](const auto& way) { return way.param.name; });

TEST_P(Ended, RankThatWasKilledIsNamedWithItsPid) {
  Processes processes(world(3), [](const Rank& r) -> std::string {
    if (const weftResult_t first = weftBarrier(r.comm, nullptr, nullptr); first != weftSuccess)
      return outcome(first, r.comm);
    if (r.rank == 1) ::raise(SIGKILL);
    return told(weftBarrier(r.comm, nullptr, nullptr), r.comm);
  });
  const std::string begin = "1|" + std::to_string(processes.pid(1)) + "|barrier() #2";
  expectAll(processes.join(), {0, 2}, begin, "|");
}

TEST_P(Ended, RankThatLeftIsNamed) {
  const auto lines = run(world(3), [](const Rank& r) -> std::string {
    if (r.rank == 1) return "";
    return told(weftBarrier(r.comm, nullptr, nullptr), r.comm);
  });
  expectAll(lines, {0, 2}, "1|", "|barrier() #1|");
}

TEST(LostLink, NamesWhoIsAtItsOtherEnd) {
  ::setenv("WEFT_OFI_PROVIDER", "tcp;ofi_rxm", 1);
  const World cut{Kind::Processes, 2, "faulty(ofi):cut=20:0-1"};
  const auto lines = run(cut, [](const Rank& r) -> std::string {
    for (int i = 0; i < 1000; ++i)
      if (const weftResult_t result = weftBarrier(r.comm, nullptr, nullptr); result != weftSuccess)
        return told(result, r.comm);
    return "no call failed";
  });
  for (const std::string& line : lines) {
    EXPECT_NE(line.find("|barrier() #"), std::string::npos) << line;
    EXPECT_EQ(line.find('|'), 1u) << line;
  }
  ::unsetenv("WEFT_OFI_PROVIDER");
}

TEST(Joining, NamesTheRanksThatDidNotCome) {
  weftUniqueId id;
  ASSERT_EQ(weftGetUniqueId(&id), weftSuccess);
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.initTimeoutMs = 500;
  weftComm_t comm = nullptr;
  ASSERT_EQ(weftCommInitRankConfig(&comm, 4, id, 2, &config), weftTimeout);
  const std::string line = weftGetLastError(nullptr);
  const weftErrorInfo_t info = infoOf(nullptr);
  EXPECT_EQ(sentenceOf(info), line);
  ASSERT_EQ(info.missingCount, 3) << line;
  EXPECT_EQ(info.missingRanks[0], 0);
  EXPECT_EQ(info.missingRanks[1], 1);
  EXPECT_EQ(info.missingRanks[2], 3);
}

TEST(Joining, NamesWhoHasTakenARankTwice) {
  const IdCourier courier(2);
  const auto lines = forkRanks(2, [&](int rank) -> std::string {
    weftUniqueId id;
    if (std::string failed = courier.exchange(rank, &id); !failed.empty()) return failed;
    weftComm_t comm = nullptr;
    const weftResult_t result = weftCommInitRank(&comm, 2, id, 0);  // both say that they are rank 0
    return told(result, nullptr);
  });
  for (const std::string& line : lines) EXPECT_EQ(line.substr(0, 2), "0|") << line;
  EXPECT_EQ(lines[0], lines[1]);
}

}  // namespace
}  // namespace weft::testing
