// SPDX-License-Identifier: Apache-2.0
// Every bad argument of every entry point: a code, a sentence, no effect, and the communicator
// works afterwards.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "world.h"

namespace weft::testing {
namespace {

constexpr weftDataType_t kNoType = static_cast<weftDataType_t>(15);
constexpr weftRedOp_t kNoOp = static_cast<weftRedOp_t>(1234);

// Two ranks of one thread; rank 1 makes the good calls that show that rank 0 still works.
class Arguments : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(weftCommInitAll(comms_, 2, nullptr), weftSuccess); }
  void TearDown() override {
    for (const weftComm_t comm : comms_) EXPECT_EQ(weftCommDestroy(comm), weftSuccess);
  }

  // The call must fail so, and say something.
  void refuses(weftResult_t result, const char* sentence, weftResult_t code = weftInvalidArgument) {
    EXPECT_EQ(result, code) << weftGetErrorString(result) << ": " << weftGetLastError(nullptr);
    EXPECT_NE(std::string(weftGetLastError(nullptr)).find(sentence), std::string::npos)
        << "'" << weftGetLastError(nullptr) << "' does not say '" << sentence << "'";
  }

  // A sum over both ranks, driven by this thread.
  void stillWorks() {
    std::array<float, 2> values{1, 2};
    weftGroupStart();
    for (std::size_t r = 0; r < 2; ++r)
      EXPECT_EQ(
          weftAllReduce(&values[r], &values[r], 1, weftFloat, weftSum, comms_[r], nullptr, nullptr),
          weftSuccess);
    EXPECT_EQ(weftGroupEnd(), weftSuccess) << weftGetLastError(nullptr);
    EXPECT_EQ(values[0], 3);
    EXPECT_EQ(values[1], 3);
  }

  weftComm_t comms_[2] = {};
  float in_[64] = {}, out_[64] = {};
};

// All collectives in one shape, so that each is given each bad argument.
using Call = std::function<weftResult_t(const void*, void*, std::size_t, weftDataType_t, weftComm_t,
                                        weftStream_t, const weftOpts_t*)>;
struct Entry {
  const char* name;
  Call call;
};
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {"AllReduce", [](auto i, auto o, auto n, auto t, auto c, auto s,
                       auto p) { return weftAllReduce(i, o, n, t, weftSum, c, s, p); }},
      {"AllGather", [](auto i, auto o, auto n, auto t, auto c, auto s,
                       auto p) { return weftAllGather(i, o, n, t, c, s, p); }},
      {"ReduceScatter", [](auto i, auto o, auto n, auto t, auto c, auto s,
                           auto p) { return weftReduceScatter(i, o, n, t, weftSum, c, s, p); }},
      {"Broadcast", [](auto i, auto o, auto n, auto t, auto c, auto s,
                       auto p) { return weftBroadcast(i, o, n, t, 0, c, s, p); }},
      {"Reduce", [](auto i, auto o, auto n, auto t, auto c, auto s,
                    auto p) { return weftReduce(i, o, n, t, weftSum, 0, c, s, p); }},
      {"Gather", [](auto i, auto o, auto n, auto t, auto c, auto s,
                    auto p) { return weftGather(i, o, n, t, 0, c, s, p); }},
      {"Scatter", [](auto i, auto o, auto n, auto t, auto c, auto s,
                     auto p) { return weftScatter(i, o, n, t, 0, c, s, p); }},
      {"AlltoAll", [](auto i, auto o, auto n, auto t, auto c, auto s,
                      auto p) { return weftAlltoAll(i, o, n, t, c, s, p); }},
      {"AllGatherV",
       [](auto i, auto o, auto n, auto t, auto c, auto s, auto p) {
         const std::size_t counts[] = {n, n};
         return weftAllGatherV(i, o, counts, nullptr, t, c, s, p);
       }},
      {"ReduceScatterV",
       [](auto i, auto o, auto n, auto t, auto c, auto s, auto p) {
         const std::size_t counts[] = {n, n};
         return weftReduceScatterV(i, o, counts, nullptr, t, weftSum, c, s, p);
       }},
      {"GatherV",
       [](auto i, auto o, auto n, auto t, auto c, auto s, auto p) {
         const std::size_t counts[] = {n, n};
         return weftGatherV(i, n, o, counts, nullptr, t, 0, c, s, p);
       }},
      {"ScatterV",
       [](auto i, auto o, auto n, auto t, auto c, auto s, auto p) {
         const std::size_t counts[] = {n, n};
         return weftScatterV(i, counts, nullptr, o, n, t, 0, c, s, p);
       }},
      {"AlltoAllV",
       [](auto i, auto o, auto n, auto t, auto c, auto s, auto p) {
         const std::size_t counts[] = {n, n};
         return weftAlltoAllV(i, counts, nullptr, o, counts, nullptr, t, c, s, p);
       }},
  };
  return all;
}

