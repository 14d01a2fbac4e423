// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include <climits>

#include <random>

#include "base/max_ranks.h"
#include "base/text.h"

namespace weft::inline base {
namespace {

ErrorData full() {
  return {.code = Code::Timeout,
          .who = {5, "b", 4711},
          .device = "mlx5_0",
          .port = 2,
          .call = "barrier() #3 on communicator c",
          .missing = {0, 1, 2, 4},
          .what = "{call}: {missing} ({ranges}) wait for {who}",
          .fix = "look at it",
          .variable = "WEFT_LANES"};
}

void expectSame(const Status& a, const Status& b) {
  EXPECT_EQ(a.text(), b.text());
  EXPECT_EQ(a.code(), b.code());
  EXPECT_EQ(a.data().who, b.data().who);
  EXPECT_EQ(a.data().device, b.data().device);
  EXPECT_EQ(a.data().port, b.data().port);
  EXPECT_EQ(a.data().call, b.data().call);
  EXPECT_EQ(a.data().missing, b.data().missing);
  EXPECT_EQ(a.data().fix, b.data().fix);
  EXPECT_EQ(a.data().variable, b.data().variable);
}

TEST(Sentence, IsPrintedFromTheData) {
  const Status status = Status::error(full());
  EXPECT_EQ(
      status.message(),
      "barrier() #3 on communicator c: ranks 0-2,4 (0-2,4) wait for rank 5 (host b, pid 4711)");
  EXPECT_EQ(status.text(), status.message() + "; fix: look at it");
}

TEST(Sentence, NamesAHostOrARankAlone) {
  EXPECT_EQ(Status::error({.code = Code::Timeout, .who = {-1, "b"}, .what = "{who}!"}).text(),
            "host b!");
  EXPECT_EQ(Status::error({.code = Code::Timeout, .who = {3, ""}, .what = "{who}!"}).text(),
            "rank 3!");
}

TEST(Sentence, KeepsBracesThatNameNoField) {
  ErrorData data = full();
  data.call = "{who}";
  data.device = data.fix = "";
  data.what = "{ {device} {} {call} {unknown} {who";
  EXPECT_EQ(Status::error(data).text(), "{ {device} {} {who} {unknown} {who");
  EXPECT_EQ(Status::error(Code::Timeout, "{who} {missing}").text(), "{who} {missing}");
}

TEST(Line, IsTakenApartOnce) {
  const Status one = Status::error(Code::SystemError, "a; fix: old; b; fix: c; d");
  EXPECT_EQ(one.message(), "a; fix: old; b");
  EXPECT_EQ(one.data().fix, "c; d");
  EXPECT_EQ(one.text(), "a; fix: old; b; fix: c; d");
  EXPECT_EQ(Status::error(Code::SystemError, "a. fix: b").text(), "a. fix: b");
  EXPECT_EQ(Status::error(Code::SystemError, "a. fix: b").data().fix, "b");
  EXPECT_EQ(Status::error(Code::SystemError, "a fix: b").data().fix, "");
  EXPECT_EQ(Status::error(Code::SystemError, "a fix: b").text(), "a fix: b");
}

TEST(Success, HasNoWords) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().text() + Status().message(), "");
  EXPECT_EQ(Status().data().who.rank, -1);
}

TEST(Within, KeepsTheCulpritOrNamesOne) {
  const PeerName outer{1, "a", 2};
  EXPECT_EQ(within("x: ", outer, Status::error(full())).data().who, full().who);
  const Status named = within("x: ", outer, Status::error(Code::Timeout, "y; fix: z"));
  EXPECT_EQ(named.data().who, outer);
  EXPECT_EQ(named.text(), "x: y; fix: z");
}

TEST(OfVariable, NamesTheFirstOneThatIsToBlame) {
  const Status refused = Status::error(Code::InvalidArgument, "it is odd; fix: make it even");
  const Status named = ofVariable("WEFT_LANES", refused);
  EXPECT_EQ(named.text(), refused.text());
  EXPECT_EQ(named.data().variable, "WEFT_LANES");
  EXPECT_EQ(within("rank 0: ", {}, ofVariable("WEFT_ROOT", named)).data().variable, "WEFT_LANES");
  EXPECT_TRUE(ofVariable("WEFT_LANES", {}).ok());
  EXPECT_EQ(ofVariable("WEFT_ROOT", Status::error(Code::Timeout, "late")).data().variable, "");
}

TEST(Packed, ComesBackAsItWas) {
  Status back;
  ASSERT_TRUE(unpack(pack(Status::error(full()), 1000), &back));
  expectSame(Status::error(full()), back);
  const Status plain = Status::error(Code::LinkLost, "only words");
  ASSERT_TRUE(unpack(pack(plain, 1000), &back));
  expectSame(plain, back);
}

