// SPDX-License-Identifier: Apache-2.0
// Small worlds, exhaustively: every collective, count around the limits of the engine, type, root,
// place, stream and group, and every algorithm, against a serial reference, while another thread
// asks for errors; some behind an event, before which there is no input. Nothing is drawn by chance. More than two ranks have to take turns on small
// machines: of them, each case is called in one of its four ways, in turn, and algorithms get one of
// the types. RANKS_TEST_ENUMERATED=1 (./dev soak enumerated) takes all, otherwise of more than two ranks every fifth case
// is taken. A sanitizer's run takes every 41st case, and one type for algorithms.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <thread>

#include "checked_call.h"
#include "steps.h"

namespace weft::testing {
namespace {

constexpr std::size_t kInlined = 48;        // bytes that travel inside an arrival slot
constexpr std::size_t kFarthest = 8192;     // bytes up to which limits are looked for
constexpr std::uint64_t kBehindEvent = 50;  // one in so many calls, where it is on a stream

// A width each, and both kinds of number where there are two.
constexpr weftDataType_t kTypes[] = {weftInt8, weftBfloat16, weftInt32, weftFloat, weftInt64};
constexpr Form kForms[] = {
    Form::AllReduce, Form::AllGather, Form::ReduceScatter, Form::Broadcast,  Form::Reduce,
    Form::Gather,    Form::Scatter,   Form::AlltoAll,      Form::AllGatherV, Form::ReduceScatterV,
    Form::GatherV,   Form::ScatterV,  Form::AlltoAllV,     Form::Barrier,    Form::Shift};

bool takesAll(const Rank& r) {
  return r.ranks <= 2 || std::getenv("RANKS_TEST_ENUMERATED") != nullptr;
}

// Of how many cases one is taken; a prime, as memory, places and roots take turns.
std::size_t strideOf(const Rank& r) { return kSanitized ? 41 : takesAll(r) ? 1 : 5; }

// ---- Where the engine does something else -----------------------------------------------------

// Into how many segments the call is cut; 0: the algorithm does not fit this world.
std::size_t segmentsOf(const Rank& r, Case c, std::size_t count) {
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  if (!c.algorithm.empty()) opts.algorithm = c.algorithm.c_str();
  char line[2000];
  if (weftCommExplain(r.comm, nameOf(c.form), count, c.type, c.op, &opts, line, sizeof(line)) !=
      weftSuccess)
    return 0;
  const std::string text = line;
  const std::size_t end = text.find(" segment(s)");
  return std::stoul(text.substr(text.rfind(' ', end - 1)));
}

// The largest count that is cut into `segments` at most; 0: there is no such limit in reach.
std::size_t limitOf(const Rank& r, const Case& c, std::size_t segments) {
  std::size_t within = 0, beyond = kFarthest / sizeOf(c.type);
  if (segmentsOf(r, c, beyond) <= segments) return 0;
  while (beyond - within > 1) {
    const std::size_t count = (within + beyond) / 2;
    (segmentsOf(r, c, count) <= segments ? within : beyond) = count;
  }
  return within;
}

void addAround(std::size_t limit, std::set<std::size_t>* counts) {
  if (limit == 0) return;
  counts->insert({limit - 1, limit, limit + 1});
}

// On both sides of one and two segments, and of all lanes.
void addSegments(const Rank& r, const Case& c, std::set<std::size_t>* counts) {
  for (const std::size_t segments : {1u, 2u, 4u}) addAround(limitOf(r, c, segments), counts);
}

// All that two chunks in arrival slots hold, then around segments.
std::set<std::size_t> everyCount(const Rank& r, const Case& c) {
  if (c.form == Form::Barrier) return {0};
  std::set<std::size_t> counts;
  for (std::size_t i = 0; i <= 2 * kInlined / sizeOf(c.type) + 1; ++i) counts.insert(i);
  if (c.form != Form::Shift && !exchanges(c.form)) addSegments(r, c, &counts);
  return counts;
}

std::set<std::size_t> someCounts(const Rank& r, const Case& c) {
  std::set<std::size_t> counts{0, 1, 2, static_cast<std::size_t>(r.ranks)};
  addAround(kInlined / sizeOf(c.type), &counts);
  addSegments(r, c, &counts);
  return counts;
}

// ---- All cases --------------------------------------------------------------------------------

// One block is shorter than the others, or empty, and the blocks lie in order or not.
void makeUneven(Case* c, bool scattered) {
  const std::size_t n = static_cast<std::size_t>(c->ranks);
  for (std::size_t r = 0; r < n; ++r)
    c->counts.push_back(r == static_cast<std::size_t>(c->root) ? c->count / 2 : c->count + r % 2);
  if (!scattered) return;
  c->displs.assign(n, 0);
  std::size_t at = 1;
  for (std::size_t r = n; r-- > 0; at += c->counts[r] + 2) c->displs[r] = at;
}

int rootsOf(const Case& c) {
  if (isUneven(c.form)) return 2 * c.ranks;
  return c.isRooted() || c.form == Form::Shift ? c.ranks : 1;
}

bool hasPlaces(Form form) {
  return form != Form::AlltoAll && form != Form::AlltoAllV && form != Form::Barrier &&
         form != Form::Shift;
}

// All roots, in place and not. Operations and kinds of memory take turns.
void addCases(Case c, std::size_t count, std::vector<Case>* all) {
  c.count = count;
  c.seed = all->size();
  for (int root = 0; root < rootsOf(c); ++root) {
    for (const bool inPlace : {false, true}) {
      if (inPlace && !hasPlaces(c.form)) continue;
      Case one = c;
      one.root = root % c.ranks;
      one.inPlace = inPlace;
      one.op = opFor(one.type, count + static_cast<std::size_t>(root));
      one.memory = static_cast<Memory>(all->size() % 3);
      if (isUneven(c.form)) makeUneven(&one, root >= c.ranks);
      all->push_back(std::move(one));
    }
  }
}

std::vector<Case> casesOfType(const Rank& r, weftDataType_t type) {
  std::vector<Case> all;
  for (const Form form : kForms) {
    const Case c{.form = form, .type = type, .ranks = r.ranks};
    for (const std::size_t count : everyCount(r, c)) addCases(c, count, &all);
  }
  return all;
}

// Each algorithm with each protocol, where it fits; a sanitizer's run takes one of three such pairs.
std::vector<Case> casesOfAlgorithms(const Rank& r, Form form, weftDataType_t type) {
  std::vector<Case> all;
  std::istringstream names(weftAlgorithms(nameOf(form)));
  unsigned pairs = 0;
  for (std::string name; std::getline(names, name, ',');) {
    for (const char* protocol : {"", ":staged", ":published", ":direct"}) {
      if (kSanitized && (pairs++ + static_cast<unsigned>(form)) % 3 != 0) continue;
      const Case c{.form = form, .type = type, .algorithm = name + protocol, .ranks = r.ranks};
      if (segmentsOf(r, c, 1) == 0) continue;
      for (const std::size_t count : someCounts(r, c)) addCases(c, count, &all);
    }
  }
  return all;
}

// ---- Calls ------------------------------------------------------------------------------------

class Caller {
 public:
  explicit Caller(const Rank& r) : r_(r), stream_(steps_), source_(steps_), event_(steps_) {}

