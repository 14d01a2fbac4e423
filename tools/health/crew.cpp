// SPDX-License-Identifier: Apache-2.0
#include "tools/health/crew.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>

namespace weft::health {
namespace {

constexpr int kTries = 3;  // of a text that arrives garbled

// FNV-1a.
std::uint64_t hashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

std::string hostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::string nameOf(const std::vector<Member>& members, int rank) {
  const Member& member = members[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} (host {}, pid {})", rank, member.host, member.pid);
}

Crew::Crew(Communicator comm, int stepMs)
    : comm_(std::move(comm)), stepMs_(stepMs), rank_(comm_.rank()), size_(comm_.size()) {
  allow(0);
  introduce();
}

void Crew::introduce() {
  std::vector<std::string> hosts;
  for (const std::string& text : gather(fmt::format("{} {}", ::getpid(), hostName()))) {
    Member member;
    member.pid = std::atoi(text.c_str());
    member.host = text.substr(std::min(text.size(), text.find(' ') + 1));
    const auto known = std::ranges::find(hosts, member.host);
    member.hostIndex = static_cast<int>(known - hosts.begin());
    if (known == hosts.end()) hosts.push_back(member.host);
    member.localIndex = static_cast<int>(std::ranges::count(members_, member.host, &Member::host));
    members_.push_back(member);
  }
}

int Crew::hosts() const { return 1 + std::ranges::max(members_, {}, &Member::hostIndex).hostIndex; }

std::vector<std::string> Crew::gather(const std::string& mine) {
  std::vector<std::string> all;
  for (int i = 0; i < kTries; ++i) {
    bool good = true;
    all = gatherOnce(mine, &good);
    std::uint32_t bad = good ? 0 : 1;
    comm_.allReduce(&bad, 1, weftMax, {.options = &options_});
    if (bad == 0) return all;
  }
  throw Error(weftRemoteError, fmt::format("what the ranks tell each other arrives garbled, {} "
                                           "times in a row",
                                           kTries));
}

std::vector<std::string> Crew::gatherOnce(const std::string& mine, bool* good) {
  struct Head {
    std::uint64_t bytes, hash;
  };
  const auto ranks = static_cast<std::size_t>(size_);
  const Head head{mine.size(), hashOf(mine)};
  std::vector<std::uint64_t> heads(2 * ranks);
  comm_.allGather(&head.bytes, heads.data(), 2, {.options = &options_});
  std::vector<std::size_t> counts(ranks);
  for (std::size_t i = 0; i < ranks; ++i) counts[i] = heads[2 * i];
  std::string text(std::reduce(counts.begin(), counts.end()), '\0');
  comm_.allGatherV(mine.data(), text.data(), counts.data(), nullptr, {.options = &options_});

  std::vector<std::string> all;
  for (std::size_t i = 0, at = 0; i < ranks; at += counts[i++]) {
    all.push_back(text.substr(at, counts[i]));
    if (hashOf(all.back()) == heads[2 * i + 1]) continue;
    garbled_.emplace(static_cast<int>(i), rank_);
    *good = false;
  }
  return all;
}

std::string Crew::hear(const std::string& fromRankZero) {
  return gather(rank_ == 0 ? fromRankZero : std::string()).front();
}

std::vector<std::vector<double>> Crew::gather(const std::vector<double>& mine) {
  std::string bytes(mine.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), mine.data(), bytes.size());
  std::vector<std::vector<double>> all;
  for (const std::string& text : gather(bytes)) {
    std::memcpy(all.emplace_back(text.size() / sizeof(double)).data(), text.data(), text.size());
  }
  return all;
}

std::set<std::pair<int, int>> Crew::garbled() {
  std::vector<double> mine(static_cast<std::size_t>(size_));
  for (const auto& [from, to] : garbled_) mine[static_cast<std::size_t>(from)] = 1;
  std::set<std::pair<int, int>> links;
  const auto all = gather(mine);
  for (int to = 0; to < size_; ++to)
    for (int from = 0; from < size_; ++from)
      if (all[static_cast<std::size_t>(to)][static_cast<std::size_t>(from)] > 0)
        links.emplace(from, to);
  return links;
}

void Crew::send(int peer, const void* data, std::size_t bytes) {
  comm_.send(static_cast<const std::uint8_t*>(data), bytes, peer, {.options = &options_});
}

void Crew::receive(int peer, void* data, std::size_t bytes) {
  comm_.recv(static_cast<std::uint8_t*>(data), bytes, peer, {.options = &options_});
}

}  // namespace weft::health