TEST_F(Arguments, OfEveryCollective) {
  const std::uintptr_t garbage = 0x1234567812345678;
  weftStream_t stream = nullptr;
  ASSERT_EQ(weftStreamCreate(&stream), weftSuccess);
  for (const Entry& e : entries()) {
    SCOPED_TRACE(e.name);
    const weftComm_t comm = comms_[0];
    refuses(e.call(nullptr, out_, 8, weftFloat, comm, nullptr, nullptr), "sendbuff is NULL");
    refuses(e.call(in_, nullptr, 8, weftFloat, comm, nullptr, nullptr), "recvbuff is NULL");
    refuses(e.call(in_, out_, 8, kNoType, comm, nullptr, nullptr), "data type 15 is unknown");
    refuses(e.call(in_, out_, 8, static_cast<weftDataType_t>(weftNumTypes), comm, nullptr, nullptr),
            "data type 10 is unknown");
    refuses(e.call(in_, out_, SIZE_MAX / 2, weftDouble, comm, nullptr, nullptr), "count ");
    refuses(e.call(in_, in_ + 1, 16, weftFloat, comm, nullptr, nullptr), "overlap");
    refuses(e.call(in_, out_, 8, weftFloat, nullptr, nullptr, nullptr), "comm is NULL");
    refuses(
        e.call(in_, out_, 8, weftFloat, reinterpret_cast<weftComm_t>(garbage), nullptr, nullptr),
        "comm is not a valid handle");
    refuses(e.call(in_, out_, 8, weftFloat, reinterpret_cast<weftComm_t>(stream), nullptr, nullptr),
            "comm is not a valid handle");
    refuses(e.call(in_, out_, 8, weftFloat, comm, reinterpret_cast<weftStream_t>(comm), nullptr),
            "stream is not a valid handle");
  }
  stillWorks();
  weftStreamDestroy(stream);
}

TEST_F(Arguments, OptionsOfEveryCollective) {
  for (const Entry& e : entries()) {
    SCOPED_TRACE(e.name);
    weftOpts_t opts = WEFT_OPTS_INITIALIZER;
    const auto call = [&] { return e.call(in_, out_, 8, weftFloat, comms_[0], nullptr, &opts); };
    opts.algorithm = "telepathy";
    refuses(call(), "unknown algorithm 'telepathy'", weftInvalidUsage);
    opts.algorithm = "mesh:sideways";
    const bool exchanges = std::string(e.name).ends_with("V") && std::string(e.name)[0] != 'R' &&
                           std::string(e.name) != "AllGatherV";
    refuses(call(), exchanges ? "unknown algorithm 'mesh:sideways'" : "unknown protocol 'sideways'",
            weftInvalidUsage);
    opts = WEFT_OPTS_INITIALIZER;
    for (const int bad : {0, -1}) {
      opts.timeoutMs = bad;
      refuses(call(), "timeoutMs is ");
    }
    opts = WEFT_OPTS_INITIALIZER;
    opts.magic = 7;
    refuses(call(), "fix: start from WEFT_OPTS_INITIALIZER");
    for (const std::size_t size : {std::size_t{0}, std::size_t{8}, SIZE_MAX}) {
      opts = WEFT_OPTS_INITIALIZER;
      opts.size = size;
      refuses(call(), "fix: start from WEFT_OPTS_INITIALIZER");
    }
  }
  stillWorks();
}