  // Alone or two in a group, on a stream or without one: in all four ways, or in the one whose turn
  // it is. "" or what is wrong.
  std::string inItsWays(const Case& one, const Case& other) {
    const unsigned turn = turn_++ % 4;
    for (unsigned way = 0; way < 4; ++way) {
      if (way != turn && !takesAll(r_)) continue;
      const weftStream_t stream = way % 2 == 0 ? nullptr : weftStream_t{stream_};
      std::string wrong = way < 2 ? alone(one, stream) : grouped(one, other, stream);
      if (wrong.empty() && way < 2) wrong = alone(other, stream);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  std::string alone(const Case& c, weftStream_t stream = nullptr) {
    CheckedCall call(c, r_);
    if (++calls_ % kBehindEvent == 0 && stream != nullptr) awaitInput(call, stream);
    const weftResult_t ended = end(call.make(stream), stream);
    steps_.ok(weftStreamSynchronize(source_), "make the input");
    return verdict(c, ended, call, stream != nullptr ? " on a stream" : "");
  }

  std::uint64_t calls() const { return calls_; }

 private:
  // Another stream makes the input, and what is recorded after the wait for it is no matter.
  void awaitInput(CheckedCall& call, weftStream_t stream) {
    call.empty();
    const auto fill = [](void* its) {
      sleepMs(1);
      static_cast<CheckedCall*>(its)->fill();
    };
    steps_.ok(weftStreamCallback(source_, fill, &call), "queue the input");
    steps_.ok(weftEventRecord(event_, source_), "record");
    steps_.ok(weftStreamWaitEvent(stream, event_), "wait");
    steps_.ok(weftEventRecord(event_, nullptr), "record again");
  }

  std::string grouped(const Case& one, const Case& other, weftStream_t stream) {
    CheckedCall first(one, r_), second(other, r_);
    calls_ += 2;
    weftResult_t result = weftGroupStart();
    for (CheckedCall* call : {&first, &second})
      if (result == weftSuccess) result = call->make(stream);
    const weftResult_t ended = end(weftGroupEnd(), stream);
    if (result == weftSuccess) result = ended;
    const std::string way = stream != nullptr ? " in a group on a stream" : " in a group";
    std::string wrong = verdict(one, result, first, way + ", then " + describe(other));
    return wrong.empty() ? verdict(other, result, second, way + " after " + describe(one)) : wrong;
  }

  static weftResult_t end(weftResult_t made, weftStream_t stream) {
    if (stream == nullptr) return made;
    const weftResult_t ended = weftStreamSynchronize(stream);
    return made != weftSuccess ? made : ended;
  }

  std::string verdict(const Case& c, weftResult_t result, CheckedCall& call,
                      const std::string& way) const {
    std::string wrong = result == weftSuccess ? call.check() : outcome(result, r_.comm);
    if (wrong.empty()) wrong = steps_.failed();
    return wrong.empty() ? "" : describe(c) + way + ": " + wrong;
  }

  const Rank r_;
  Steps steps_;
  Stream stream_, source_;
  Event event_;
  unsigned turn_ = 0;
  std::uint64_t calls_ = 0;
};

// Each case is grouped with one that is far away in the list: another collective, mostly.
std::string runEveryWay(const Rank& r, std::uint64_t* calls) {
  Caller caller(r);
  for (const weftDataType_t type : kTypes) {
    const std::vector<Case> cases = casesOfType(r, type);
    const std::size_t half = (cases.size() + 1) / 2, stride = strideOf(r);
    for (std::size_t i = static_cast<std::size_t>(type) % stride; i < half; i += stride)
      if (std::string wrong = caller.inItsWays(cases[i], cases[(i + half) % cases.size()]);
          !wrong.empty())
        return wrong;
  }
  *calls = caller.calls();
  return "";
}

std::string runEveryAlgorithm(const Rank& r, std::uint64_t* calls) {
  Caller caller(r);
  for (const Form form : kForms) {
    for (const weftDataType_t type : kTypes) {
      if (form == Form::Barrier || form == Form::Shift) continue;
      if ((!takesAll(r) || kSanitized) && type != weftInt64) continue;
      const std::vector<Case> cases = casesOfAlgorithms(r, form, type);
      const std::size_t stride = kSanitized ? 13 : strideOf(r);  // of fewer pairs
      for (std::size_t i = static_cast<std::size_t>(type) % stride; i < cases.size(); i += stride)
        if (std::string wrong = caller.alone(cases[i]); !wrong.empty()) return wrong;
    }
  }
  *calls = caller.calls();
  return "";
}

// Asks for errors beside all calls, as PyTorch's watchdog does. *answer: "", or the first it got.
class Watchdog {
 public:
  Watchdog(weftComm_t comm, std::string* answer)
      : comm_(comm), answer_(*answer), thread_([this] { watch(); }) {}
  ~Watchdog() {
    over_ = true;
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch() {
    for (; !over_ && answer_.empty(); sleepMs(0.5)) {
      weftResult_t seen = weftSuccess;
      const weftResult_t asked = weftCommGetAsyncError(comm_, &seen);
      answer_ = outcome(asked == weftSuccess ? seen : asked, comm_);
    }
  }

  const weftComm_t comm_;
  std::string& answer_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// ---- Worlds -----------------------------------------------------------------------------------

using Run = std::string (*)(const Rank&, std::uint64_t* calls);

// Says how many calls each rank has made.
void expectRight(const World& world, Run run) {
  ::setenv("WEFT_SEGMENT_KB", "1", 1);
  Shared<std::atomic<std::uint64_t>> calls;
  EXPECT_EQ(failures(world,
                     [&](const Rank& r) {
                       std::uint64_t mine = 0;
                       std::string seen, wrong;
                       {
                         const Watchdog watchdog(r.comm, &seen);
                         wrong = run(r, &mine);
                       }
                       if (r.rank == 0) *calls = mine;
                       return wrong.empty() ? seen : wrong;
                     }),
            "");
  ::unsetenv("WEFT_SEGMENT_KB");
  EXPECT_GT(calls->load(), 0u);
  ::testing::Test::RecordProperty("cases", std::to_string(calls->load()));
  std::printf("  %llu cases\n", static_cast<unsigned long long>(calls->load()));
}

class EveryCall : public ::testing::TestWithParam<World> {};
TEST_P(EveryCall, IsRight) { expectRight(GetParam(), runEveryWay); }

class EveryAlgorithm : public ::testing::TestWithParam<World> {};
TEST_P(EveryAlgorithm, IsRight) { expectRight(GetParam(), runEveryAlgorithm); }

constexpr const char* kFaults =
    "faulty:seed=11,hold=0.4,again=0.2,late=0.4,delay=3,scribble=1,check=1";

std::string nameOfWorld(const ::testing::TestParamInfo<World>& p) {
  const bool faulty = p.param.transport == std::string(kFaults);
  return (faulty ? "Faulty" : "") + nameOf(p.param.kind) + std::to_string(p.param.ranks);
}
INSTANTIATE_TEST_SUITE_P(Worlds, EveryCall,
                         ::testing::Values(World{Kind::Threads, 1}, World{Kind::Threads, 2},
                                           World{Kind::Threads, 3}, World{Kind::Threads, 4},
                                           World{Kind::Processes, 1}, World{Kind::Processes, 2},
                                           World{Kind::Processes, 3}, World{Kind::Processes, 4},
                                           World{Kind::Processes, 2, kFaults}),
                         nameOfWorld);
INSTANTIATE_TEST_SUITE_P(Worlds, EveryAlgorithm,
                         ::testing::Values(World{Kind::Threads, 2}, World{Kind::Processes, 2},
                                           World{Kind::Threads, 3}, World{Kind::Processes, 4},
                                           World{Kind::Threads, 2, kFaults}),
                         nameOfWorld);

}  // namespace
}  // namespace weft::testing
