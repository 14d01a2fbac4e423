// SPDX-License-Identifier: Apache-2.0
// MSCCL++'s JSON: what is read, what comes of it, and what is said of files that are wrong.
#include <map>
#include <random>

#include "document.h"
#include "schedule/transforms.h"
#include "verify/verify.h"

namespace weft::formats {
namespace {

using schedule::OpKind;

const std::string kPuts = "all_reduce_puts_4.json", kPackets = "all_gather_packets_2.json",
                  kGets = "all_reduce_gets_2.json";

// An all-gather of two ranks; a file may be wrong in one place of it.
constexpr const char* kSwapPlan = R"({"name": "swap", "collective": "allgather", "inplace": false,
"gpus": [
{"id": 0, "input_chunks": 1, "output_chunks": 2, "scratch_chunks": 1,
"channels": [{"channel_type": "port", "connected_to": [1]}],
"remote_buffers": [{"rank": 1, "type": "o", "access_channel_types": ["port"]}],
"semaphores": [{"init_value": 1}],
"threadblocks": [{"id": 0,
"channels": [{"channel_type": "port", "channel_ids": [0]}],
"remote_buffer_refs": [{"access_channel_type": "port", "remote_buffer_ids": [0]}],
"ops": [
{"name": "pwsf", "channel_type": "port", "channel_ids": [0],
"src_buff": [{"type": "i", "index": 0, "size": 1}], "dst_buff": [{"buffer_id": 0, "index": 0, "size": 1}]},
{"name": "sem_acquire", "semaphore_ids": [0]},
{"name": "wait", "channel_type": "port", "channel_ids": [0]},
{"name": "pipeline", "iter_context": {"unit_size": 64, "num_chunks": 1}, "ops": [
{"name": "copy", "src_buff": [{"type": "i", "index": 0, "size": 1}],
"dst_buff": [{"type": "o", "index": 0, "size": 1}]}]},
{"name": "barrier", "barrier_id": 0, "num_threadblocks": 1}]}]},
{"id": 1, "input_chunks": 1, "output_chunks": 2,
"channels": [{"channel_type": "port", "connected_to": [0]}],
"remote_buffers": [{"rank": 0, "type": "o", "access_channel_types": ["port"]}],
"threadblocks": [{"id": 0,
"channels": [{"channel_type": "port", "channel_ids": [0]}],
"remote_buffer_refs": [{"access_channel_type": "port", "remote_buffer_ids": [0]}],
"ops": [
{"name": "put", "channel_type": "port",
"src_buff": [{"type": "i", "index": 0, "size": 1}], "dst_buff": [{"buffer_id": 0, "index": 1, "size": 1}]},
{"name": "signal", "channel_type": "port", "channel_ids": [0]},
{"name": "flush", "channel_type": "port", "channel_ids": [0]},
{"name": "wait", "channel_type": "port", "channel_ids": [0]},
{"name": "copy", "src_buff": [{"type": "i", "index": 0, "size": 1}],
"dst_buff": [{"type": "o", "index": 1, "size": 1}]}]}]}]}
)";

schedule::Schedule readPlan(const std::string& example) {
  schedule::Schedule schedule;
  const Status status = readSchedule(pathOf(example), &schedule);
  EXPECT_TRUE(status.ok()) << status.text();
  return schedule;
}

std::map<OpKind, int> countOps(const schedule::Schedule& schedule, std::uint32_t rank) {
  std::map<OpKind, int> ops;
  for (const schedule::Op& op : schedule.program(rank).ops) ++ops[op.kind];
  return ops;
}

TEST(Mscclpp, PutsAreMessages) {
  std::map<OpKind, int> ops = countOps(readPlan(kPuts), 1);
  EXPECT_EQ(ops[OpKind::Put], 6);
  EXPECT_EQ(ops[OpKind::Wait], 6);
  EXPECT_EQ(ops[OpKind::Reduce], 1);
  EXPECT_EQ(ops[OpKind::Copy], 0);
}

TEST(Mscclpp, BlocksThatShareAnOpTakeTheirPart) {
  const schedule::Schedule packets = readPlan(kPackets);
  EXPECT_EQ(packets.parts, 2u);
  EXPECT_EQ(countOps(packets, 0)[OpKind::Put], 2);
}

