// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/unique_id.h"

#include <gtest/gtest.h>

#include "bootstrap/job.h"
#include "helpers.h"
#include "tests/unit/base/scoped_env.h"

namespace weft::bootstrap {
namespace {

using test::expectHas;
using test::ScopedEnv;

IdContent example() {
  IdContent content;
  content.origin = IdContent::Origin::Address;
  content.addresses.resize(2);
  content.addresses[0].ip = {10, 0, 0, 9};
  content.addresses[0].port = 4242;
  content.addresses[1].v6 = true;
  content.addresses[1].ip = {0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  content.addresses[1].port = 65535;
  content.secret.fill(std::byte{0xa5});
  content.createdUnixSeconds = 1700000000;
  content.job = {JobKind::Slurm, 0x123456789abcdef0u};
  return content;
}

TEST(UniqueId, SurvivesTheRoundTrip) {
  const IdContent before = example();
  IdContent after;
  ASSERT_TRUE(decodeId(encodeId(before), &after).ok());
  EXPECT_EQ(after.origin, before.origin);
  EXPECT_EQ(after.addresses, before.addresses);
  EXPECT_EQ(after.secret, before.secret);
  EXPECT_EQ(after.createdUnixSeconds, before.createdUnixSeconds);
  EXPECT_EQ(after.job.kind, before.job.kind);
  EXPECT_EQ(after.job.nonce, before.job.nonce);
}

TEST(UniqueId, EveryChangedBitIsNoticed) {
  const UniqueId id = encodeId(example());
  for (std::size_t bit = 0; bit < id.bytes.size() * 8; ++bit) {
    UniqueId changed = id;
    changed.bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    IdContent content;
    EXPECT_EQ(decodeId(changed, &content).code(), Code::InvalidArgument) << "bit " << bit;
  }
}

TEST(UniqueId, ZerosAndOtherVersionsAreNamed) {
  IdContent content;
  expectHas(decodeId(UniqueId{}, &content).text(), "not one of weft's");
  UniqueId newer = encodeId(example());
  newer.bytes[4] = std::byte{9};
  expectHas(decodeId(newer, &content).text(), "version 9");
}

TEST(UniqueId, TwoIdsDiffer) {
  const UniqueId first = test::newId(), second = test::newId();
  EXPECT_NE(first.bytes, second.bytes);
  EXPECT_NE(test::contentOf(first).secret, test::contentOf(second).secret);
}

TEST(UniqueId, SharedAddressAndSecretGiveTheSameBytes) {
  UniqueId a, b, other;
  const Deadline soon = Deadline::in(5000);
  ASSERT_TRUE(uniqueIdFromAddress("127.0.0.1:4711", "s", soon, &a).ok());
  ASSERT_TRUE(uniqueIdFromAddress("127.0.0.1:4711", "s", soon, &b).ok());
  ASSERT_TRUE(uniqueIdFromAddress("127.0.0.1:4711", "t", soon, &other).ok());
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_NE(a.bytes, other.bytes);
}

TEST(UniqueId, Age) {
  EXPECT_EQ(ageOf(100, 112), "12 s ago");
  EXPECT_EQ(ageOf(100, 100 + 600), "10 min ago");
  EXPECT_EQ(ageOf(100, 100 + 3 * 3600), "3 h ago");
  EXPECT_EQ(ageOf(100, 100 + 3 * 86400), "3 days ago");
  EXPECT_EQ(ageOf(100, 50), "0 s ago");
  EXPECT_EQ(ageOf(0, 50), "at an unknown time");
}

TEST(Job, AnIdOfAnotherJobIsRefused) {
  ScopedEnv none("TORCHELASTIC_RUN_ID", nullptr), nor("PMIX_NAMESPACE", nullptr);
  IdContent content;
  {
    ScopedEnv job("SLURM_JOB_ID", "41");
    content.job = currentJob();
    EXPECT_EQ(content.job.kind, JobKind::Slurm);
    EXPECT_TRUE(checkSameJob(content).ok());
  }
  ScopedEnv job("SLURM_JOB_ID", "77");
  const Status status = checkSameJob(content);
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  expectHas(status.text(), "unique id belongs to job ");
  expectHas(status.text(), "; this job is ");
}

TEST(Job, LaunchersOfDifferentKindsAreNotCompared) {
  IdContent content;
  content.job = {JobKind::Slurm, 1};
  ScopedEnv slurm("SLURM_JOB_ID", nullptr), torch("TORCHELASTIC_RUN_ID", "r");
  EXPECT_TRUE(checkSameJob(content).ok());
}

TEST(Job, NodesOfOneBatchJobAreOneJob) {
  ScopedEnv first("AWS_BATCH_JOB_ID", "abc#0");
  const std::string main = jobName(JobKind::AwsBatch);
  ScopedEnv second("AWS_BATCH_JOB_ID", "abc#1");
  EXPECT_EQ(jobName(JobKind::AwsBatch), main);
}

}  // namespace
}  // namespace weft::bootstrap
