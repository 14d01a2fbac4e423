// SPDX-License-Identifier: Apache-2.0
// What waiting costs: all-reduces of ranks that share cores, with each other or with strangers that
// compute, and the CPU time of ranks that wait for one that is late.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "perf/common/command_line.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int ranks = 2;
  bool threads = false;
  bool pin = false;    // rank r to the r-th allowed core, round robin
  int strangers = 0;   // processes that compute beside the ranks, on all cores
  double late = 0;     // seconds by which rank 0 enters late; 0: measure the steady loop
  double seconds = 1;  // for each size
  std::vector<std::size_t> sizes{8, 1024, 16384};
};

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of the calling thread.
struct Usage {
  double cpu = 0;
  long switches = 0;

  static Usage now() {
    rusage u{};
    getrusage(RUSAGE_THREAD, &u);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return {seconds(u.ru_utime) + seconds(u.ru_stime), u.ru_nvcsw + u.ru_nivcsw};
  }
};

void pinTo(int rank) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  int left = rank % CPU_COUNT(&allowed);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || left-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

class Rank {
 public:
  Rank(weftComm_t comm, const Options& options) : comm_(comm), options_(options) {
    weft::check(weftCommUserRank(comm, &rank_), comm);
    if (options.pin) pinTo(rank_);
  }

  void run() {
    if (options_.late > 0) return waitForLateRank();
    for (const std::size_t bytes : options_.sizes) measure(bytes);
  }

 private:
  void waitForLateRank() {
    resize(8);
    allReduce();
    const Usage before = Usage::now();
    if (rank_ == 0) std::this_thread::sleep_for(std::chrono::duration<double>(options_.late));
    allReduce();
    const Usage after = Usage::now();
    fmt::print("rank {}: {:.1f} ms of CPU, {} switches while rank 0 was {} s late\n", rank_,
               (after.cpu - before.cpu) * 1e3, after.switches - before.switches, options_.late);
  }

  void measure(std::size_t bytes) {
    resize(bytes);
    std::vector<double> us;
    const std::size_t calls = countCalls();
    us.reserve(calls);
    const Usage before = Usage::now();
    const Clock::time_point start = Clock::now();
    Clock::time_point last = start;
    for (std::size_t i = 0; i < calls; ++i) {
      allReduce();
      const Clock::time_point now = Clock::now();
      us.push_back(std::chrono::duration<double, std::micro>(now - last).count());
      last = now;
    }
    const double wall = secondsSince(start);
    const Usage after = Usage::now();
    if (rank_ != 0) return;
    std::sort(us.begin(), us.end());
    const auto n = static_cast<double>(calls);
    fmt::print(
        "{:>10} B {:>9} calls: mean {:>9.2f} us, p50 {:>9.2f}, p99 {:>9.2f}, max {:>9.0f}; "
        "{:.2f} switches a call, {:.0f} % of a core\n",
        bytes, calls, wall / n * 1e6, us[calls / 2], us[calls * 99 / 100], us.back(),
        static_cast<double>(after.switches - before.switches) / n,
        (after.cpu - before.cpu) / wall * 100);
  }

  // As many as fill the time, agreed on: what rank 0 counts.
  std::size_t countCalls() {
    allReduce();
    float calls = 1, agreed = 1;
    for (double took = 0; took < options_.seconds / 10; calls = agreed) {
      const Clock::time_point start = Clock::now();
      for (float i = 0; i < calls; ++i) allReduce();
      took = secondsSince(start);
      const double next =
          took < options_.seconds / 10 ? calls * 4. : calls * options_.seconds / took;
      float told[2] = {static_cast<float>(std::max(1., next)), static_cast<float>(took)};
      weft::check(weftBroadcast(told, told, 2, weftFloat, 0, comm_, nullptr, nullptr), comm_);
      agreed = static_cast<float>(static_cast<std::size_t>(told[0]));
      took = static_cast<double>(told[1]);
    }
    return static_cast<std::size_t>(agreed);
  }

  void resize(std::size_t bytes) {
    in_.assign(bytes / sizeof(float), 1);
    out_.assign(bytes / sizeof(float), 0);
  }
  void allReduce() {
    weft::check(weftAllReduce(in_.data(), out_.data(), in_.size(), weftFloat, weftSum, comm_,
                              nullptr, nullptr),
                comm_);
  }

  weftComm_t comm_;
  const Options& options_;
  int rank_ = 0;
  std::vector<float> in_, out_;
};

int guarded(const std::function<void()>& body) {
  try {
    body();
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-bench-waiting: {}\n", error.what());
    return EXIT_FAILURE;
  }
}

pid_t startChild(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  _exit(guarded(body));
}

int runProcesses(const Options& options) {
  weftUniqueId id;
  std::vector<pid_t> children;
  weft::check(weftGetUniqueId(&id));
  for (int rank = 1; rank < options.ranks; ++rank) {
    children.push_back(startChild([&, rank] {
      weftComm_t comm = nullptr;
      weft::check(weftCommInitRank(&comm, options.ranks, id, rank));
      Rank(comm, options).run();
      std::fflush(stdout);
      weftCommDestroy(comm);
    }));
  }
  int failed = guarded([&] {
    weftComm_t comm = nullptr;
    weft::check(weftCommInitRank(&comm, options.ranks, id, 0));
    Rank(comm, options).run();
    weftCommDestroy(comm);
  });
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status != 0;
  }
  return failed;
}

int runThreads(const Options& options) {
  std::vector<weftComm_t> comms(static_cast<std::size_t>(options.ranks));
  weft::check(weftCommInitAll(comms.data(), options.ranks, nullptr));
  std::vector<std::jthread> threads;
  for (const weftComm_t comm : comms)
    threads.emplace_back([&, comm] {
      if (guarded([&] { Rank(comm, options).run(); }) != 0) std::_Exit(EXIT_FAILURE);
    });
  threads.clear();
  for (const weftComm_t comm : comms) weftCommDestroy(comm);
  return EXIT_SUCCESS;
}

[[noreturn]] void compute() {
  for (volatile std::uint64_t n = 0;;) n = n + 1;
}

int run(const Options& options) {
  std::vector<pid_t> strangers;
  for (int i = 0; i < options.strangers; ++i) strangers.push_back(startChild(compute));
  int failed = EXIT_FAILURE;
  const int thrown =
      guarded([&] { failed = options.threads ? runThreads(options) : runProcesses(options); });
  for (const pid_t stranger : strangers) {
    kill(stranger, SIGKILL);
    waitpid(stranger, nullptr, 0);
  }
  return failed | thrown;
}

}  // namespace

int runBench(int argc, char** argv) {
  Options options;
  CLI::App app("What waiting costs weft: all-reduces of fp32 among the ranks of this host");
  app.add_option("--ranks", options.ranks)->check(CLI::Range(1, 64))->capture_default_str();
  app.add_flag("--threads", options.threads, "ranks are threads, not processes");
  app.add_flag("--pin", options.pin, "rank r stays on core r mod cores");
  app.add_option("--strangers", options.strangers, "processes that compute beside the ranks");
  app.add_option("--late", options.late, "only: rank 0 enters so many seconds late");
  app.add_option("--seconds", options.seconds, "for each size")->capture_default_str();
  app.add_option("--sizes", options.sizes, "bytes")->delimiter(',')->capture_default_str();
  weft::tools::addVersion(app, "weft-bench-waiting");
  if (const auto code = weft::tools::endByWords(app, argc, argv)) return *code;
  return run(options);
}

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-bench-waiting", [&]() { return runBench(argc, argv); });
}
