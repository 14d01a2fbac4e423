// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/probe.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "perf/common/exit_code.h"
#include "perf/common/local_ranks.h"

namespace weft::doctor {
namespace {

constexpr int kInitMs = 15000;
constexpr unsigned kMostSeconds = 30;

struct Pipe {
  explicit Pipe(const std::string& command) : stream(::popen(command.c_str(), "r")) {}
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() { close(); }
  int close() {
    FILE* const open = std::exchange(stream, nullptr);
    return open == nullptr ? -1 : ::pclose(open);
  }
  FILE* stream;
};

std::string readAll(FILE* stream) {
  std::string all;
  std::array<char, 4096> buffer;
  for (std::size_t got; (got = std::fread(buffer.data(), 1, buffer.size(), stream)) > 0;)
    all.append(buffer.data(), got);
  return all;
}

// "rank 1: shm" and a line break, without what is known.
std::string carrierIn(std::string edges) {
  edges.resize(edges.find('\n') == edges.npos ? edges.size() : edges.find('\n'));
  const std::size_t colon = edges.find(": ");
  return colon == edges.npos ? edges : edges.substr(colon + 2);
}

weftResult_t tryOut(weftComm_t comm) {
  constexpr std::size_t kCount = 100'001;
  std::vector<std::int32_t> input(kCount), sum(kCount);
  std::iota(input.begin(), input.end(), 0);
  const weftResult_t result =
      weftAllReduce(input.data(), sum.data(), kCount, weftInt32, weftSum, comm, nullptr, nullptr);
  for (std::size_t i = 0; result == weftSuccess && i < kCount; ++i) {
    if (sum[i] != 2 * input[i]) return weftInternalError;
  }
  return result;
}

}  // namespace

Probe probe(const std::string& transport) {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) return {transport, -1, "/proc/self/exe cannot be read"};
  Pipe pipe(fmt::format("exec '{}' --ranks 2 --probe '{}' 2>/dev/null", self.data(), transport));
  if (pipe.stream == nullptr) return {transport, -1, "no process can be started"};
  std::istringstream said(readAll(pipe.stream));
  const int status = pipe.close();
  Probe result{transport, WIFEXITED(status) ? WEXITSTATUS(status) : -1, {}};
  std::getline(std::getline(said, result.says), result.fix);
  if (result.exitCode > 128) result.exitCode = -1;
  if (result.exitCode < 0 && result.says.empty())
    result.says = fmt::format("a process that tried it was killed (status {:#x})", status);
  return result;
}

int startProbe(char** argv) {
  ::alarm(kMostSeconds);  // its ranks die with it
  return tools::runLocalRanks(2, argv);
}

int runProbe(const std::string& transport) {
  ::alarm(kMostSeconds);
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.timeoutMs = config.initTimeoutMs = kInitMs;
  config.commName = "probe";
  if (!transport.empty()) config.transport = transport.c_str();
  weftComm_t comm = nullptr;
  weftResult_t result = weftCommInitFromEnv(&comm, &config);
  if (result == weftSuccess) result = tryOut(comm);
  std::array<char, 1024> edges{};
  if (result == weftSuccess) result = weftCommEdges(comm, edges.data(), edges.size());
  const ErrorInfo error = lastErrorInfo(comm);
  const std::string says = result == weftSuccess ? carrierIn(edges.data()) : error.message;
  std::fputs(fmt::format("{}\n{}\n", says, error.fix).c_str(), stdout);
  std::fflush(stdout);
  weftCommDestroy(comm);
  return tools::exitCodeOf(result);
}

}  // namespace weft::doctor
