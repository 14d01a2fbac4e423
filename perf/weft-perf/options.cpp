// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <stdexcept>

#include "perf/common/command_line.h"
#include "perf/common/exit_code.h"
#include "perf/weft-perf/numbers.h"
#include "perf/weft-perf/parsed.h"

namespace weft::perf {
namespace {

constexpr const char* kFooter = R"(
Examples
  weft-perf all_reduce -b 8 -e 256M -f 4 -g 2          two ranks as threads
  weft-perf all_reduce -b 8 -e 256M -f 4 --ranks 2     two ranks as processes
  mpirun -n 2 weft-perf all_reduce -b 8 -e 256M -f 4   ranks from a launcher

Columns are those of nccl-tests: size of the larger buffer in bytes, time in microseconds per call
(mean of a steady loop), algbw = size / time and busbw = algbw * factor in GB/s (10^9 bytes), and
#wrong, elements that failed the check on any rank. N/A: not in place, or not checked.
Exit codes: 0 passed, 1 wrong data, 64 usage, 65 ranks disagree, 70 internal, 73 report not written,
75 peer lost, 77 wrong secret, 78 configuration.
Environment: NCCL_TESTS_MIN_BW (GB/s), NCCL_TESTS_SPLIT, NCCL_TESTS_SPLIT_MASK; and WEFT_*.)";

std::string joinedNames() {
  std::string names;
  for (const Collective& collective : allCollectives()) names += std::string(" ") + collective.name;
  return names;
}

// The flags as typed, where their type is not that of Options.
struct Raw {
  std::string collective, op = "sum", type = "float", root = "0";
  std::string min = "32M", max = "32M", step = "1M", unalign = "0", unalignBytes = "0";
  int average = 1, registration = 0, blocking = 0;
};

void addSizes(CLI::App& app, Raw& raw, Options& options) {
  app.add_option("-b,--minbytes", raw.min, "smallest size; 0 is legal")->capture_default_str();
  app.add_option("-e,--maxbytes", raw.max, "largest size")->capture_default_str();
  app.add_option("-i,--stepbytes", raw.step, "increment between sizes")->capture_default_str();
  app.add_option("-f,--stepfactor", options.factor, "factor between sizes, instead of -i")
      ->check(tools::natural(0x1p64));
  app.add_option("-u,--unalign", raw.unalign,
                 "move the buffers off their alignment by so many elements");
  app.add_option("--unalign-bytes", raw.unalignBytes, "or by so many bytes, or by both");
  app.add_flag("--exact-counts", options.exactCounts,
               "do not round the blocks of all_gather and reduce_scatter to 16 bytes");
}

void addRanks(CLI::App& app, Options& options) {
  const auto positive = CLI::Range(1, 4096);
  app.add_option("-t,--nthreads", options.threads, "threads of this process")->check(positive);
  app.add_option("-g,--ngpus", options.perThread, "ranks (each its own thread) per -t")
      ->check(positive);
  app.add_option("--ranks", options.localProcesses, "start so many local processes")
      ->check(positive);
  app.add_option("-p,--parallel_init", options.parallelInit,
                 "1: each rank joins in its own thread");
}

void addWork(CLI::App& app, Raw& raw, Options& options) {
  const auto natural = tools::natural();
  app.add_option("-n,--iters", options.iterations, "timed calls")->check(tools::positive());
  app.add_option("-w,--warmup_iters", options.warmup,
                 fmt::format("calls before them, at each size (default: 1, then up to {} in {} s, "
                             "in which calls find their form)",
                             Options::kMostSettling, Options::kSettlingSeconds))
      ->each([&options](const std::string&) { options.settles = false; })
      ->check(natural);
  app.add_option("-m,--agg_iters", options.aggregate, "calls in one group")
      ->check(tools::positive());
  app.add_option("-N,--run_cycles", options.cycles, "repeat everything; 0 = endlessly")
      ->check(natural);
  app.add_option(
         "-o,--op", raw.op,
         "sum prod min max avg mulsum band bor bxor all; the bitwise three are of integers only")
      ->capture_default_str();
  app.add_option("-d,--datatype", raw.type, "int8 ... float bfloat16, or all")
      ->capture_default_str();
  app.add_option("-r,--root", raw.root, "rank of the root, or all")->capture_default_str();
  app.add_option("-c,--check", options.checks,
                 "times that the data is checked: exactly, and random data against fp64")
      ->check(natural);
  app.add_option("-z,--blocking", raw.blocking, "only 0");
  app.add_flag("--stream", options.useStream, "queue the calls on a weft stream");
  app.add_option("-R,--local_register", raw.registration,
                 "1: weftMemAlloc and register the buffers");
  app.add_option("-T,--timeout", options.timeoutSeconds, "deadline of each call in seconds")
      ->check(natural);
}

void addReport(CLI::App& app, Raw& raw, Options& options) {
  app.add_option("-a,--average", raw.average, "time over ranks: 0 rank 0, 1 mean, 2 min, 3 max")
      ->check(CLI::Range(0, 3));
  app.add_option("-C,--report_cputime", options.cpuTime, "1: CPU time of the calling thread");
  app.add_option("-S,--report_timestamps", options.timestamps, "1: date and time on each line");
  app.add_option("-M,--memory", options.memoryReport, "1: the library's memory at the end");
  app.add_option_function<std::string>(
         "-I,--per_iter_timing",
         [&options](const std::string& value) { options.perIteration = value != "0"; },
         "more columns: minimum, maximum, p99 and variation of single calls; 0: none")
      ->expected(0, 1);
  app.add_option("-K,--per_iter_skip", options.skippedIterations,
                 "leave so many first calls out of the statistics of single calls")
      ->check(tools::natural());
  app.add_flag("--percentiles", options.percentiles, "more columns: p50 and p99 of single calls");
  app.add_option("-J,--json,--output_file", options.json,
                 "write everything to this file as JSON; - is standard output");
  app.add_option("--trace", options.trace,
                 "write the ops of one more call of the last size, of all ranks, for "
                 "ui.perfetto.dev (Chrome's format)");
  app.add_flag("--explain", options.explain,
               "print the machine's numbers, and the form that each size takes and why");
}

void addLibrary(CLI::App& app, Options& options) {
  app.add_option("--algo", options.algorithm,
                 "force an algorithm, or a schedule of MSCCL or MSCCL++ (FILE.xml, FILE.json, for "
                 "WEFT_ALGO); 'list' prints "
                 "the names");
  app.add_option("--transport", options.transport,
                 "auto, local, shm, verbs, ofi, two of them as shm+ofi (inside a host and between "
                 "hosts), or faulty:SEED");
  app.add_option("--topo", options.topology, "file that describes nodes and rails (WEFT_TOPO_FILE)")
      ->check(CLI::ExistingFile);
  app.add_flag("--reproducible", options.reproducible, "fold in rank order");
}

// Flags of nccl-tests without a meaning for host memory say so instead of being ignored, unless
// they switch off what is not there.
void addRejected(CLI::App& app) {
  const auto reject = [&app](const char* names, const char* why) {
    app.add_option_function<std::string>(names,
                                         [=](const std::string& value) {
                                           if (value == "0") return;
                                           throw CLI::ValidationError(
                                               names, std::string("has no meaning here: ") + why);
                                         })
        ->group("");
  };
  reject("-G,--cudagraph", "weft has no CUDA graphs; its plans are cached by themselves");
  reject("-D,--device_implementation", "weft has no device API");
  reject("-V,--device_cta_count", "weft has no thread blocks");
  reject("-x,--cta_policy", "weft has no thread blocks");
  reject("-y,--stream_null", "calls run on the caller's thread unless --stream is given");
}

int parseRoot(const std::string& text) {
  if (text == "all") return Options::kAllRoots;
  int root = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, root);
  if (error == std::errc() && stop == end && root >= 0) return root;
  throw std::invalid_argument("'" + text + "' is neither a rank nor all");
}

