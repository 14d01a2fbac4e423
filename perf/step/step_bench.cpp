// SPDX-License-Identifier: Apache-2.0
// What a sharded optimizer step costs: the fused forms of weft/shard.h beside the same work as
// separate calls of the same library, interleaved in one run.
//
//   passes     reduce-scatter, widen, AdamW, round, all-gather: as frameworks do it
//   calls      reduce-scatter, an optimizer of one pass, all-gather
//   barrier    reductions of all buckets, then updates on their way into the all-gathers
//   eager      one schedule a bucket; without clipping only
//
// All work on the gradients and parameters of one shard: bf16, with fp32 weights and moments, and
// fill all gradients before each step, as backward does. A step is measured in two ways:
//
//   alone      nothing hides it: all gradients are ready at once. From the first rank's begin to
//              the last one's end.
//   exposed    behind a backward pass that needs no core, as on an accelerator: it takes --backward
//              times the step of `calls` alone, and buckets become ready at even distances. From
//              the end of backward until forward may begin, and until all parameters are there.
//              The separate calls are overlapped, too: a reduce-scatter a bucket in backward, and
//              an all-gather a bucket in the order of forward.
//
// Zeroing gradients for the next backward is left out on both sides: it runs beside forward.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "perf/common/command_line.h"
#include "perf/common/local_ranks.h"
#include "sides.h"

