// SPDX-License-Identifier: Apache-2.0
#include "fleet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <stdexcept>

#include "process.h"

namespace weft::peers {
namespace {

constexpr int kStartSeconds = 30;
constexpr int kJobSeconds = 120;
constexpr int kQuitSeconds = 5;
constexpr int kWatchMs = 100;  // how often a wait looks for dead processes

using Words = std::vector<std::string>;

void append(Words& to, const Words& more) { to.insert(to.end(), more.begin(), more.end()); }

// On hosts: from the first one, over their own network alone.
Words openMpi(int ranks, const Words& options, const Hosts& hosts) {
  Words line;
  if (hosts.given()) line = {hosts.shell, hosts.addresses[0]};
  append(line, {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                "-n", std::to_string(ranks)});
  append(line, options);
  if (!hosts.given()) return line;
  const std::string slots =
      std::to_string(static_cast<std::size_t>(ranks) / hosts.addresses.size());
  append(line,
         {"--host", fmt::format("{}", fmt::join(hosts.addresses, ":" + slots + ",")) + ":" + slots,
          "--mca", "plm_rsh_agent", hosts.shell, "--mca", "btl_tcp_if_include", "eth0", "--mca",
          "oob_tcp_if_include", "eth0", "--mca", "btl", "self,vader,tcp"});
  return line;
}

// Environment of weft's own ranks: who am I, where do we meet, and the secret that admits.
std::vector<std::string> weftEnvironment(const std::string& root, const std::string& secret,
                                         int rank, int ranks) {
  return {fmt::format("WEFT_RANK={}", rank), fmt::format("WEFT_SIZE={}", ranks),
          "WEFT_ROOT=" + root, "WEFT_SECRET=" + secret};
}

}  // namespace

std::vector<Contender> contenders(int ranks, const std::filesystem::path& folder,
                                  const Hosts& hosts) {
  const std::vector<std::string> sm128k = {"--mca", "coll_sm_priority",      "100",
                                           "--mca", "coll_sm_fragment_size", "131072"};
  // It wants to be asked where there is no card.
  const std::vector<std::string> ucx = {"--mca",
                                        "pml",
                                        "ucx",
                                        "--mca",
                                        "opal_common_ucx_tls",
                                        "any",
                                        "--mca",
                                        "opal_common_ucx_devices",
                                        "any"};
  const auto meeting = [&](const char* name) { return (folder / name).string(); };
  return {
      {"weft:any", "peer_weft", {}, {}},
      {"weft:own", "peer_weft", {}, {"own"}},
      {"weft:threads", "peer_weft", {}, {"threads"}, true},
      {"openmpi:default", "peer_openmpi", openMpi(ranks, {}, hosts), {}},
      {"openmpi:sm128k", "peer_openmpi", openMpi(ranks, sm128k, hosts), {}},
      {"openmpi:ucx", "peer_openmpi", openMpi(ranks, ucx, hosts), {}},
      {"mpich:default", "peer_mpich", {"mpirun.mpich", "-n", std::to_string(ranks)}, {}},
      {"gloo:ring", "peer_gloo", {}, {meeting("ring"), "ring"}},
      {"gloo:bcube", "peer_gloo", {}, {meeting("bcube"), "bcube"}},
      {"torch:gloo", "peer_torch", {}, {meeting("torch")}},
      {"floor:plain", "peer_floor", {}, {"plain"}, true},
      {"floor:nontemporal", "peer_floor", {}, {"nontemporal"}, true},
      {"floor:pull", "peer_floor", {}, {"pull"}, true},
  };
}

Contender weftVariant(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto refuse = [&] {
    throw std::invalid_argument(fmt::format(
        "'{}' is not a variant; write label:NAME=value,NAME=value,own,registered,threads", text));
  };
  if (colon == 0 || colon == std::string::npos || colon + 1 == text.size()) refuse();
  Contender variant{"weft:" + text.substr(0, colon), "peer_weft", {}, {}};
  std::istringstream words(text.substr(colon + 1));
  for (std::string word; std::getline(words, word, ',');) {
    const bool isKnob = word.find('=') != std::string::npos;
    if (!isKnob && word != "own" && word != "registered" && word != "threads") refuse();
    (isKnob ? variant.environment : variant.arguments).push_back(word);
    variant.threads = variant.threads || word == "threads";
  }
  return variant;
}

bool Fleet::start(const Contender& contender) {
  if (!std::filesystem::exists(besideMe(contender.program))) {
    fmt::print(stderr, "{}: not built; ./dev peers installs what it needs\n", contender.name);
    return false;
  }
  if (nextGroup_ == kMaxGroups) {
    fmt::print(stderr, "{}: more than {} contenders\n", contender.name, kMaxGroups);
    return false;
  }
  Member member;
  member.name = contender.name;
  member.group = nextGroup_++;
  launch(contender, member);
  if (!await(member, kStartSeconds)) {
    fmt::print(stderr, "{}: did not start\n", contender.name);
    end(member);
    return false;
  }
  members_.push_back(std::move(member));
  return true;
}

void Fleet::launch(const Contender& contender, Member& member) {
  std::vector<std::string> line = contender.launcher;
  line.push_back(besideMe(contender.program));
  line.push_back(owner_.path());
  line.push_back(std::to_string(member.group));
  line.insert(line.end(), contender.arguments.begin(), contender.arguments.end());

  std::vector<std::string> knobs = contender.environment;
  if (const int threads = owner_.page().coresPerRank; threads > 1)
    knobs.insert(knobs.begin(), fmt::format("WEFT_THREADS={}", threads));
  if (contender.threads || !contender.launcher.empty()) {
    member.processes = {spawn(line, knobs)};
    return;
  }
  const std::string root =
      fmt::format("{}:{}", hosts_.given() ? hosts_.addresses[0] : "127.0.0.1", freePort());
  const std::string secret = randomSecret();
  const int ranks = owner_.page().ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> environment = weftEnvironment(root, secret, rank, ranks);
    append(environment, knobs);
    Words whole;
    if (hosts_.given()) {
      whole = {hosts_.shell, hosts_.of(rank, ranks)};
      environment.push_back("PEER_ADDRESS=" + hosts_.of(rank, ranks));
    }
    append(whole, line);
    member.processes.push_back(spawn(whole, environment));
  }
}