TEST(Mscclpp, WhatIsReadFromAPeerIsAMessageThatItSendsAtOnce) {
  const schedule::Schedule gets = readPlan(kGets);
  for (const std::size_t op : {0u, 1u}) EXPECT_EQ(gets.program(0).ops[op].kind, OpKind::Put) << op;
  std::map<OpKind, int> ops = countOps(gets, 0);
  EXPECT_EQ(ops[OpKind::Put], 2);
  EXPECT_EQ(ops[OpKind::Wait], 2);
  EXPECT_EQ(ops[OpKind::Reduce], 2);
}

TEST(Mscclpp, PortsPipelinesAndSemaphoresAreRead) { EXPECT_EQ(errorOf(kSwapPlan), ""); }

TEST(Mscclpp, WhatIsNoPlan) {
  expectError("{", "file:1: no JSON");
  expectError("{\n\n\"a\": }", "file:3: no JSON");
  expectError("{\"a\": " + std::string(20, '[') + std::string(20, ']') + "}", "deeper than 12");
  expectError("{}", "file:1: lacks \"name\"");
  expectError("\n{\"name\": 1}", "file:2: \"name\" is no text");
}

struct WrongPlan {
  const char* from;
  const char* to;
  const char* error;
};

TEST(Mscclpp, WhatIsWrongInOnePlace) {
  const WrongPlan wrongs[] = {
      {"\"allgather\"", "\"reduce\"", "file:1: collective \"reduce\" is none that can be proved"},
      {"\"inplace\": false", "\"inplace\": 0", "file:1: \"inplace\" is neither true nor false"},
      {"\"inplace\": false,", "", "file:1: lacks \"inplace\""},
      {"\"gpus\": [", "\"gpus\": 1, \"x\": [", "file:1: \"gpus\" is no list"},
      {"\"gpus\": [", "\"gpus\": [], \"x\": [", "file:1: is for 0 gpus, not 2 to 1024"},
      {"\"gpus\": [", "\"gpus\": [1,", "file:1: \"gpus\" has what is no object"},
      {"\"id\": 0, \"input", "\"id\": 1, \"input", "file:3: gpu 1 stands where gpu 0 is due"},
      {"\"id\": 0, \"input", "\"id\": -1, \"input", "file:3: \"id\" is no number from 0 to 1"},
      {"\"id\": 0, \"input", "\"id\": 1.5, \"input", "file:3: \"id\" is no number"},
      {"\"output_chunks\": 2", "\"output_chunks\": 3", "file:3: 3 chunks do not cut the blocks"},
      {"\"input_chunks\": 1, \"output_chunks\": 2", "\"input_chunks\": 0, \"output_chunks\": 0",
       "file:3: has no chunks"},
      {"\"connected_to\": [1]", "\"connected_to\": [0]", "file:4: rank 0 is no peer of gpu 0"},
      {"\"connected_to\": [1]", "\"connected_to\": 1", "file:4: \"connected_to\" is no list"},
      {"\"connected_to\": [1]", "\"connected_to\": [\"1\"]", "file:4: \"connected_to\" has what"},
      {"\"type\": \"o\"", "\"type\": \"x\"", "file:5: \"x\" is no buffer"},
      {"[{\"id\": 0,", "[{\"id\": 7,", "file:7: threadblock 7 stands where 0 is due"},
      {"\"channel_ids\": [0]", "\"channel_ids\": [1]", "file:8: gpu 0 has no channel 1 of kind"},
      {"\"remote_buffer_ids\": [0]", "\"remote_buffer_ids\": [1]",
       "file:9: gpu 0 has no remote buffer 1"},
      {"\"pwsf\"", "\"push\"", "file:11: \"push\" is no operation"},
      {"\"pwsf\"", "\"gstore\"", "file:11: \"gstore\" goes through a switch's multicast memory"},
      {"\"pwsf\", \"channel_type\": \"port\", \"channel_ids\": [0]",
       "\"pwsf\", \"channel_type\": \"port\", \"channel_ids\": [3]",
       "file:11: its block has no channel 3"},
      {"\"pwsf\", \"channel_type\": \"port\", \"channel_ids\": [0]",
       "\"pwsf\", \"channel_type\": \"port\"", "file:11: names no channel"},
      {"\"buffer_id\": 0", "\"buffer_id\": 1", "file:12: its block has no remote buffer 1"},
      {"\"type\": \"i\"", "\"type\": \"?\"", "file:12: \"?\" is no buffer"},
      {"\"index\": 0, \"size\": 1}]", "\"index\": 0, \"size\": 2}]", "file:11: its sources and"},
      {"\"src_buff\": [{", "\"src_buff\": [{\"type\": \"i\", \"index\": 0, \"size\": 1}, {",
       "file:11: has 2 sources and 1 targets"},
      {"\"index\": 0", "\"index\": 1", "file:11: chunks 1 to 1 of 'i' of gpu 0, which has 1"},
      {"\"semaphore_ids\": [0]", "\"semaphore_ids\": [2]", "file:13: gpu 0 has no semaphore 2"},
      {"{\"name\": \"copy\"", "{\"ops\": [], \"name\": \"copy\"", "file:16: a pipeline in a"},
      {"{\"name\": \"sem_acquire\"", "{\"tbg_info\": 1, \"name\": \"sem_acquire\"",
       "file:13: \"tbg_info\" is no object"},
      {"{\"name\": \"sem_acquire\"",
       "{\"tbg_info\": {\"tb_id\": 0, \"tbg_size\": 61}, \"name\": \"nop\"}, {\"tbg_info\": "
       "{\"tb_id\": 0, \"tbg_size\": 2}, \"name\": \"sem_acquire\"",
       "no common multiple up to 64"},
  };
  for (const WrongPlan& wrong : wrongs)
    expectError(edited(kSwapPlan, wrong.from, wrong.to), wrong.error);
  expectError(edited(kSwapPlan, "\"output_chunks\": 2", "\"output_chunks\": 0"),
              "file:3: has more than 1 chunks", {.chunks = 3});
}