namespace {

using Clock = std::chrono::steady_clock;
using weft::check;
using weft::bench::How;
using weft::bench::Optimizer;
using weft::bench::Separate;
using weft::bench::Shard;

struct Options {
  int ranks = 2;
  double millions = 336.226108;  // BERT-Large
  int repeats = 7;
  std::size_t bucket = 0;
  double backward = 2;
};

// Milliseconds; the ranks are of one host, and so is their clock.
double now() {
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// One way to make a step.
struct Mode {
  std::string name;
  bool clip = false;
  std::function<void()> begin;                            // before backward
  std::function<void()> step;                             // all of it, after backward
  std::function<void(const Shard::Bucket&)> bucketReady;  // in backward
  std::function<void()> untilFirst;                       // from the end of backward on
  std::function<void()> untilAll;
  std::vector<double> alone = {}, first = {}, all = {};
};

Mode modeOf(const char* name, Shard& shard, bool clip) {
  const auto wait = [&shard] { shard.wait(); };
  const auto finish = [&shard] {
    shard.done();
    shard.waitForFirst();
  };
  return {.name = name,
          .clip = clip,
          .begin = [&shard, clip] { shard.begin(clip); },
          .step =
              [&shard] {
                for (const Shard::Bucket& b : shard.buckets()) shard.ready(b);
                shard.done();
                shard.wait();
              },
          .bucketReady = [&shard](const Shard::Bucket& b) { shard.ready(b); },
          .untilFirst = finish,
          .untilAll = wait};
}

Mode modeOf(const char* name, Separate& separate, How how) {
  return {.name = name,
          .clip = how.clip,
          .begin = [] {},
          .step = [&separate, how] { separate.step(how); },
          .bucketReady = [&separate](const Shard::Bucket& b) { separate.reduce(b); },
          .untilFirst = [&separate, how] { separate.update(how); },
          .untilAll = [&separate] { separate.wait(); }};
}

class Bench {
 public:
  Bench(weft::Communicator& comm, const Options& options, Shard& shard)
      : comm_(comm), options_(options), shard_(shard) {}

  void run(std::vector<Mode>& modes) {
    for (int i = 0; i <= options_.repeats; ++i) {
      for (Mode& mode : modes) {
        prepare(mode);
        const double taken = alone(mode);
        if (i > 0) mode.alone.push_back(taken);  // the first touches memory
      }
    }
    const double backward = common(median(modes.front().alone), weftMax) * options_.backward;
    for (int i = 0; backward > 0 && i < options_.repeats; ++i) {
      for (Mode& mode : modes) {
        prepare(mode);
        exposed(mode, backward);
      }
    }
  }

 private:
  // Sleeps while a shard, which has stepped before, zeroes gradients.
  void prepare(Mode& mode) {
    mode.begin();
    const double from = now();
    std::fill_n(shard_.gradients(), shard_.elements(), std::uint16_t{0x3c00});
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(now() - from));
    comm_.barrier();
  }

  double common(double value, weftRedOp_t op) {
    comm_.allReduce(&value, 1, op);
    return value;
  }

  double alone(Mode& mode) {
    const double from = now();
    mode.step();
    const double to = now();
    return common(to, weftMax) - common(from, weftMin);
  }

  // Ranks end backward together.
  void exposed(Mode& mode, double backward) {
    const double from = common(now(), weftMax),
                 buckets = static_cast<double>(shard_.buckets().size());
    double part = 0;
    for (const Shard::Bucket& bucket : shard_.buckets()) {
      part += 1 / buckets;
      const std::chrono::duration<double, std::milli> left(from + part * backward - now());
      std::this_thread::sleep_for(left);
      mode.bucketReady(bucket);
    }
    const double end = from + backward;
    mode.untilFirst();
    const double first = now();
    mode.untilAll();
    const double all = now();
    mode.first.push_back(common(first, weftMax) - end);
    mode.all.push_back(common(all, weftMax) - end);
  }

  weft::Communicator& comm_;
  const Options& options_;
  Shard& shard_;
};

void print(const Mode& fused, std::span<const Mode> separate) {
  for (const Mode& other : separate) {
    if (other.clip != fused.clip) continue;
    const auto figures = [&](std::vector<double> Mode::*of) {
      if ((fused.*of).empty()) return std::string();
      const double theirs = median(other.*of), ours = median(fused.*of);
      return fmt::format("{:8.1f} {:8.1f} {:5.2f}x", theirs, ours, theirs / ours);
    };
    fmt::print("{:<8} {:<8} {:<5} {}  {}  {}\n", other.name, fused.name, fused.clip ? "clip" : "",
               figures(&Mode::alone), figures(&Mode::first), figures(&Mode::all));
  }
}

// The ways of one shard.
void compare(weft::Communicator& comm, const Options& options, bool eager) {
  Shard shard(comm, options.millions, options.bucket, eager);
  Separate separate(comm, shard);
  std::vector<Mode> modes;
  for (const bool clip : {false, true}) {
    if (clip && eager) continue;
    modes.push_back(modeOf("calls", separate, How{Optimizer::OnePass, clip}));
    modes.push_back(modeOf("passes", separate, How{Optimizer::Passes, clip}));
    modes.push_back(modeOf(eager ? "eager" : "barrier", shard, clip));
  }
  Bench(comm, options, shard).run(modes);
  for (std::size_t i = 2; comm.rank() == 0 && i < modes.size(); i += 3)
    print(modes[i], {modes.data() + i - 2, 2});
}

int rankMain(const Options& options) {
  weft::Communicator comm = weft::Communicator::fromEnvironment();
  if (comm.rank() == 0) {
    fmt::print("# {} ranks, {:.1f} M parameters, bf16, medians of {} steps; backward {} steps\n",
               options.ranks, options.millions, options.repeats, options.backward);
    fmt::print("{:<22} {:>23}  {:>24}  {:>24}\n", "# separate, fused", "alone, ms",
               "exposed until forward", "until all is there");
  }
  if (comm.size() > 1) compare(comm, options, true);  // one after the other: each has a model
  compare(comm, options, false);
  comm.finalize();
  return 0;
}

}  // namespace

int runBench(int argc, char** argv) {
  Options options;
  CLI::App app("What a sharded optimizer step costs, fused and as separate calls",
               "weft-bench-step");
  app.option_defaults()->always_capture_default();
  app.add_option("--ranks", options.ranks, "Local ranks")->check(CLI::Range(1, 64));
  app.add_option("--millions", options.millions, "Parameters")->check(weft::tools::positive());
  app.add_option("--repeats", options.repeats, "Steps of each kind")->check(CLI::Range(1, 1000));
  app.add_option("--bucket", options.bucket, "Elements of a bucket; 0: the library's default");
  app.add_option("--backward", options.backward,
                 "Time of backward, in steps of separate calls; 0: only the step alone")
      ->check(weft::tools::natural());
  weft::tools::addVersion(app, "weft-bench-step");
  if (const auto code = weft::tools::endByWords(app, argc, argv)) return *code;
  if (std::getenv("WEFT_RANK") == nullptr) return weft::tools::runLocalRanks(options.ranks, argv);
  options.ranks = std::atoi(std::getenv("WEFT_SIZE"));
  return rankMain(options);
}

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-bench-step", [&]() { return runBench(argc, argv); });
}
