// SPDX-License-Identifier: Apache-2.0
// What any thread may call at any time, beside whatever another thread is in: calls of both ranks
// go on and are right, whoever asks is answered, and a handle may be destroyed beside every use of
// it.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

constexpr int kCalls = kSanitized ? 100 : 400;
constexpr int kRounds = kSanitized ? 30 : 100;

// ---- Questions beside calls ---------------------------------------------------------------------

struct Question {
  const char* name;
  weftResult_t (*ask)(weftComm_t comm);
};

constexpr Question kQuestions[] = {
    {"weftCommGetAsyncError",
     [](weftComm_t comm) {
       weftResult_t seen = weftSuccess;
       const weftResult_t result = weftCommGetAsyncError(comm, &seen);
       return result == weftSuccess ? seen : result;
     }},
    {"weftGetLastErrorInfo",
     [](weftComm_t comm) {
       weftErrorInfo_t info = WEFT_ERROR_INFO_INITIALIZER;
       const weftResult_t result = weftGetLastErrorInfo(comm, &info);
       return result == weftSuccess ? info.result : result;
     }},
    {"weftCommUserRank",
     [](weftComm_t comm) {
       int rank = -1;
       return weftCommUserRank(comm, &rank);
     }},
    {"weftCommMemStats",
     [](weftComm_t comm) {
       weftMemStats_t stats{};
       stats.size = sizeof(stats);
       return weftCommMemStats(comm, &stats);
     }},
    {"weftCommExplain",
     [](weftComm_t comm) {
       char line[500];
       return weftCommExplain(comm, "all_reduce", 100, weftFloat, weftSum, nullptr, line,
                              sizeof(line));
     }},
    {"weftRedOpCreatePreMulSum",
     [](weftComm_t comm) {
       const float half = 0.5f;
       weftRedOp_t op = weftSum;
       const weftResult_t made = weftRedOpCreatePreMulSum(&op, &half, weftFloat, comm);
       return made == weftSuccess ? weftRedOpDestroy(op, comm) : made;
     }},
};

std::string sumUp(const Rank& r) {
  for (int i = 0; i < kCalls; ++i) {
    std::vector<float> data(1 + static_cast<std::size_t>(i % 3) * 1000, 1.0f);
    const weftResult_t result = weftAllReduce(data.data(), data.data(), data.size(), weftFloat,
                                              weftSum, r.comm, nullptr, nullptr);
    if (result != weftSuccess) return outcome(result, r.comm);
    if (data.front() != 2 || data.back() != 2) return "a wrong sum";
  }
  return "";
}

// Asks as long as there is somebody who calls.
std::string sumUpBeside(const Question& question, const Rank& r) {
  std::atomic<bool> over{false};
  std::string refused;
  std::thread asks([&] {
    while (!over && refused.empty()) refused = outcome(question.ask(r.comm), r.comm);
  });
  std::string wrong = sumUp(r);
  over = true;
  asks.join();
  return wrong.empty() ? refused : wrong;
}

TEST(Beside, CallsAnyQuestionIsAnswered) {
  for (const Question& question : kQuestions)
    EXPECT_EQ(failures({Kind::Threads, 2}, [&](const Rank& r) { return sumUpBeside(question, r); }),
              "")
        << question.name;
}

// ---- Destruction beside any use -----------------------------------------------------------------

struct Use {
  const char* name;
  weftResult_t (*of)(weftEvent_t event, weftStream_t stream);
};

constexpr Use kUses[] = {
    {"weftEventQuery", [](weftEvent_t event, weftStream_t) { return weftEventQuery(event); }},
    {"weftEventSynchronize",
     [](weftEvent_t event, weftStream_t) { return weftEventSynchronize(event); }},
    {"weftEventRecord",
     [](weftEvent_t event, weftStream_t) { return weftEventRecord(event, nullptr); }},
    {"weftStreamWaitEvent",
     [](weftEvent_t event, weftStream_t stream) { return weftStreamWaitEvent(stream, event); }},
};

// A thread that uses one event after another, each until it is gone.
class User {
 public:
  User(const Use& use, weftStream_t stream)
      : use_(use), stream_(stream), thread_([this] { work(); }) {}
  ~User() {
    over_ = true;
    thread_.join();
  }
  void take(weftEvent_t event) {
    uses_ = 0;
    event_ = event;
  }
  bool isBusy() const { return uses_ >= 3; }
  const char* wrong() const { return wrong_; }

 private:
  void work() {
    while (!over_) {
      const weftResult_t result = use_.of(event_.load(), stream_);
      ++uses_;
      if (result == weftInvalidArgument)
        std::this_thread::yield();
      else if (result != weftSuccess)
        wrong_ = weftGetErrorString(result);
    }
  }

  const Use& use_;
  const weftStream_t stream_;
  std::atomic<weftEvent_t> event_{nullptr};
  std::atomic<int> uses_{0};
  std::atomic<bool> over_{false};
  std::atomic<const char*> wrong_{nullptr};
  std::thread thread_;
};

std::string destroyBeside(const Use& use) {
  Steps steps;
  const Stream stream(steps);
  User user(use, stream);
  for (int i = 0; i < kRounds; ++i) {
    weftEvent_t event = nullptr;
    steps.ok(weftEventCreate(&event), "create");
    user.take(event);
    while (!user.isBusy()) std::this_thread::yield();
    steps.ok(weftEventDestroy(event), "destroy");
  }
  const char* const wrong = user.wrong();
  return wrong != nullptr ? wrong : steps.failed();
}

TEST(Beside, AnyUseAnEventMayBeDestroyed) {
  for (const Use& use : kUses) EXPECT_EQ(destroyBeside(use), "") << use.name;
}

}  // namespace
}  // namespace weft::testing