// As code of NCCL does.
TEST_F(Arguments, OptionsMayBeLeftOut) {
  const std::size_t counts[] = {1, 1};
  weftGroupStart();
  for (const weftComm_t c : comms_) {
    float* const in = c == comms_[0] ? in_ : in_ + 32;
    float* const out = c == comms_[0] ? out_ : out_ + 32;
    *in = 1;
    EXPECT_EQ(weftAllReduce(in, out, 1, weftFloat, weftSum, c, nullptr), weftSuccess);
    EXPECT_EQ(weftAllGather(in, out + 2, 1, weftFloat, c, nullptr), weftSuccess);
    EXPECT_EQ(weftAllGatherV(in, out + 4, counts, nullptr, weftFloat, c, nullptr), weftSuccess);
    EXPECT_EQ(weftReduceScatter(in, out + 6, 1, weftFloat, weftSum, c, nullptr), weftSuccess);
    EXPECT_EQ(weftReduceScatterV(in, out + 7, counts, nullptr, weftFloat, weftSum, c, nullptr),
              weftSuccess);
    EXPECT_EQ(weftBroadcast(in, out + 8, 1, weftFloat, 0, c, nullptr), weftSuccess);
    EXPECT_EQ(weftReduce(in, out + 9, 1, weftFloat, weftSum, 0, c, nullptr), weftSuccess);
    EXPECT_EQ(weftGather(in, out + 10, 1, weftFloat, 0, c, nullptr), weftSuccess);
    EXPECT_EQ(weftScatter(in, out + 12, 1, weftFloat, 0, c, nullptr), weftSuccess);
    EXPECT_EQ(weftAlltoAll(in, out + 14, 1, weftFloat, c, nullptr), weftSuccess);
    EXPECT_EQ(weftGatherV(in, 1, out + 20, counts, nullptr, weftFloat, 0, c, nullptr), weftSuccess);
    EXPECT_EQ(weftScatterV(in, counts, nullptr, out + 22, 1, weftFloat, 0, c, nullptr),
              weftSuccess);
    EXPECT_EQ(weftAlltoAllV(in, counts, nullptr, out + 24, counts, nullptr, weftFloat, c, nullptr),
              weftSuccess);
    EXPECT_EQ(weftSend(in, 1, weftFloat, c == comms_[0] ? 1 : 0, c, nullptr), weftSuccess);
    EXPECT_EQ(weftRecv(out + 16, 1, weftFloat, c == comms_[0] ? 1 : 0, c, nullptr), weftSuccess);
    EXPECT_EQ(weftBarrier(c, nullptr), weftSuccess);
  }
  EXPECT_EQ(weftGroupEnd(), weftSuccess) << weftGetLastError(nullptr);
  EXPECT_EQ(out_[0], 2);
  EXPECT_EQ(out_[16], 1);
}

TEST_F(Arguments, RootsOpsAndBlocks) {
  const weftComm_t c = comms_[0];
  for (const int root : {-1, 2, 1 << 30}) {
    refuses(weftBroadcast(in_, out_, 1, weftFloat, root, c, nullptr, nullptr), "root is ");
    refuses(weftReduce(in_, out_, 1, weftFloat, weftSum, root, c, nullptr, nullptr), "root is ");
    refuses(weftGather(in_, out_, 1, weftFloat, root, c, nullptr, nullptr), "root is ");
    refuses(weftScatter(in_, out_, 1, weftFloat, root, c, nullptr, nullptr), "root is ");
    refuses(weftSend(in_, 1, weftFloat, root, c, nullptr, nullptr), "peer is ");
    refuses(weftRecv(out_, 1, weftFloat, root, c, nullptr, nullptr), "peer is ");
  }
  for (const weftRedOp_t op : {kNoOp, weftNumOps, weftMaxRedOp}) {
    refuses(weftAllReduce(in_, out_, 1, weftFloat, op, c, nullptr, nullptr), "op is neither");
    refuses(weftRedOpDestroy(op, c), "op was not made by");
  }
  refuses(weftRedOpDestroy(weftSum, c), "op was not made by");
  for (const weftDataType_t type : {weftFloat16, weftFloat32, weftFloat64, weftBfloat16})
    refuses(weftAllReduce(in_, out_, 1, type, weftBxor, c, nullptr, nullptr),
            "op bxor is bitwise, of integers only, and the call is for ");
  const std::size_t counts[] = {4, 4}, overlapping[] = {0, 3}, far[] = {0, SIZE_MAX - 1};
  refuses(weftAllGatherV(in_, out_, nullptr, nullptr, weftFloat, c, nullptr, nullptr),
          "counts is NULL");
  refuses(weftAllGatherV(in_, out_, counts, overlapping, weftFloat, c, nullptr, nullptr),
          "blocks overlap");
  refuses(weftReduceScatterV(in_, out_, counts, far, weftFloat, weftSum, c, nullptr, nullptr),
          "exceeds the address space");
  refuses(
      weftAlltoAllV(in_, nullptr, nullptr, out_, counts, nullptr, weftFloat, c, nullptr, nullptr),
      "sendcounts is NULL");
  refuses(
      weftAlltoAllV(in_, counts, nullptr, out_, nullptr, nullptr, weftFloat, c, nullptr, nullptr),
      "recvcounts is NULL");
  refuses(weftAlltoAllV(in_, counts, nullptr, out_, counts, overlapping, weftFloat, c, nullptr,
                        nullptr),
          "blocks overlap");
  refuses(weftGatherV(in_, 4, out_, nullptr, nullptr, weftFloat, 0, c, nullptr, nullptr),
          "recvcounts is NULL");
  refuses(weftScatterV(in_, nullptr, nullptr, out_, 4, weftFloat, 0, c, nullptr, nullptr),
          "sendcounts is NULL");
  refuses(weftGatherV(in_, 3, out_, counts, nullptr, weftFloat, 0, c, nullptr, nullptr),
          "rank 0 sends 3 elements to itself and expects 4");
  refuses(weftGatherV(in_, 3, out_, counts, nullptr, weftFloat, 2, c, nullptr, nullptr),
          "root is ");
  stillWorks();
}

