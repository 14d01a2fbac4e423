// SPDX-License-Identifier: Apache-2.0
// Who starts the ranks: a launcher, or weft-test itself as local processes.
#pragma once

#include <memory>
#include <string>

#include "perf/weft-perf/team.h"
#include "tools/test/options.h"

namespace weft::test {

// Why these options need a launcher that is not there, with the command that has one; or nothing.
std::string wantedLauncher(const TestOptions& options);

// Joins the other ranks in the groups of the options. Throws weft::Error, also where the launcher
// has started more or fewer ranks than -r says.
std::unique_ptr<perf::Team> joinTeam(const TestOptions& options);

// That the ranks are on as many hosts as the options say. Collective; throws weft::Error.
void checkHosts(const TestOptions& options, perf::Team& team);

}  // namespace weft::test