TEST(Mscclpp, WhatIsWrongTogether) {
  const std::string signal = "\"signal\", \"channel_type\": \"port\", \"channel_ids\": [0]";
  const std::string wait = "\"wait\", \"channel_type\": \"port\", \"channel_ids\": [0]";
  expectError(edited(kSwapPlan, signal, "\"nop\""),
              "file:14: gpu 0 waits for ever: for a signal that nobody gives");
  expectError(edited(kSwapPlan, wait, "\"nop\""),
              "file:26: what it puts into gpu 0 is never waited for");
  expectError(edited(kSwapPlan, wait,
                     "\"wait\", \"channel_type\": \"port\", "
                     "\"channel_ids\": [0, 0]"),
              "file:14: it waits for two signals of one channel at once");
  expectError(edited(kSwapPlan, "\"num_threadblocks\": 1", "\"num_threadblocks\": 2"),
              "file:18: gpu 0 waits for ever: for blocks that do not come to its barrier");
  expectError(edited(kSwapPlan, "\"init_value\": 1", "\"init_value\": 0"),
              "file:13: gpu 0 waits for ever: for a semaphore that nobody releases");
  expectError(edited(kSwapPlan, "\"copy\", \"src_buff\": [{\"type\": \"i\"",
                     "\"copy\", \"src_buff\": [{\"type\": \"s\""),
              "file:16: it reads chunk 0 of 's' of gpu 0, where nothing has been stored");
  expectError(edited(kSwapPlan, "\"copy\", \"src_buff\": [{\"type\": \"i\"",
                     "\"upkt\", \"src_buff\": [{\"type\": \"s\""),
              "file:16: gpu 0 waits for ever: for packets that nobody puts");
  expectError(edited(kSwapPlan, "\"copy\"", "\"nop\"", 1),
              "file:19: nothing is stored in output chunk 1 of gpu 1");
  expectError(kSwapPlan, "file:11: the plan moves more than 3 chunks", {.values = 3});
  const std::string gets = contentOf(kGets);
  expectError(edited(gets, "\"index\": 1,", "\"index\": 0,"), "it adds chunks that do not belong");
  expectError(edited(gets, "\"get\"", "\"nop\""), "where nothing has been stored");
}

// Whatever becomes of a plan by accident: an error, or a schedule that the verifier takes.
TEST(Mscclpp, MutantsAreRefusedOrRight) {
  std::mt19937 random(1);
  for (const std::string& example : {kPuts, kPackets, kGets}) {
    const std::string document = contentOf(example);
    for (int i = 0; i < 300; ++i) {
      std::string mutant = document;
      mutant[random() % mutant.size()] = static_cast<char>('0' + random() % 10);
      schedule::Schedule schedule;
      if (!parseSchedule(mutant, "file", {}, &schedule).ok()) continue;
      const Status proved = verify::verify(schedule::stageOut(schedule), {.inPlace = true});
      EXPECT_TRUE(proved.ok()) << proved.text();
    }
  }
}

}  // namespace
}  // namespace weft::formats
