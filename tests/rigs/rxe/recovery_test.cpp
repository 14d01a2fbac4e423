// SPDX-License-Identifier: Apache-2.0
// A cable of the rig's mesh is pulled while an all-reduce runs, and the communicator goes on by
// another way. Through the public API, as the machine's root.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "world.h"

namespace weft::testing {
namespace {

constexpr int kCards = 4;
constexpr int kCallsAfter = 20;  // from the first that fails
constexpr std::size_t kCount = 4096;
constexpr int kTimeoutMs = 60000;

// What the ranks of one run share.
struct Progress {
  std::atomic<int> joined{0};
  std::atomic<int> calls{0};
  std::atomic<int> stopAt{0};  // a call's number; 0: nobody has lost the link yet
  // nowMs() on rank 0: the last call that failed was over; the next one was, too.
  std::atomic<double> lostAt{0}, recoveredAt{0};
};

// What one rank saw.
struct Seen {
  int lost = 0;
  std::string text;
};

bool isRight(const std::vector<float>& out, int call) {
  for (std::size_t k = 0; k < out.size(); ++k)
    if (out[k] != static_cast<float>(10 * (call % 1000) + 4 * static_cast<int>(k % 7)))
      return false;
  return true;
}

weftResult_t sum(weftComm_t comm, int rank, int call, std::vector<float>* out) {
  std::vector<float> in(out->size());
  for (std::size_t k = 0; k < in.size(); ++k)
    in[k] = static_cast<float>((rank + 1) * (call % 1000) + static_cast<int>(k % 7));
  return weftAllReduce(in.data(), out->data(), in.size(), weftFloat, weftSum, comm, nullptr,
                       nullptr);
}

void note(weftResult_t result, Progress& shared) {
  ++shared.calls;
  if (result != weftSuccess)
    shared.lostAt = nowMs();
  else if (shared.lostAt != 0 && shared.recoveredAt == 0)
    shared.recoveredAt = nowMs();
}

// Until some calls after the first that fails; all that end well are right.
std::string sums(weftComm_t comm, int rank, Progress& shared, Seen* seen) {
  std::vector<float> out(kCount);
  for (int call = 1; shared.stopAt == 0 || call < shared.stopAt; ++call) {
    const weftResult_t result = sum(comm, rank, call, &out);
    if (rank == 0) note(result, shared);
    if (result == weftSuccess) {
      if (!isRight(out, call)) return "call " + std::to_string(call) + " is wrong";
      continue;
    }
    int nobody = 0;
    shared.stopAt.compare_exchange_strong(nobody, call + kCallsAfter);
    seen->text = outcome(result, comm);
    if (result != weftRemoteError || ++seen->lost > 2) return seen->text;
  }
  return "";
}

std::string edgesOf(weftComm_t comm) {
  std::string lines(2000, '\0');
  weftCommEdges(comm, lines.data(), lines.size());
  return lines.c_str();
}

// "ok" and what it saw, or what went wrong.
std::string live(int rank, const IdCourier& courier, Progress& shared, int a, int b) {
  ::setenv("WEFT_NET_DEVICES", ("rc" + std::to_string(rank)).c_str(), 1);
  weftUniqueId id;
  if (std::string failed = courier.exchange(rank, &id); !failed.empty()) return failed;
  weftComm_t comm = nullptr;
  const weftConfig_t config = configOf({Kind::Processes, kCards, "verbs", kTimeoutMs});
  if (const weftResult_t made = weftCommInitRankConfig(&comm, kCards, id, rank, &config))
    return outcome(made, nullptr);
  ++shared.joined;
  Seen seen;
  std::string wrong = sums(comm, rank, shared, &seen);
  const std::string edges = edgesOf(comm);
  const int other = rank == a ? b : a;
  if (wrong.empty() && (rank == a || rank == b) &&
      edges.find("rank " + std::to_string(other) + ": shm") == std::string::npos)
    wrong = "edges: " + edges;
  weftCommDestroy(comm);
  return wrong.empty() ? "ok " + std::to_string(seen.lost) + " " + seen.text : wrong;
}

void cable(int a, int b, const char* what) {
  const std::string line = "cable " + std::to_string(a) + " " + std::to_string(b) + " " + what;
  ASSERT_EQ(std::system(line.c_str()), 0) << line;
}

// At least one rank names the cable by its device, port and both ranks.
bool isNamed(const std::vector<std::string>& said, int a, int b) {
  const auto from = [](int i, int j) {
    const std::string x = std::to_string(i), y = std::to_string(j);
    return "link from rank " + x + " .* to rank " + y + " .* is down.*rc" + x + "p" + y + ":1";
  };
  const std::regex words(from(a, b) + "|" + from(b, a));
  for (const std::string& line : said)
    if (std::regex_search(line, words)) return true;
  return false;
}

void pull(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const int a = static_cast<int>(random() % (kCards - 1));
  const int b = a + 1 + static_cast<int>(random() % static_cast<unsigned>(kCards - 1 - a));
  Shared<Progress> shared;
  const IdCourier courier(kCards);
  Processes ranks(kCards, [&](int rank) { return live(rank, courier, *shared, a, b); });
  for (int ms = 0; ms < kTimeoutMs && (shared->joined < kCards || shared->calls < 5); ms += 10)
    sleepMs(10);
  sleepMs(static_cast<double>(random() % 1000));
  const double began = nowMs();
  cable(a, b, "down");
  const std::vector<std::string> said = ranks.join();
  const bool recovered =
      std::ranges::all_of(said, [](const std::string& line) { return line.starts_with("ok "); });
  EXPECT_TRUE(recovered && isNamed(said, a, b)) << failuresIn(said);
  const double lostAt = shared->lostAt == 0 ? began : shared->lostAt.load();
  std::printf("seed %d, cable %d-%d: %s; lost %.0f ms after the pull, the next call took %.0f ms\n",
              static_cast<int>(seed), a, b, recovered ? "recovered" : "FAILED", lostAt - began,
              recovered ? shared->recoveredAt - lostAt : 0);
  cable(a, b, "up");
}

TEST(Cable, APulledOneIsGoneAround) {
  const char* wanted = std::getenv("RXE_PULLS");
  const int pulls = wanted != nullptr ? std::atoi(wanted) : 1;
  for (int seed = 1; seed <= pulls; ++seed) pull(static_cast<std::uint64_t>(seed));
}

}  // namespace
}  // namespace weft::testing
