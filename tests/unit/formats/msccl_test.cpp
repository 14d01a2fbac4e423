// SPDX-License-Identifier: Apache-2.0
// MSCCL's XML: what is read, what comes of it, and what is said of files that are wrong.
#include <map>
#include <random>

#include "document.h"
#include "schedule/registry.h"
#include "schedule/transforms.h"
#include "verify/verify.h"

namespace weft::formats {
namespace {

using schedule::Collective;

const std::string kRing = "all_reduce_ring_4.xml", kPairs = "all_reduce_pairs_4.xml",
                  kDoubling = "all_gather_doubling_4.xml";

// Two ranks; a file may be wrong in one place of it.
constexpr const char* kSwap = R"(<algo name="swap" nchunksperloop="2" ngpus="2" coll="allgather">
<gpu id="0" i_chunks="1" o_chunks="2" s_chunks="1">
<tb id="0" send="1" recv="1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" cnt="1" hasdep="1"/>
<step s="1" type="r" dstbuf="o" dstoff="1"/>
</tb>
<tb id="1" send="-1" recv="-1" chan="0">
<step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" depid="0" deps="0"/>
</tb>
</gpu>
<gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0">
<tb id="0" send="0" recv="0" chan="0">
<op step="0" type="s" buf="i" off="0"/>
<op step="1" type="r" buf="o" off="0"/>
<op step="2" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1"/>
</tb>
</gpu>
</algo>
)";

schedule::Schedule read(const std::string& example) {
  schedule::Schedule schedule;
  const Status status = readSchedule(pathOf(example), &schedule);
  EXPECT_TRUE(status.ok()) << status.text();
  return schedule;
}

std::map<schedule::OpKind, int> opsOf(const schedule::Schedule& schedule, std::uint32_t rank) {
  std::map<schedule::OpKind, int> ops;
  for (const schedule::Op& op : schedule.program(rank).ops) ++ops[op.kind];
  return ops;
}

TEST(Msccl, TheExamplesAreRead) {
  const std::map<std::string, Collective> examples{
      {kRing, Collective::AllReduce},
      {kPairs, Collective::AllReduce},
      {kDoubling, Collective::AllGather},
      {"reduce_scatter_pairs_4.xml", Collective::ReduceScatter},
      {"all_to_all_pairs_4.xml", Collective::AllToAll}};
  for (const auto& [example, collective] : examples) {
    const schedule::Schedule schedule = read(example);
    EXPECT_EQ(schedule.collective, collective) << example;
    EXPECT_EQ(schedule.ranks, 4u) << example;
  }
}

// It is what weft's own ring does, but that each file has its name.
TEST(Msccl, ARingIsARing) {
  const schedule::Schedule ring =
      schedule::findAlgorithm(Collective::AllReduce, "ring")->make({.ranks = 4});
  const schedule::Schedule imported = read(kRing);
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(opsOf(imported, rank), opsOf(ring, rank)) << rank;
  EXPECT_EQ(imported.tmpChunks, ring.tmpChunks);
  EXPECT_TRUE(imported.name.starts_with("all-reduce ring (")) << imported.name;
}

// Sums that are made of sums are one op, in the order of ranks whatever the file's.
TEST(Msccl, SumsAreJoinedInTheOrderOfRanks) {
  const schedule::Schedule pairs = read(kPairs);
  EXPECT_EQ(opsOf(pairs, 1)[schedule::OpKind::Reduce], 1);
  EXPECT_TRUE(verify::verify(pairs, {.order = schedule::SumOrder::Rank}).ok());
}

// Runs stay together where they are at both ends.
TEST(Msccl, RunsAreOneMessage) {
  const schedule::Schedule doubling = read(kDoubling);
  EXPECT_EQ(doubling.parts, 2u);
  EXPECT_EQ(doubling.tmpChunks, 0u);
  EXPECT_LE(opsOf(doubling, 0)[schedule::OpKind::Put], 3);
}

TEST(Msccl, BothDialectsAreRead) { EXPECT_EQ(errorOf(kSwap), ""); }

TEST(Msccl, FilesOfOtherBytesHaveOtherNames) {
  schedule::Schedule one, other;
  ASSERT_TRUE(parseSchedule(kSwap, "file", {}, &one).ok());
  ASSERT_TRUE(parseSchedule(std::string(kSwap) + "\n", "file", {}, &other).ok());
  EXPECT_NE(one.name, other.name);
  EXPECT_NE(fingerprintOfFile(pathOf(kRing)), fingerprintOfFile(pathOf(kPairs)));
  EXPECT_EQ(fingerprintOfFile("missing.xml"), "none");
}

TEST(Msccl, AFileIsToldByItsName) {
  for (const char* name : {"ring.xml", "a/ring", "plan.json"})
    EXPECT_TRUE(isScheduleFile(name)) << name;
  for (const char* name : {"ring", "mesh:direct", ""}) EXPECT_FALSE(isScheduleFile(name)) << name;
}

TEST(Msccl, WhatIsNoSchedule) {
  schedule::Schedule schedule;
  EXPECT_NE(readSchedule("/tmp", &schedule).text().find("/tmp: cannot be read: Is a directory"),
            std::string::npos);
  EXPECT_NE(readSchedule("missing.xml", &schedule).text().find("cannot be read"),
            std::string::npos);
  expectError("", "file:1: neither XML nor JSON");
  expectError("ring", "file:1: neither XML nor JSON");
  expectError("<algo", "file:1: no XML");
  expectError(edited(kSwap, "</tb>", "", 2), "file:17: no XML: mismatched tag");
  expectError(kSwap, "has more than 100 bytes", {.bytes = 100});
}

struct Wrong {
  const char* from;
  const char* to;
  const char* error;
};

// Each of one attribute or element.
TEST(Msccl, WhatIsWrongInOnePlace) {
  const Wrong wrongs[] = {
      {"<algo name", "<plan name", "file:1: <plan> is not known here"},
      {"name=\"swap\"", "color=\"red\"", "file:1: <algo> has no attribute 'color'"},
      {"name=\"swap\" ", "", "file:1: <algo> lacks 'name'"},
      {"<tb id=\"1\" send=\"-1\"", "<copy i_off=\"0\" o_off=\"0\"/><tb id=\"1\" send=\"-1\"", ""},
      {"<tb id=\"1\"", "<copy i_off=\"0\" o_off=\"2\"/><tb id=\"1\"",
       "file:7: o_off=\"2\" is no number from 0 to 1"},
      {"<tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">", "<copy i_off=\"0\" o_off=\"0\">",
       "file:8: <step> is not known here"},
      {"coll=\"allgather\"", "coll=\"alltonext\"", "file:1: coll=\"alltonext\" is no collective"},
      {"ngpus=\"2\"", "ngpus=\"1\"", "file:1: ngpus=\"1\" is no number from 2 to 1024"},
      {"ngpus=\"2\"", "ngpus=\"2x\"", "file:1: ngpus=\"2x\" is no number"},
      {"ngpus=\"2\"", "ngpus=\"3\"", "file:1: nchunksperloop=\"2\" does not cut the blocks"},
      {"id=\"1\" i_chunks", "id=\"0\" i_chunks", "file:11: gpu 0 is described already, in line 2"},
      {"id=\"1\" i_chunks", "id=\"2\" i_chunks", "file:11: id=\"2\" is no number from 0 to 1"},
      {"<tb id=\"1\"", "<tb id=\"2\"", "file:7: tb 2 stands where tb 1 is due"},
      {"send=\"1\"", "send=\"0\"", "file:3: gpu 0 has itself as a peer"},
      {"send=\"1\"", "send=\"-1\"", "file:4: this step sends, but its block has send=\"-1\""},
      {"recv=\"1\"", "recv=\"-1\"", "file:5: this step receives, but its block has recv=\"-1\""},
      {"<step s=\"1\"", "<step s=\"2\"", "file:5: step 2 stands where step 1 is due"},
      {"type=\"s\"", "type=\"put\"", "file:4: type=\"put\" is no operation"},
      {"type=\"s\" ", "", "file:4: <step> lacks 'type'"},
      {"srcbuf=\"i\"", "srcbuf=\"x\"", "file:4: srcbuf=\"x\" is no buffer"},
      {"srcoff=\"0\"", "srcoff=\"1\"", "file:4: chunks 1 to 1 of 'i', which has 1"},
      {"cnt=\"1\"", "cnt=\"0\"", "file:4: cnt=\"0\" is no number from 1"},
      {"hasdep=\"1\"", "hasdep=\"0\"", "file:4: hasdep is not 1, but the step in line 8"},
      {"deps=\"0\"", "deps=\"7\"", "file:8: it runs after step 7 of tb 0, which this gpu has not"},
      {"depid=\"0\"", "depid=\"-1\"", "file:8: of depid and deps, one is -1"},
  };
  for (const Wrong& wrong : wrongs) expectError(edited(kSwap, wrong.from, wrong.to), wrong.error);
}

TEST(Msccl, AGpuMayNotBeMissing) {
  std::string document = kSwap;
  const std::size_t second = document.find("<gpu id=\"1\"");
  document.replace(second, document.find("</gpu>", second) + 6 - second, "");
  expectError(document, "file:1: gpu 1 is missing of 2");
}

// What the steps do together.
TEST(Msccl, WhatIsWrongTogether) {
  const std::string ring = contentOf(kRing), pairs = contentOf(kPairs);
  const std::string receive = "<op step=\"1\" type=\"r\" buf=\"o\" off=\"0\"/>";
  expectError(edited(kSwap, receive, "<op step=\"1\" type=\"nop\"/>"),
              "file:4: what it sends to gpu 1 is never received");
  expectError(
      edited(kSwap, "type=\"s\" buf", "type=\"nop\" buf"),
      "file:5: it waits for ever: for a message from gpu 1 on channel 0, which sends fewer");
  expectError(edited(kSwap, "send=\"0\" recv=\"0\" chan=\"0\"", "send=\"0\" recv=\"0\" chan=\"1\""),
              "on channel 0, to which no block sends");
  expectError(
      edited(kSwap, "off=\"0\"/>\n<op step=\"1\"",
             "off=\"0\" depid=\"0\" deps=\"1\"/>\n"
             "<op step=\"1\" hasdep=\"1\""),
      "file:13: it waits for ever: for line 13 or what follows it there, which waits for this");
  expectError(edited(kSwap, "<tb id=\"1\" send=\"-1\"", "<tb id=\"1\" send=\"1\""),
              "file:7: gpu 0 sends to gpu 1 on channel 0 by a second block at one end");
  expectError(edited(kSwap, "srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\"",
                     "srcbuf=\"s\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\""),
              "file:8: it reads chunk 0 of 's' on gpu 0, where nothing has been stored");
  expectError(edited(kSwap, "dstbuf=\"o\" dstoff=\"0\"", "dstbuf=\"s\" dstoff=\"0\""),
              "file:2: nothing is stored in output chunk 0 of gpu 0");
  expectError(edited(kSwap, "buf=\"o\" off=\"0\"", "buf=\"o\" off=\"1\""), "file:11: nothing is");
  expectError(edited(contentOf(kDoubling), "cnt=\"2\"", "cnt=\"1\"", 2),
              "it receives 1 chunks, but line");
  expectError(edited(pairs, "srcbuf=\"s\" srcoff=\"0\"", "srcbuf=\"s\" srcoff=\"1\""),
              "is not what all-reduce wants");
  expectError(edited(ring, "type=\"rrcs\" srcbuf=\"i\" srcoff=\"0\"",
                     "type=\"rrcs\" srcbuf=\"i\" srcoff=\"1\""),
              "it adds chunks that do not belong together");
  expectError(ring, "moves more than 40 chunks", {.values = 40});
}

// Whatever becomes of a file by accident: an error, or a schedule that the verifier takes.
TEST(Msccl, MutantsAreRefusedOrRight) {
  std::mt19937 random(1);
  int accepted = 0;
  for (const std::string& example : {kRing, kPairs, kDoubling}) {
    const std::string document = contentOf(example);
    for (int i = 0; i < 300; ++i) {
      std::string mutant = document;
      const std::size_t at = random() % mutant.size();
      mutant[at] = static_cast<char>('0' + random() % 10);
      schedule::Schedule schedule;
      if (!parseSchedule(mutant, "file", {}, &schedule).ok()) continue;
      ++accepted;
      const Status proved = verify::verify(schedule::stageOut(schedule), {.inPlace = true});
      EXPECT_TRUE(proved.ok()) << proved.text();
    }
  }
  EXPECT_GT(accepted, 0);  // names, and blocks that are numbered otherwise
}

}  // namespace
}  // namespace weft::formats