TEST(Packed, PassesOverFieldsOfALaterVersion) {
  Status back;
  ASSERT_TRUE(unpack(pack(Status::error(full()), 1000) + "\x1fmore\x1f", &back));
  expectSame(Status::error(full()), back);
}

TEST(Packed, HasNoFieldsThatAnEarlierVersionHadNot) {
  std::string packed = pack(Status::error(full()), 1000);
  packed.resize(packed.rfind('\x1f'));
  Status back;
  ASSERT_TRUE(unpack(packed, &back));
  EXPECT_EQ(back.data().fix, "look at it");
  EXPECT_EQ(back.data().variable, "");
}

TEST(Packed, FitsAndKeepsWhatIsShort) {
  ErrorData data = full();
  data.what = "{who} " + std::string(5000, 'x');
  data.missing.clear();
  for (std::uint32_t r = 0; r < 4000; r += 2) data.missing.push_back(r);
  for (const std::size_t limit : {200u, 500u, 2000u}) {
    const std::string bytes = pack(Status::error(data), limit);
    EXPECT_LE(bytes.size(), limit);
    Status back;
    ASSERT_TRUE(unpack(bytes, &back)) << limit;
    EXPECT_EQ(back.data().who, data.who);
    EXPECT_EQ(back.data().fix, data.fix);
    EXPECT_EQ(back.data().call, data.call);
    EXPECT_TRUE(back.text().starts_with("rank 5 (host b, pid 4711) xxx")) << back.text();
    ASSERT_FALSE(back.data().missing.empty());
    const std::size_t told = back.data().missing.size();
    EXPECT_TRUE(std::equal(back.data().missing.begin(), back.data().missing.end(),
                           data.missing.begin(), data.missing.begin() + static_cast<long>(told)));
  }
}

// All but one of the largest world that may meet.
TEST(Packed, NamesRanksOfTheLargestWorld) {
  ErrorData data = full();
  data.missing.clear();
  for (std::uint32_t rank = 0; rank < kMaxRanks; ++rank)
    if (rank != 11596) data.missing.push_back(rank);
  Status back;
  ASSERT_TRUE(unpack(pack(Status::error(data), 1000), &back));
  EXPECT_EQ(back.data().missing, data.missing);
}

TEST(Packed, CannotForgeLogLinesOrFields) {
  ErrorData data = full();
  data.who.host = "b\x1f\n\x1b[2J";
  Status back;
  ASSERT_TRUE(unpack(pack(Status::error(data), 1000), &back));
  EXPECT_EQ(back.data().who.host, "b???[2J");
  EXPECT_EQ(back.data().call, data.call);
}

// code, rank + 1, pid, port, missing, host, device, call, what, fix
TEST(Unpack, RefusesWhatPackDoesNotMake) {
  const auto packed = [](std::string code, std::string rank, std::string port,
                         std::string missing) {
    return text(code, "\x1f", rank, "\x1f", 7, "\x1f", port, "\x1f", missing,
                "\x1f\x1f\x1f\x1fwhat\x1f");
  };
  Status status;
  ASSERT_TRUE(unpack(packed("8", "3", "1", "0-2,4"), &status));
  EXPECT_EQ(status.data().missing, (std::vector<std::uint32_t>{0, 1, 2, 4}));
  for (const char* code : {"0", "14", "-1", "", "8x", " 8", "99999999999"})
    EXPECT_FALSE(unpack(packed(code, "0", "0", ""), &status)) << code;
  for (const char* number : {"-1", "", "x", "2147483648"}) {
    EXPECT_FALSE(unpack(packed("8", number, "0", ""), &status)) << number;
    EXPECT_FALSE(unpack(packed("8", "0", number, ""), &status)) << number;
  }
  for (const char* missing :
       {"2,1", "1,1", "3-2", "0-1048576", "4000000000", "1,,2", "-", "1-", "a"})
    EXPECT_FALSE(unpack(packed("8", "0", "0", missing), &status)) << missing;
  EXPECT_FALSE(unpack("", &status));
  EXPECT_FALSE(unpack("8", &status));
  EXPECT_EQ(status.code(), Code::RemoteError) << "never success";
}

TEST(Packed, OfARankThatIsNoneIsAnErrorAllTheSame) {
  for (const int number : {-5, INT_MIN, INT_MAX}) {
    Status status;
    const ErrorData data{
        .code = Code::Mismatch, .who = {number, "h", number}, .port = number, .what = "x"};
    EXPECT_TRUE(unpack(pack(Status::error(data), 1000), &status)) << number;
    EXPECT_EQ(status.data().who.host, "h");
  }
}

TEST(Unpack, SurvivesAnyBytes) {
  std::mt19937 random(1);
  const std::string good = pack(Status::error(full()), 1000);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    Status status;
    if (!unpack(bytes, &status)) continue;
    EXPECT_FALSE(status.ok());
    for (const char c : status.text())
      ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}

}  // namespace
}  // namespace weft::inline base
