// SPDX-License-Identifier: Apache-2.0
#include "tools/train/local_scaling.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "perf/common/local_ranks.h"
#include "tools/train/failure.h"
#include "tools/train/reports/host_name.h"
#include "tools/train/scaling.h"

namespace weft::train {
namespace {

// Those of the table; the runs that it measures have the others.
constexpr std::array<std::string_view, 5> kOwnOptions{"--scaling", "--svg", "--report", "--json",
                                                      "--csv"};

// A file without a name for the measured run to write its summary to; it inherits the descriptor.
class ResultFile {
 public:
  ResultFile() : descriptor_(memfd_create("weft-train-summary", 0)) {
    if (descriptor_ < 0) {
      throw Failure(Exit::kConfiguration, fmt::format("memfd_create: {}", std::strerror(errno)));
    }
  }
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  ~ResultFile() { close(descriptor_); }

  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }
  std::string content() const {
    std::string text(size_t{1} << 20, '\0');
    const ssize_t length = pread(descriptor_, text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(length, 0)));
    return text;
  }

 private:
  int descriptor_;
};

// The command line without the table's own options.
std::vector<std::string> othersOf(char** argv) {
  std::vector<std::string> others;
  for (char** word = argv; *word != nullptr; ++word) {
    const std::string text = *word, name = text.substr(0, text.find('='));
    const bool isOurs = std::ranges::find(kOwnOptions, name) != kOwnOptions.end();
    if (!isOurs) others.push_back(text);
    if (isOurs && name == text && word[1] != nullptr) ++word;
  }
  return others;
}

Throughput measure(const Options& options, std::vector<std::string> words, int ranks,
                   bool independent) {
  const ResultFile result;
  for (const std::string& word :
       {std::string("--quiet"), "--json=" + result.path(),
        fmt::format("--threads={}", threadsOfScaling(options)),
        fmt::format("--seconds={}", options.scalingSeconds), std::string("--steps=1000000")}) {
    words.push_back(word);
  }
  if (independent) words.emplace_back("--independent");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int code = tools::runLocalRanks(ranks, argv.data());
  if (code != 0) {
    throw Failure(static_cast<Exit>(code),
                  fmt::format("no scaling table: the run with {} ranks failed", ranks));
  }
  const auto json = nlohmann::json::parse(result.content());
  return {json.at("sequences_per_s"), json.at("exposed_ms")};
}

// That the ranks of the largest row share cores, if they do.
std::string noteOfCores(const Options& options, int cores) {
  const int most = std::ranges::max(options.scaling), threads = threadsOfScaling(options);
  if (most * threads <= cores) return {};
  return fmt::format(
      "# {} ranks need {} cores and there are {}: rows beyond {} ranks share cores\n", most,
      most * threads, cores, cores / threads);
}

}  // namespace

int scaleOnThisHost(const Options& options, char** argv) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const std::vector<std::string> words = othersOf(argv);
  printScalingTable(options, {{hostName()},
                              fmt::format("{} cores", cores),
                              noteOfCores(options, cores),
                              true,
                              [&](int ranks, bool independent) {
                                return measure(options, words, ranks, independent);
                              }});
  return 0;
}

}  // namespace weft::train
