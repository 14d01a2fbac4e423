// SPDX-License-Identifier: Apache-2.0
#include "monitored_barrier.h"

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace weft::pytorch {
namespace {

std::string listOf(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "Rank " : "Ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

MonitoredBarrier::MonitoredBarrier(const Identity& who)
    : who_(who), passed_(static_cast<std::size_t>(who.size)) {}

void MonitoredBarrier::pass(Milliseconds timeout, bool waitAllRanks) try {
  who_.rank == 0 ? lead(timeout, waitAllRanks) : follow(timeout);
} catch (const c10::Error& error) {
  blameStore(who_, "the state of monitoredBarrier", error);
} catch (const std::system_error& error) {
  blameStore(who_, "the state of monitoredBarrier", error);
}

std::string MonitoredBarrier::keyOf(const char* what, int rank) const {
  return std::string("weft/barrier/") + what + "/" + std::to_string(rank) + "/" +
         std::to_string(passed_[static_cast<std::size_t>(rank)]);
}

void MonitoredBarrier::lead(Milliseconds timeout, bool waitAllRanks) {
  const std::vector<int> missing = findMissing(timeout, waitAllRanks);
  std::string text;
  if (!missing.empty())
    text = listOf(missing) + " failed to pass monitoredBarrier in " +
           std::to_string(timeout.count()) + " ms";
  answer(missing, text);
  if (!text.empty())
    throw std::runtime_error("weft: " + text + " (" + who_.name + "); fix: see what keeps them");
}

std::vector<int> MonitoredBarrier::findMissing(Milliseconds timeout, bool waitAllRanks) {
  const auto deadline = Clock::now() + timeout;
  std::vector<int> missing;
  for (int rank = 1; rank < who_.size; ++rank) {
    if (timeout.count() <= 0)
      throw std::runtime_error(
          "Rank 0 timed out in monitoredBarrier after 0 ms; fix: give it a timeout");
    if (await(keyOf("came", rank), deadline)) continue;
    missing.push_back(rank);
    if (!waitAllRanks) break;
  }
  return missing;
}

// Those after the first missing one get the answer when they come.
void MonitoredBarrier::answer(const std::vector<int>& missing, const std::string& text) {
  for (int rank = 1; rank < who_.size; ++rank) {
    if (contains(missing, rank)) continue;
    who_.store->set(keyOf("answer", rank), std::vector<std::uint8_t>(text.begin(), text.end()));
    ++passed_[static_cast<std::size_t>(rank)];
  }
}

void MonitoredBarrier::follow(Milliseconds timeout) {
  const auto deadline = Clock::now() + std::max(timeout, Milliseconds(1));
  const std::string came = keyOf("came", who_.rank);
  const std::string answered = keyOf("answer", who_.rank);
  who_.store->set(came, std::vector<std::uint8_t>{1});
  const bool heard = await(answered, deadline);
  who_.store->deleteKey(came);
  const std::string reached = "Rank " + std::to_string(who_.rank) +
                              " successfully reached monitoredBarrier, but received errors while "
                              "waiting for send/recv from rank 0";
  if (!heard)
    throw std::runtime_error(reached + ": it has not answered within " +
                             std::to_string(timeout.count()) +
                             " ms; fix: see what keeps rank 0, or whom it waits for");
  const std::vector<std::uint8_t> text = who_.store->get(answered);
  who_.store->deleteKey(answered);
  ++passed_[static_cast<std::size_t>(who_.rank)];
  if (!text.empty())
    throw std::runtime_error(reached + ": " + std::string(text.begin(), text.end()) +
                             "; fix: see what keeps them");
}

// By short questions: a long one keeps the store from all other threads.
bool MonitoredBarrier::await(const std::string& key, Clock::time_point deadline) {
  for (;;) {
    if (who_.store->check({key})) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(Milliseconds(1));
  }
}

}  // namespace weft::pytorch