TEST_F(Arguments, OfPointToPointAndMadeOperations) {
  const weftComm_t c = comms_[0];
  refuses(weftSend(nullptr, 1, weftFloat, 1, c, nullptr, nullptr), "sendbuff is NULL");
  refuses(weftRecv(nullptr, 1, weftFloat, 1, c, nullptr, nullptr), "recvbuff is NULL");
  refuses(weftSend(in_, 1, kNoType, 1, c, nullptr, nullptr), "data type 15");
  refuses(weftRecv(out_, SIZE_MAX, weftFloat, 1, c, nullptr, nullptr), "count ");
  refuses(weftSend(in_, 1, weftFloat, 0, c, nullptr, nullptr), "to itself", weftInvalidUsage);
  weftRedOp_t op = weftSum;
  const float scalar = 2;
  refuses(weftRedOpCreatePreMulSum(nullptr, &scalar, weftFloat, c), "op is NULL");
  refuses(weftRedOpCreatePreMulSum(&op, nullptr, weftFloat, c), "scalar is NULL");
  refuses(weftRedOpCreatePreMulSum(&op, &scalar, kNoType, c), "data type 15");
  ASSERT_EQ(weftRedOpCreatePreMulSum(&op, &scalar, weftFloat, c), weftSuccess);
  refuses(weftAllReduce(in_, out_, 1, weftDouble, op, c, nullptr, nullptr), "op was made for");
  refuses(weftAllReduce(in_, out_, 1, weftFloat, op, comms_[1], nullptr, nullptr), "op is neither");
  EXPECT_EQ(weftRedOpDestroy(op, c), weftSuccess);
  refuses(weftRedOpDestroy(op, c), "destroyed already");
  refuses(weftGroupEnd(), "without weftGroupStart", weftInvalidUsage);
  stillWorks();
}

TEST_F(Arguments, OfCreation) {
  weftComm_t comm = nullptr;
  weftUniqueId id;
  refuses(weftGetUniqueId(nullptr), "id is NULL");
  std::memset(&id, 0x5a, sizeof(id));
  const weftResult_t garbage = weftCommInitRank(&comm, 2, id, 0);
  EXPECT_EQ(garbage, weftInvalidArgument) << weftGetLastError(nullptr);
  EXPECT_EQ(comm, nullptr);
  refuses(weftCommInitRank(nullptr, 2, id, 0), "comm is NULL");
  for (const int n : {0, -1, 1 << 30}) refuses(weftCommInitRank(&comm, n, id, 0), "nranks is ");
  for (const int r : {2, -1}) refuses(weftCommInitRank(&comm, 2, id, r), "rank is ");
  refuses(weftCommInitAll(nullptr, 2, nullptr), "comms is NULL");
  refuses(weftCommInitAll(&comm, 0, nullptr), "nranks is 0");
  refuses(weftCommInitFromEnv(nullptr, nullptr), "comm is NULL");
  refuses(weftCommSplit(comms_[0], 0, 0, nullptr, nullptr), "newcomm is NULL");
  refuses(weftCommSplit(comms_[0], -5, 0, &comm, nullptr), "color is -5");
  stillWorks();
}

