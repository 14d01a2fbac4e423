// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/bench.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string_view>

namespace weft::perf {
namespace {

constexpr int kMaxReports = 4;  // lines about wrong data, of one rank

// Calls that force an algorithm may get one that hands partial sums on.
bool algorithmIsForced(const Options& options) {
  const char* knob = std::getenv("WEFT_ALGO");
  const std::string_view forced = knob != nullptr ? knob : "auto";
  return !options.algorithm.empty() || (!forced.empty() && forced != "auto" && forced != "model");
}

weftOpts_t callOptionsOf(const Options& options) {
  weftOpts_t callOptions = defaultOptions();
  if (!options.algorithm.empty()) callOptions.algorithm = options.algorithm.c_str();
  if (options.reproducible) callOptions.reproducible = 1;
  return callOptions;
}

std::size_t mostUnalign(const Options& options) {
  constexpr std::size_t kLargestElement = 8;
  return options.unalign * kLargestElement + options.unalignBytes;
}

}  // namespace

// The collective with everything that it needs, ready to be called again and again.
class Bench::Operation {
 public:
  Operation(Bench& bench, const Problem& problem, Placement placement)
      : problem_(problem),
        aggregate_(bench.options_.aggregate),
        call_{bench.sendData(problem, placement),
              bench.recvData(problem, placement),
              problem.op.builtIn,
              bench.team_.group(),
              bench.stream_ ? static_cast<weftStream_t>(*bench.stream_) : nullptr,
              &bench.callOptions_} {
    if (problem.op.op != Op::MulSum) return;
    const Scalar scalar = preMultiplier(bench.recipeFor(problem, Fill::Exact), problem.rank);
    weft::check(weftRedOpCreatePreMulSum(&call_.op, scalar.bytes, problem.type.type, call_.comm),
                call_.comm);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation() {
    if (problem_.op.op == Op::MulSum) static_cast<void>(weftRedOpDestroy(call_.op, call_.comm));
  }

  void runOnce() { weft::check(problem_.collective->call(problem_, call_), call_.comm); }

  weftRedOp_t op() const { return call_.op; }

  // As many calls as -m asks for, in one group if that is more than one.
  void launch() {
    if (aggregate_ == 1) return runOnce();
    Group group;
    for (int i = 0; i < aggregate_; ++i) runOnce();
    group.end();
  }

  void complete() {
    if (call_.stream != nullptr) weft::check(weftStreamSynchronize(call_.stream), call_.comm);
  }

 private:
  const Problem& problem_;
  int aggregate_;
  Call call_;
};

Bench::Bench(const Options& options, Team& team)
    : options_(options),
      team_(team),
      recv_(options.maxBytes, mostUnalign(options),
            options.registerMemory ? static_cast<weftComm_t>(team.group()) : nullptr),
      send_(sendBytes(), mostUnalign(options),
            options.registerMemory ? static_cast<weftComm_t>(team.group()) : nullptr),
      callOptions_(callOptionsOf(options)),
      seed_(options.seed) {
  if (options.useStream) stream_.emplace();
}

// The largest send buffer of this run; smaller than the receive buffer where blocks are gathered.
std::size_t Bench::sendBytes() {
  std::size_t largest = 0;
  for (const TypeInfo& type : options_.types) {
    const Problem largestProblem = problem(type, noOp(), 0, options_.maxBytes);
    largest = std::max(largest, largestProblem.sendCount * type.bytes);
  }
  return largest;
}

Problem Bench::problem(const TypeInfo& type, const OpInfo& op, int root, std::size_t bytes) {
  Communicator& group = team_.group();
  Problem made = makeProblem(*options_.collective, type, op, root, group.rank(), group.size(),
                             bytes, !options_.exactCounts);
  if (!options_.pairs.empty()) routeBy(options_.pairs, made);
  return made;
}

Measurement Bench::measure(const Problem& problem, Placement placement, const Phase& phase) {
  for (Buffer* buffer : {&recv_, &send_})
    buffer->unalign(options_.unalign * problem.type.bytes + options_.unalignBytes);
  Operation operation(*this, problem, placement);
  prepare(problem, placement, recipeFor(problem, Fill::Exact));
  phase("warming up");
  for (int i = 0; i < options_.warmup; ++i) operation.launch();
  operation.complete();
  if (options_.settles) settle(operation);

  Measurement measured;
  phase("timing");
  if (!options_.onlySingle) measured.seconds = timeSteadily(operation);
  if (options_.timesIterations()) measured.iterations = timeSingly(operation);
  if (options_.onlySingle) measured.seconds = meanOf(measured.iterations);
  if (options_.checks > 0) measured.wrong = 0;
  for (int i = 0; i < options_.checks; ++i) *measured.wrong += checkAll(problem, placement, phase);
  return measured;
}

std::vector<weftOpSpan_t> Bench::trace(const Problem& problem) {
  constexpr std::size_t kRoom = 65536;
  const weftComm_t comm = team_.group();
  std::vector<weftOpSpan_t> spans(kRoom);
  std::size_t made = 0;
  Operation operation(*this, problem, Placement::OutOfPlace);
  prepare(problem, Placement::OutOfPlace, recipeFor(problem, Fill::Exact));
  team_.group().barrier();
  weft::check(weftCommTraceStart(comm, spans.data(), spans.size()), comm);
  operation.runOnce();
  operation.complete();
  weft::check(weftCommTraceStop(comm, &made), comm);
  spans.resize(std::min(made, kRoom));
  return spans;
}

std::string Bench::explain(const Problem& problem) {
  if (!problem.collective->plans) return "point to point: there is nothing to choose";
  const Operation operation(*this, problem, Placement::OutOfPlace);
  return explanation(problem.collective->name, problem.count, problem.type.type, operation.op());
}

std::string Bench::explainMachine() { return explanation(nullptr, 0, weftUint8, weftSum); }

std::string Bench::explainEdges() {
  std::array<char, 2048> text{};
  const weftComm_t comm = team_.group();
  weft::check(weftCommEdges(comm, text.data(), text.size()), comm);
  return text.data();
}

std::string Bench::explanation(const char* collective, std::size_t count, weftDataType_t type,
                               weftRedOp_t op) {
  std::array<char, 2048> text{};
  const weftComm_t comm = team_.group();
  weft::check(
      weftCommExplain(comm, collective, count, type, op, &callOptions_, text.data(), text.size()),
      comm);
  return text.data();
}

Recipe Bench::recipeFor(const Problem& problem, Fill fill) {
  const int halfRoundings = algorithmIsForced(options_) ? std::max(problem.ranks - 1, 1) : 1;
  return {problem.type.type, problem.op.op, problem.ranks, fill, seed_, halfRoundings};
}

void Bench::prepare(const Problem& problem, Placement placement, const Recipe& recipe) {
  recv_.poison(problem.bytes());
  if (placement == Placement::OutOfPlace) send_.poison(problem.sendCount * problem.type.bytes);
  drawInput(recipe, problem.rank, 0, problem.sendCount, sendData(problem, placement));
}

// The first calls of a size try its forms (docs/performance.md): later ones take less. Ranks agree how
// many there is time for.
void Bench::settle(Operation& operation) {
  const double start = now();
  operation.launch();
  operation.complete();
  const std::vector<double> took = team_.exchange(std::vector<double>{now() - start});
  const double inTime = Options::kSettlingSeconds / *std::ranges::max_element(took);
  const int calls = static_cast<int>(std::min<double>(inTime, Options::kMostSettling));
  for (int i = 1; i < calls; ++i) operation.launch();
  operation.complete();
}

double Bench::timeSteadily(Operation& operation) {
  team_.group().barrier();
  const double start = now();
  for (int i = 0; i < options_.iterations; ++i) operation.launch();
  operation.complete();
  const double mine = (now() - start) / options_.iterations / options_.aggregate;
  return averageOf(team_.exchange(std::vector<double>{mine}), options_.average);
}

// Each call is timed alone; an iteration counts as its slowest rank saw it.
std::vector<double> Bench::timeSingly(Operation& operation) {
  std::vector<double> mine(static_cast<std::size_t>(options_.iterations));
  team_.group().barrier();
  for (double& seconds : mine) {
    const double start = now();
    operation.launch();
    operation.complete();
    seconds = (now() - start) / options_.aggregate;
  }
  const std::vector<double> all = team_.exchange(mine);
  for (std::size_t i = 0; i < all.size(); ++i) {
    double& slowest = mine[i % mine.size()];
    slowest = std::max(slowest, all[i]);
  }
  return mine;
}

// With the kinds of data that the options ask for. The elements that are wrong on any rank.
std::uint64_t Bench::checkAll(const Problem& problem, Placement placement, const Phase& phase) {
  if (options_.checkOnes) {
    phase("checking ones");
    return check(problem, placement, Fill::Ones);
  }
  phase("checking exact data");
  const std::uint64_t wrong = check(problem, placement, Fill::Exact);
  if (!recipeFor(problem, Fill::Random).hasRandomForm()) return wrong;
  phase("checking random data");
  return wrong + check(problem, placement, Fill::Random);
}

// One call on fresh data, compared element by element. The elements that are wrong on any rank.
std::uint64_t Bench::check(const Problem& problem, Placement placement, Fill fill) {
  const Recipe recipe = recipeFor(problem, fill);
  ++seed_;
  prepare(problem, placement, recipe);
  Operation operation(*this, problem, placement);
  operation.runOnce();
  operation.complete();

  CheckResult found = verify(problem, placement, recipe);
  const CheckResult difference = compareHashes(problem, placement);
  if (found.wrong == 0) found = difference;
  if (found.wrong > 0) reportWrong(problem, placement, recipe, found);
  wrongHere_ += found.wrong;
  const std::vector<std::uint64_t> all = team_.exchange(found.wrong);
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

CheckResult Bench::verify(const Problem& problem, Placement placement, const Recipe& recipe) {
  CheckResult found = verifyBlocks(problem, placement, recipe);
  found.add(verifyInput(problem, placement, recipe));
  found.add(recv_.verifyMargins(problem.bytes()));
  if (placement == Placement::OutOfPlace) {
    found.add(send_.verifyMargins(problem.sendCount * problem.type.bytes));
  }
  return found;
}

// What must have arrived has, and out of place nothing else has.
CheckResult Bench::verifyBlocks(const Problem& problem, Placement placement, const Recipe& recipe) {
  const std::size_t size = problem.type.bytes;
  const unsigned char* recv = recvData(problem, placement);
  CheckResult found;
  std::size_t end = 0;
  for (const Block& block : problem.collective->expected(problem)) {
    const void* got = recv + block.at * size;
    const CheckResult one = block.source == Block::kReduced
                                ? verifyReduced(recipe, block.from, block.count, got)
                                : verifyMoved(recipe, block.source, block.from, block.count, got);
    if (one.wrong > 0) wrongSources_.insert(block.source);
    found.add(one);
    end = block.at + block.count;
  }
  if (placement == Placement::OutOfPlace) {
    found.add(recv_.verifyPoisoned(end * size, (problem.recvCount - end) * size));
  }
  return found;
}

// The input is as it was, unless the result lies over it.
CheckResult Bench::verifyInput(const Problem& problem, Placement placement, const Recipe& recipe) {
  const bool overwritten = !problem.collective->expected(problem).empty();
  if (placement == Placement::InPlace && overwritten) return {};
  CheckResult found =
      verifyMoved(recipe, problem.rank, 0, problem.sendCount, sendData(problem, placement));
  if (found.wrong > 0) found.first += ": the input was changed";
  return found;
}

// Where every rank receives the same, they receive the same bits.
CheckResult Bench::compareHashes(const Problem& problem, Placement placement) {
  struct Entry {
    std::int64_t color;
    std::uint64_t hash;
  };
  if (!problem.collective->replicates) return {};
  const std::size_t bytes = problem.recvCount * problem.type.bytes;
  const Entry mine{team_.color(), hashOf(recvData(problem, placement), bytes)};
  for (const Entry& other : team_.exchange(mine)) {
    if (other.color != mine.color) continue;
    if (other.hash == mine.hash) return {};
    return {1, "the result differs in some bits from that of the group's first rank"};
  }
  return {};
}

WrongData Bench::wrongHere() {
  Communicator& group = team_.group();
  const int source = wrongSources_.empty()       ? WrongData::kNowhere
                     : wrongSources_.size() == 1 ? *wrongSources_.begin()
                                                 : WrongData::kSeveral;
  return {team_.rank(), team_.color(), group.rank(), source, wrongHere_};
}

void Bench::reportWrong(const Problem& problem, Placement placement, const Recipe& recipe,
                        const CheckResult& found) {
  if (reports_++ >= kMaxReports) return;
  fmt::print(stderr, "{}: rank {}: {} {} {} of {} bytes, {}, {} data with seed {}: {} wrong; {}\n",
             options_.program, team_.rank(), problem.collective->name, problem.type.name,
             problem.op.name, problem.bytes(),
             placement == Placement::InPlace ? "in place" : "out of place", nameOf(recipe.fill),
             recipe.seed, found.wrong, found.first);
}

unsigned char* Bench::sendData(const Problem& problem, Placement placement) {
  if (placement == Placement::OutOfPlace) return send_.data();
  return recv_.data() + problem.sendAt * problem.type.bytes;
}

unsigned char* Bench::recvData(const Problem& problem, Placement placement) {
  const bool inPlace = placement == Placement::InPlace;
  return recv_.data() + (inPlace ? problem.recvAt * problem.type.bytes : 0);
}

double Bench::now() const {
  timespec time{};
  clock_gettime(options_.cpuTime ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace weft::perf
