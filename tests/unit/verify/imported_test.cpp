// SPDX-License-Identifier: Apache-2.0
// Schedules from files, as the plans that are bound of them, in parts of blocks that are not equal.
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/read.h"
#include "jobs.h"
#include "plan/imported.h"

namespace weft::test {
namespace {

std::string exampleOf(const char* name) {
  return std::filesystem::path(__FILE__).parent_path() / "../../../examples/schedules" / name;
}

plan::Tuning tuningOfFile(const char* name) {
  schedule::Schedule schedule;
  const Status read = formats::readSchedule(exampleOf(name), &schedule);
  EXPECT_TRUE(read.ok()) << read.text();
  plan::Tuning tuning = tuningOf({.ranks = schedule.ranks});
  tuning.imported = plan::importSchedule(name, std::move(schedule));
  return tuning;
}

// Calls of no, few and many elements, which parts of blocks divide or not, in one segment and several.
void proveFile(const char* name, reduce::RedOp op) {
  const plan::Tuning tuning = tuningOfFile(name);
  plan::Call call;
  call.collective = tuning.imported->schedule.collective;
  call.type = reduce::DType::F32;
  call.op = op;
  const plan::Candidate candidate{&tuning.imported->algorithm};
  const Form form{plan::scheduleOf(candidate, call, tuning), schedule::SumOrder::Algorithm, false};
  for (const Placement placement :
       {Placement::Apart, Placement::InPlace, Placement::OddRanksInPlace}) {
    if (placement != Placement::Apart && !schedule::allowsInPlace(call.collective)) continue;
    JobMaker maker(form, call, placement);
    for (const std::uint64_t count : {0u, 1u, 3u, 12u, 13u, 63u, 64u, 65u, 401u})
      ASSERT_TRUE(maker.add(count).ok());
    const BoundJob bound = maker.take();
    const Status proved = prove(bound.job);
    EXPECT_TRUE(proved.ok()) << name << ": " << proved.text();
  }
}

TEST(Imported, ItsPlansAreProved) {
  using enum reduce::RedOp;
  for (const char* name :
       {"all_reduce_ring_4.xml", "all_reduce_pairs_4.xml", "reduce_scatter_pairs_4.xml",
        "all_reduce_puts_4.json", "all_reduce_gets_2.json"})
    for (const reduce::RedOp op : {Sum, Avg, PreMulSum}) proveFile(name, op);
  proveFile("all_gather_doubling_4.xml", Sum);
  proveFile("all_gather_packets_2.json", Sum);
  proveFile("all_to_all_pairs_4.xml", Sum);
}

}  // namespace
}  // namespace weft::test
