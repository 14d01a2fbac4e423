// SPDX-License-Identifier: Apache-2.0
#include "tools/test/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "perf/common/launched.h"
#include "perf/weft-perf/report.h"

namespace weft::test {
namespace {

// One sentence is enough: rank 0's. It is out before any rank ends, because a launcher that sees
// one end ends the others. All ranks end so: whoever is through the barrier first may abort it for
// those who are not.
[[noreturn]] void refuse(Communicator& world, const std::string& sentence) {
  if (world.rank() == 0) fmt::print(stderr, "weft-test: {}\n", sentence);
  try {
    world.barrier();
  } catch (const Error&) {
  }
  throw Error(weftInvalidArgument, {});
}

bool isThisHost(const std::string& host) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return host == "localhost" || host.starts_with("127.") || host == "::1" || host == name;
}

// "--host a:2,b:2 ", for mpirun.
std::string hostList(const TestOptions& options) {
  if (options.hosts.empty()) return {};
  const std::size_t hosts = options.hosts.size();
  const std::size_t each = (static_cast<std::size_t>(options.ranks) + hosts - 1) / hosts;
  std::string list;
  for (const std::string& host : options.hosts)
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", host, each);
  return "--host " + list + ' ';
}

int wantedNodes(const TestOptions& options) {
  if (options.nodes > 0) return options.nodes;
  const std::set<std::string> different(options.hosts.begin(), options.hosts.end());
  return static_cast<int>(different.size());
}

}  // namespace

std::string wantedLauncher(const TestOptions& options) {
  const bool launched = tools::isStartedByLauncher();
  if (options.slurm && std::getenv("SLURM_STEP_NUM_TASKS") == nullptr) {
    return fmt::format(
        "-S: srun has not started this; start the ranks by it: srun {}-n {} weft-test ...",
        options.nodes > 0 ? fmt::format("-N {} ", options.nodes) : "", options.ranks);
  }
  const bool elsewhere = !std::ranges::all_of(options.hosts, isThisHost);
  if (launched || (options.nodes <= 1 && !elsewhere)) return {};
  return fmt::format(
      "ranks on other hosts need a launcher: mpirun -n {} {}weft-test "
      "..., or srun -N {} -n {} weft-test ...",
      options.ranks, hostList(options), std::max(wantedNodes(options), 1), options.ranks);
}

std::unique_ptr<perf::Team> joinTeam(const TestOptions& options) {
  Communicator world = Communicator::fromEnvironment();
  if (world.size() != options.ranks) {
    refuse(world,
           fmt::format("-r {}: the launcher has started {} ranks; start {} (mpirun -n {}, srun -n "
                       "{}), or say -r {}",
                       options.ranks, world.size(), options.ranks, options.ranks, options.ranks,
                       world.size()));
  }
  if (options.groups.empty()) return std::make_unique<perf::Team>(std::move(world));
  const Place place = placeOf(world.rank(), options.groups);
  return std::make_unique<perf::Team>(std::move(world), place.color, place.key);
}

void checkHosts(const TestOptions& options, perf::Team& team) {
  const int wanted = wantedNodes(options);
  if (wanted == 0) return;
  std::set<std::string> hosts;
  for (const perf::RankInfo& rank : team.exchange(perf::rankInfo(team))) hosts.insert(rank.host);
  if (static_cast<int>(hosts.size()) == wanted) return;
  refuse(team.world(),
         fmt::format("{} hosts were asked for, but the launcher has put the ranks on {}: "
                     "{}; tell the launcher, or leave -N and --hosts out",
                     wanted, hosts.size(), fmt::join(hosts, ", ")));
}

}  // namespace weft::test
