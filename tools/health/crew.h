// SPDX-License-Identifier: Apache-2.0
// The ranks under test, and what they tell each other besides the measurements. What they say
// travels over the very links that are on trial, so every text has a checksum.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace weft::health {

struct Member {
  std::string host;
  int hostIndex = 0;   // hosts are numbered in the order of their first rank
  int localIndex = 0;  // among the ranks of its host
  int pid = 0;
};

// "rank 3 (host node1, pid 71)"
std::string nameOf(const std::vector<Member>& members, int rank);

class Crew {
 public:
  // Collective. Every call below has `stepMs` milliseconds until a rank that does not come is an
  // error, which the library words. All calls throw weft::Error.
  Crew(Communicator comm, int stepMs);

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::vector<Member>& members() const { return members_; }
  const Member& me() const { return members_[static_cast<std::size_t>(rank_)]; }
  int hosts() const;
  Communicator& comm() { return comm_; }
  const weftOpts_t& options() const { return options_; }

  // While the others may be busy alone for so long, a wait for them takes as much more.
  void allow(int extraMs) { options_.timeoutMs = stepMs_ + extraMs; }

  void barrier() { comm_.barrier({.options = &options_}); }
  // Texts of all ranks, in rank order.
  std::vector<std::string> gather(const std::string& mine);
  // What rank 0 says.
  std::string hear(const std::string& fromRankZero);
  // Numbers of all ranks, in rank order; each rank gives as many.
  std::vector<std::vector<double>> gather(const std::vector<double>& mine);

  void send(int peer, const void* data, std::size_t bytes);
  void receive(int peer, void* data, std::size_t bytes);

  // Links (from, to) over which a text of these came that was not what was sent. Collective.
  std::set<std::pair<int, int>> garbled();

 private:
  std::vector<std::string> gatherOnce(const std::string& mine, bool* good);
  void introduce();

  Communicator comm_;
  int stepMs_;
  weftOpts_t options_ = defaultOptions();
  int rank_ = 0;
  int size_ = 0;
  std::vector<Member> members_;
  std::set<std::pair<int, int>> garbled_;
};

}  // namespace weft::health
