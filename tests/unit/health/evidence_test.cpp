// SPDX-License-Identifier: Apache-2.0
#include "tools/health/evidence.h"

#include <gtest/gtest.h>

#include "perf/common/exit_code.h"
#include "tools/checks/kinds.h"
#include "tools/health/heat_map.h"
#include "tools/health/report.h"

namespace weft::health {
namespace {

Evidence healthy(int ranks) {
  Evidence evidence;
  evidence.pairs = Matrix(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    evidence.members.push_back({"node", 0, rank, 100 + rank});
    evidence.shares.push_back({1, 1, "0-3"});
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != rank) evidence.pairs.at(rank, peer) = {5, 3, 0};
  }
  evidence.ways.resize(evidence.members.size() * evidence.members.size(), "shm");
  evidence.collectives.wrongAt.resize(evidence.members.size());
  evidence.collectives.lastShare.resize(evidence.members.size(), 1.0 / ranks);
  evidence.collectives.lateMicroseconds.resize(evidence.members.size(), 20);
  evidence.collectives.rows = {{"all_reduce", 4096, 10, 1, 0, 3}};
  evidence.sweeps = 3;
  return evidence;
}

TEST(Conclusion, OfAHealthyJobIsNothing) {
  const Evidence evidence = healthy(4);
  EXPECT_TRUE(conclude(evidence).empty());
  const std::string text = reportText(evidence, {});
  EXPECT_TRUE(text.starts_with("weft-health: healthy (4 ranks on 1 host")) << text;
  EXPECT_NE(text.find(". \\ . ."), std::string::npos) << text;
}

TEST(Conclusion, WrongDataComesFirst) {
  Evidence evidence = healthy(4);
  evidence.suspects.push_back({Scope::Link, Measure::Bandwidth, 0, 0, 1, 2, 3, false, 0.5, 3});
  evidence.pairs.at(3, 1).wrong = 1;
  const auto findings = conclude(evidence);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind, "data-corrupt");
  EXPECT_EQ(findings[0].culprit,
            "link from rank 3 (host node, pid 103) to rank 1 (host node, pid 101)");
  EXPECT_EQ(findings[1].kind, "link-slow");
  EXPECT_EQ(checks::exitCodeOf(findings), tools::kExitBad);
  EXPECT_NE(heatMapText(evidence).find("!"), std::string::npos);
  EXPECT_NE(heatMapSvg(evidence).find("WRONG DATA"), std::string::npos);
}

TEST(Conclusion, AStarvedRankExplainsItsSlowLinks) {
  Evidence evidence = healthy(4);
  evidence.shares[2] = {0.4, 0.45, "2-3"};
  evidence.starved = {2};
  evidence.suspects.push_back({Scope::Rank, Measure::Bandwidth, 2, 2, 1, 0, 3, false, 1, 3});
  const auto findings = conclude(evidence);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "rank-starved");
  EXPECT_EQ(findings[0].culprit, "rank 2 (host node, pid 102)");
  EXPECT_NE(findings[0].what.find("45 % of a core"), std::string::npos) << findings[0].what;
}

TEST(Conclusion, AWrongSumNamesWhoSawIt) {
  Evidence evidence = healthy(4);
  evidence.collectives.wrongAt = {0, 0, 5, 0};
  const auto findings = conclude(evidence);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "sum-wrong");
  EXPECT_EQ(findings[0].culprit, "rank 2 (host node, pid 102)");
}

TEST(Conclusion, AStragglerIsAWarning) {
  Evidence evidence = healthy(4);
  evidence.collectives.lastShare = {0.02, 0.95, 0.02, 0.01};
  evidence.collectives.lateMicroseconds[1] = 9000;
  const auto findings = conclude(evidence);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "rank-straggles");
  EXPECT_EQ(checks::exitCodeOf(findings), 0);
}

TEST(LostRank, IsNamedByTheErrorsFields) {
  const auto finding =
      findingOf(weftRemoteError, {.rank = 5,
                                  .pid = 4711,
                                  .host = "b",
                                  .message = "rank 5 (host b, pid 4711) was killed by SIGKILL",
                                  .fix = "see its output"});
  EXPECT_EQ(finding.culprit, "rank 5 (host b, pid 4711)");
  EXPECT_EQ(finding.what, "was killed by SIGKILL");
  EXPECT_EQ(finding.fix, "see its output");
  EXPECT_EQ(finding.kind, "rank-lost");
  EXPECT_EQ(checks::exitCodeOf(std::vector{finding}), tools::kExitLost);
  EXPECT_EQ(finding.error->rank, 5);
  const ErrorInfo ofHost{.host = "c", .message = "no word from it for 5 s"};
  EXPECT_EQ(findingOf(weftTimeout, ofHost).culprit, "host c");
  const auto bug = findingOf(weftInternalError, {.message = "rank 7 (host d, pid 1) is in prose"});
  EXPECT_EQ(bug.culprit, "the job");
  EXPECT_EQ(checks::exitCodeOf(std::vector{bug}), tools::kExitInternal);
}

TEST(LostRank, WithAnotherSecretIsNoBugAndNotRetried) {
  const auto finding = findingOf(
      weftAuthentication, {.rank = 2,
                           .pid = 7,
                           .host = "b",
                           .message = "rank 2 on host b: foreign unique id or secret: it refused.",
                           .fix = "hand the same"});
  EXPECT_EQ(finding.culprit, "rank 2 (host b, pid 7)");
  EXPECT_EQ(finding.what, "rank 2 on host b: foreign unique id or secret: it refused");
  EXPECT_EQ(finding.kind, "secret-differs");
  EXPECT_EQ(checks::exitCodeOf(std::vector{finding}), tools::kExitAuthentication);
}

TEST(Starved, NeedsRanksThatAreBoundDifferently) {
  const std::vector<Member> members = healthy(4).members;
  std::vector<CoreShare> shares(4, {0.9, 0.98, "0-1"});
  shares[3].best = 0.4;
  EXPECT_TRUE(starved(members, shares).empty());
  shares[3].cores = "2-3";
  EXPECT_EQ(starved(members, shares), std::vector<int>{3});
  shares[0].best = 0.2;
  EXPECT_EQ(starved(members, shares), std::vector<int>{3}) << "rank 0's neighbours do well";
  for (CoreShare& share : shares) share.best = 0.5;
  EXPECT_TRUE(starved(members, shares).empty());
}

}  // namespace
}  // namespace weft::health