void checkRaw(const Raw& raw) {
  if (raw.blocking != 0) {
    throw CLI::ValidationError("-z", "has no meaning here: without --stream each call is blocking");
  }
  if (raw.registration < 0 || raw.registration > 1) {
    throw CLI::ValidationError("-R", "is 0 or 1; weft has no symmetric windows");
  }
}

// Of several operations and types, those that do not suit each other are left out.
void checkSuits(const Options& options) {
  for (const OpInfo& op : options.ops)
    for (const TypeInfo& type : options.types)
      if (suits(op, type)) return;
  throw CLI::ValidationError(
      "-o", fmt::format("{} is bitwise, of integers only; give one of them with -d, as uint32",
                        options.ops[0].name));
}

void convert(const Raw& raw, Options& options) {
  checkRaw(raw);
  options.collective = parsed("collective", [&]() { return &parseCollective(raw.collective); });
  options.minBytes = parsed("-b", [&]() { return parseSize(raw.min); });
  options.maxBytes = parsed("-e", [&]() { return parseSize(raw.max); });
  options.stepBytes = parsed("-i", [&]() { return parseSize(raw.step); });
  options.unalign = parsed("-u", [&]() { return parseSize(raw.unalign); });
  options.unalignBytes = parsed("--unalign-bytes", [&]() { return parseSize(raw.unalignBytes); });
  options.ops = parsed("-o", [&]() { return parseOps(raw.op); });
  options.types = parsed("-d", [&]() { return parseTypes(raw.type); });
  checkSuits(options);
  options.average = static_cast<Average>(raw.average);
  options.registerMemory = raw.registration == 1;
  options.root = parsed("-r", [&]() { return parseRoot(raw.root); });
}

