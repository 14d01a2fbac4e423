// SPDX-License-Identifier: Apache-2.0
// All libraries under test, kept alive side by side: starts each configuration's ranks with the
// library's own launcher, hands out jobs one at a time, and ends everything.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control.h"
#include "placement.h"

namespace weft::peers {

// One library in one configuration.
struct Contender {
  std::string name;                    // "openmpi:sm128k"
  std::string program;                 // "peer_openmpi", beside weft-peers
  std::vector<std::string> launcher;   // "mpirun.openmpi ..."; empty: weft-peers starts the ranks
  std::vector<std::string> arguments;  // after page and group
  bool threads = false;                // one process serves all ranks
  std::vector<std::string> environment = {};  // "NAME=value", added for all ranks
};

// Where ranks run if not here: equal shares of them on each of these addresses, in order, started
// by `shell ADDRESS COMMAND...`, an rsh.
struct Hosts {
  std::vector<std::string> addresses;
  std::string shell;

  bool given() const { return !addresses.empty(); }
  const std::string& of(int rank, int ranks) const {
    return addresses[static_cast<std::size_t>(rank) * addresses.size() /
                     static_cast<std::size_t>(ranks)];
  }
};

// What could run here with `ranks` ranks, in the order of the table; `folder` is where Gloo's
// ranks meet.
std::vector<Contender> contenders(int ranks, const std::filesystem::path& folder,
                                  const Hosts& hosts = {});

// weft once more, under the name "weft:<label>" and with knobs of its own, to compare settings in
// one run: "label:WEFT_SEGMENT_KB=64,WEFT_CMA=off". The words "own", "registered" and "threads" among
// the knobs choose buffers of weftMemAlloc, malloc'ed ones that are registered, and ranks as threads. Throws std::invalid_argument.
Contender weftVariant(const std::string& text);

class Fleet {
 public:
  // Each rank has `threads` cores; weft and the floor use as many threads.
  Fleet(int ranks, int threads, Hosts hosts) : owner_(ranks, threads), hosts_(std::move(hosts)) {}
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Starts a contender and waits until its ranks have joined. On failure says why on stderr, ends
  // its processes and returns false.
  bool start(const Contender& contender);

  // Runs the job on a started contender (numbered in the order of successful starts). No value: it
  // failed or gave a wrong result (said on stderr), and is out of the run.
  std::optional<Timing> run(std::size_t number, const Job& job);

  // Of the first two cores, while all ranks are asleep (placement.h).
  double roundTripNs() { return peers::roundTripNs(owner_.page()); }

  const std::string& name(std::size_t number) const { return members_[number].name; }
  std::size_t size() const { return members_.size(); }

 private:
  struct Member {
    std::string name;
    std::size_t group = 0;
    std::vector<pid_t> processes;  // that we started: ranks or a launcher
    bool alive = true;
  };

  Group& groupOf(const Member& member) { return owner_.page().groups[member.group]; }
  void launch(const Contender& contender, Member& member);
  bool await(Member& member, int seconds);
  std::string wrongResult(const Member& member);
  void end(Member& member);
  void quit(Member& member);

  PageOwner owner_;
  Hosts hosts_;
  std::vector<Member> members_;
  std::size_t nextGroup_ = 0;
};

}  // namespace weft::peers
