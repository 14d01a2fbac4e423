// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::mpi {
namespace {

constexpr std::size_t kNames = static_cast<std::size_t>(Name::Count_);
constexpr std::size_t kWhys = static_cast<std::size_t>(Why::Count_);

constexpr std::array<const char*, kNames> kNameTexts{
    "Allreduce", "Reduce",    "Reduce_scatter", "Reduce_scatter_block",
    "Bcast",     "Allgather", "Allgatherv",     "Gather",
    "Gatherv",   "Scatter",   "Scatterv",       "Alltoall",
    "Alltoallv", "Barrier"};
constexpr std::array<const char*, kWhys> kWhyTexts{
    "communicator of one rank", "intercommunicator", "processes that were spawned or connected",
    "no communicator of weft",  "type or operation", "arguments"};

using Count = std::atomic<std::uint64_t>;
std::array<Count, kNames> ranHere{};
std::array<std::array<Count, kWhys>, kNames> ranBelow{};

void append(std::string* list, const std::string& item) {
  if (!list->empty()) *list += ", ";
  *list += item;
}

std::string withCount(const char* text, std::uint64_t count) {
  return std::string(text) + " " + std::to_string(count);
}

// "Allreduce 3: type or operation 3"
std::string belowOf(std::size_t name, std::uint64_t* total) {
  std::string reasons;
  std::uint64_t count = 0;
  for (std::size_t why = 0; why < kWhys; ++why) {
    if (ranBelow[name][why] == 0) continue;
    count += ranBelow[name][why];
    append(&reasons, withCount(kWhyTexts[why], ranBelow[name][why]));
  }
  *total += count;
  return count == 0 ? "" : withCount(kNameTexts[name], count) + ": " + reasons;
}

std::string inBrackets(const std::string& list) { return list.empty() ? "" : " (" + list + ")"; }

}  // namespace

void countHere(Name name) {
  ranHere[static_cast<std::size_t>(name)].fetch_add(1, std::memory_order_relaxed);
}

void countBelow(Name name, Why why) {
  ranBelow[static_cast<std::size_t>(name)][static_cast<std::size_t>(why)].fetch_add(
      1, std::memory_order_relaxed);
}

std::string describeCalls() {
  std::string run, passed;
  std::uint64_t runs = 0, passes = 0;
  for (std::size_t name = 0; name < kNames; ++name) {
    if (ranHere[name] != 0) append(&run, withCount(kNameTexts[name], ranHere[name]));
    runs += ranHere[name];
    if (const std::string these = belowOf(name, &passes); !these.empty())
      passed += (passed.empty() ? "" : "; ") + these;
  }
  return std::to_string(runs) + " collectives on weft" + inBrackets(run) + ", " +
         std::to_string(passes) + " on the MPI below" + inBrackets(passed);
}

}  // namespace weft::mpi