void checkSizes(const Options& options) {
  if (options.minBytes > options.maxBytes) {
    throw CLI::ValidationError(
        "-b", fmt::format("{} is larger than -e {}", options.minBytes, options.maxBytes));
  }
  const bool stuck = options.factor <= 1 && options.stepBytes == 0;
  if (stuck && options.minBytes < options.maxBytes) {
    throw CLI::ValidationError("-i", "0 never reaches -e; give a step, or a factor with -f");
  }
  constexpr std::size_t kMaxUnalign = 4096;
  if (options.unalign > kMaxUnalign) throw CLI::ValidationError("-u", "is at most 4096 elements");
  if (options.unalignBytes > kMaxUnalign)
    throw CLI::ValidationError("--unalign-bytes", "is at most 4096");
  if (options.skippedIterations >= options.iterations) {
    throw CLI::ValidationError("-K", fmt::format("{} of {} calls leaves none; use less than -n",
                                                 options.skippedIterations, options.iterations));
  }
}

int listAlgorithms(const Raw& raw) {
  for (const Collective& collective : allCollectives()) {
    const bool wanted = raw.collective.empty() || &parseCollective(raw.collective) == &collective;
    if (wanted) fmt::print("{}: {}\n", collective.name, weftAlgorithms(collective.name));
  }
  return 0;
}

// A schedule's file is read where communicators are made, so it is for the knob to name.
void nameScheduleFile(const std::string& algorithm) {
  const std::string file = algorithm.substr(0, algorithm.find(':'));
  if (file.find('/') != file.npos || file.ends_with(".xml") || file.ends_with(".json"))
    setenv("WEFT_ALGO", algorithm.c_str(), 1);
}

// "all_reduce_perf", a link to this program, is "weft-perf all_reduce".
std::string collectiveOfProgram(const char* program) {
  const std::string name = std::filesystem::path(program).filename().string();
  return name.ends_with("_perf") ? name : std::string();
}

}  // namespace

std::variant<Options, int> parseOptions(int argc, char** argv) {
  CLI::App app("Times and checks weft's collectives, in the manner of nccl-tests.", "weft-perf");
  app.option_defaults()->take_last();  // as getopt
  Options options;
  Raw raw;
  raw.collective = collectiveOfProgram(argc > 0 ? argv[0] : "");
  if (raw.collective.empty()) app.add_option("collective", raw.collective, joinedNames());
  addRanks(app, options);
  addSizes(app, raw, options);
  addWork(app, raw, options);
  addReport(app, raw, options);
  addLibrary(app, options);
  addRejected(app);
  tools::addVersion(app, options.program);
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
    if (options.algorithm == "list")
      return parsed("collective", [&]() { return listAlgorithms(raw); });
    if (raw.collective.empty())
      throw CLI::ValidationError("collective", "use one of" + joinedNames());
    convert(raw, options);
    checkSizes(options);
    nameScheduleFile(options.algorithm);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : tools::kExitUsage;
  }
  return options;
}

}  // namespace weft::perf
