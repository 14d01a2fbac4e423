// SPDX-License-Identifier: Apache-2.0
#include "launch/hostlist.h"

#include "fuzz.h"

namespace weft::fuzz {

void tryInput(Input input) {
  std::vector<std::string> hosts;
  if (!isGood(launch::expandHostlist(textOf(input), &hosts)))
    return require(hosts.empty(), "a malformed list names nobody");
  require(!hosts.empty() && hosts.size() <= launch::kMaxHosts, "the number of hosts is bounded");
  std::string plain;
  for (const std::string& host : hosts) {
    require(!host.empty() && host.size() <= launch::kMaxHostBytes, "a host has a name");
    plain += (plain.empty() ? "" : ",") + host;
  }
  if (hosts.size() > 100) return;  // which takes its time
  std::vector<std::string> again;
  require(launch::expandHostlist(plain, &again).ok() && again == hosts, "plain names stay");
}

}  // namespace weft::fuzz