std::optional<Timing> Fleet::run(std::size_t number, const Job& job) {
  Member& member = members_[number];
  if (!member.alive) return std::nullopt;
  Group& group = groupOf(member);
  group.finished.store(0);
  group.job = job;
  group.command.fetch_add(1);
  wakeAll(group.command);
  std::string problem;
  if (!await(member, kJobSeconds)) {
    problem = "died or did not finish";
  } else {
    problem = wrongResult(member);
  }
  if (problem.empty()) return group.timing;
  fmt::print(stderr, "{}: {} of {} bytes: {}; out of this run\n", member.name,
             collectiveName(job.collective), job.bytes, problem);
  end(member);
  return std::nullopt;
}

// Sleeps until all ranks have finished; false if a process died or time is up.
bool Fleet::await(Member& member, int seconds) {
  const auto wanted = static_cast<std::uint32_t>(owner_.page().ranks);
  const std::int64_t deadline = nowNs() + seconds * 1000000000LL;
  std::atomic<std::uint32_t>& finished = groupOf(member).finished;
  while (true) {
    const std::uint32_t now = finished.load();
    if (now == wanted) return true;
    for (const pid_t process : member.processes) {
      if (hasExited(process)) return false;
    }
    if (nowNs() > deadline) return false;
    sleepWhile(finished, now, kWatchMs);
  }
}

std::string Fleet::wrongResult(const Member& member) {
  for (const RankState& state : groupOf(member).states) {
    if (state.hasError.load()) return state.error.data();
  }
  return {};
}

// Launchers do not always take their ranks along, so the ranks are ended by their own ids.
void Fleet::end(Member& member) {
  member.alive = false;
  for (const RankState& state : groupOf(member).states) {
    if (state.pid > 0) kill(state.pid, SIGKILL);
  }
  for (const pid_t process : member.processes) {
    kill(process, SIGTERM);
    if (!exitsWithin(process, kQuitSeconds)) kill(process, SIGKILL);
    exitsWithin(process, kQuitSeconds);
  }
}

void Fleet::quit(Member& member) {
  if (!member.alive) return;
  Group& group = groupOf(member);
  group.job.mode = Mode::Quit;
  group.command.fetch_add(1);
  wakeAll(group.command);
  for (const pid_t process : member.processes) {
    if (!exitsWithin(process, kQuitSeconds)) return end(member);
  }
}

Fleet::~Fleet() {
  for (Member& member : members_) quit(member);
}

}  // namespace weft::peers