TEST_F(Arguments, ConfigsOfAllAges) {
  weftComm_t comm = nullptr;
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  const auto make = [&] { return weftCommInitAllConfig(&comm, 1, nullptr, &config); };
  config.magic = 1;
  refuses(make(), "WEFT_CONFIG_INITIALIZER");
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, SIZE_MAX}) {
    config = WEFT_CONFIG_INITIALIZER;
    config.size = size;
    refuses(make(), "WEFT_CONFIG_INITIALIZER");
  }
  config = WEFT_CONFIG_INITIALIZER;
  config.transport = "pigeon";
  refuses(make(), "unknown transport 'pigeon'");
  config.transport = "faulty:nonsense=1";
  EXPECT_EQ(make(), weftInvalidArgument) << weftGetLastError(nullptr);
  for (int weftConfig_t::*field : {&weftConfig_t::timeoutMs, &weftConfig_t::initTimeoutMs}) {
    config = WEFT_CONFIG_INITIALIZER;
    config.*field = 0;
    refuses(make(), "imeoutMs is 0 ms");
  }
  // An older caller knows fewer fields; what lies behind its struct is none of weft's business.
  config = WEFT_CONFIG_INITIALIZER;
  config.size = offsetof(weftConfig_t, commName);
  config.commName = reinterpret_cast<const char*>(1);
  config.transport = reinterpret_cast<const char*>(1);
  ASSERT_EQ(make(), weftSuccess) << weftGetLastError(nullptr);
  weftCommDestroy(comm);
  // A newer caller is welcome as long as it does not use what is new.
  struct {
    weftConfig_t known = WEFT_CONFIG_INITIALIZER;
    std::uint64_t added = 0;
  } newer;
  newer.known.size = sizeof(newer);
  ASSERT_EQ(weftCommInitAllConfig(&comm, 1, nullptr, &newer.known), weftSuccess);
  weftCommDestroy(comm);
  newer.added = 3;
  refuses(weftCommInitAllConfig(&comm, 1, nullptr, &newer.known), "use a newer libweft");
}

TEST_F(Arguments, HandlesOfEveryEntryPoint) {
  weftComm_t dead = nullptr;
  ASSERT_EQ(weftCommInitAll(&dead, 1, nullptr), weftSuccess);
  ASSERT_EQ(weftCommDestroy(dead), weftSuccess);
  EXPECT_EQ(weftCommDestroy(nullptr), weftSuccess);
  int number = 0;
  weftResult_t result = weftSuccess;
  weftMemStats_t stats = {sizeof(stats), 0, 0, 0};
  weftOpSpan_t span{};
  size_t spans = 0;
  char text[100];
  weftComm_t made = nullptr;
  const auto all = [&](weftComm_t c) {
    return std::vector<weftResult_t>{
        weftCommFinalize(c),
        weftCommAbort(c),
        weftCommGetAsyncError(c, &result),
        weftCommCount(c, &number),
        weftCommUserRank(c, &number),
        weftCommLocalRank(c, &number, &number),
        weftCommMemStats(c, &stats),
        weftCommSplit(c, 0, 0, &made, nullptr),
        weftExplain(c, "all_reduce", 1, weftFloat, text, sizeof(text)),
        weftCommExplain(c, nullptr, 0, weftFloat, weftSum, nullptr, text, sizeof(text)),
        weftCommTraceStart(c, &span, 1),
        weftCommTraceStop(c, &spans),
        weftBarrier(c, nullptr, nullptr),
        weftCommDeregister(c, nullptr)};
  };
  for (const weftResult_t got : all(dead)) refuses(got, "");
  for (const weftResult_t got : all(nullptr)) refuses(got, "");
  refuses(weftCommDestroy(dead), "comm is not a valid handle");
  refuses(weftCommCount(comms_[0], nullptr), "count is NULL");
  refuses(weftCommUserRank(comms_[0], nullptr), "rank is NULL");
  refuses(weftCommMemStats(comms_[0], nullptr), "stats is NULL");
  stats.size = 0;
  refuses(weftCommMemStats(comms_[0], &stats), "fix: sizeof(weftMemStats_t)");
  refuses(weftCommLocalRank(comms_[0], nullptr, &number), "localRank is NULL");
  refuses(weftCommGetAsyncError(comms_[0], nullptr), "result is NULL");
  refuses(weftGetVersion(nullptr), "version is NULL");
  refuses(weftExplain(comms_[0], "all_reuse", 1, weftFloat, text, 100), "unknown collective");
  const auto why = [&](const char* collective, weftRedOp_t op, const weftOpts_t* opts, char* to) {
    return weftCommExplain(comms_[0], collective, 1, weftFloat, op, opts, to, sizeof(text));
  };
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.algorithm = "rnig";
  refuses(why("all_reduce", weftSum, nullptr, nullptr), "text is NULL");
  refuses(why("all_reuse", weftSum, nullptr, text), "unknown collective");
  refuses(why("all_reduce", weftMaxRedOp, nullptr, text), "op is neither built in");
  refuses(why("all_reduce", weftSum, &opts, text), "unknown algorithm", weftInvalidUsage);
  stillWorks();
}

TEST_F(Arguments, OfStreamsEventsAndMemory) {
  weftStream_t stream = nullptr;
  weftEvent_t event = nullptr, other = nullptr;
  float ms = 0;
  refuses(weftStreamCreate(nullptr), "stream is NULL");
  refuses(weftEventCreate(nullptr), "event is NULL");
  ASSERT_EQ(weftStreamCreate(&stream), weftSuccess);
  ASSERT_EQ(weftEventCreate(&event), weftSuccess);
  ASSERT_EQ(weftEventCreate(&other), weftSuccess);
  refuses(weftStreamWaitEvent(stream, nullptr), "event is NULL");
  refuses(weftStreamCallback(stream, nullptr, nullptr), "fn is NULL");
  refuses(weftEventRecord(event, reinterpret_cast<weftStream_t>(event)), "stream is not a valid");
  refuses(weftEventElapsedTime(&ms, event, other), "not recorded", weftInvalidUsage);
  refuses(weftEventElapsedTime(nullptr, event, other), "ms is NULL");
  EXPECT_EQ(weftStreamDestroy(stream), weftSuccess);
  refuses(weftStreamSynchronize(stream), "stream is not a valid handle");
  refuses(weftStreamQuery(stream), "stream is not a valid handle");
  EXPECT_EQ(weftEventDestroy(event), weftSuccess);
  refuses(weftEventSynchronize(event), "event is not a valid handle");
  EXPECT_EQ(weftEventDestroy(other), weftSuccess);
  void* memory = nullptr;
  refuses(weftMemAlloc(nullptr, 8), "ptr is NULL");
  refuses(weftMemAlloc(&memory, SIZE_MAX / 2), "cannot allocate", weftOutOfMemory);
  refuses(weftMemFree(in_), "did not come from weftMemAlloc");
  void* handle = nullptr;
  refuses(weftCommRegister(comms_[0], nullptr, 8, &handle), "buff is NULL");
  refuses(weftCommRegister(comms_[0], in_, 0, &handle), "size is 0");
  ASSERT_EQ(weftCommRegister(comms_[0], in_, sizeof(in_), &handle), weftSuccess);
  refuses(weftCommDeregister(comms_[1], handle), "did not come from weftCommRegister");
  EXPECT_EQ(weftCommDeregister(comms_[0], handle), weftSuccess);
  refuses(weftCommDeregister(comms_[0], handle), "deregistered already");
  stillWorks();
}

TEST_F(Arguments, BuffersAtTheEndOfMemory) {
  auto* const last = reinterpret_cast<float*>(~std::uintptr_t{0} - 15);
  refuses(weftAllReduce(last, out_, 64, weftFloat, weftSum, comms_[0], nullptr, nullptr),
          "runs past the end of the address space");
  stillWorks();
}

// Threads are out of reach for one of them, so each rank says it of itself.
TEST(Transports, LocalIsForThreads) {
  const std::string said = failures({Kind::Processes, 2, "local"}, [](const Rank&) { return ""; });
  EXPECT_NE(said.find("transport 'local' is for ranks that are threads of one process"),
            std::string::npos)
      << said;
}

TEST(ResultNames, AreNeverNull) {
  for (int code = 0; code < 16; ++code)
    EXPECT_STRNE(weftGetErrorString(static_cast<weftResult_t>(code)), "");
  EXPECT_NE(weftGetLastError(nullptr), nullptr);
}

}  // namespace
}  // namespace weft::testing
