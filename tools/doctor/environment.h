// SPDX-License-Identifier: Apache-2.0
// The environment: weft's own variables, and those of other libraries.
#pragma once

#include <map>
#include <string>

#include "tools/checks/host.h"

namespace weft::doctor {

using Variables = std::map<std::string, std::string>;
Variables variablesOfProcess();

// WEFT_ variables that are unknown, that do not parse, or that name what is not here. Asks the
// library, so it reads the environment of this process.
void checkKnobs(checks::HostReport& report);

// Variables that work against each other, and those of other libraries that were probably meant for
// weft, too. Pure. Adds all that are set as facts, but no secrets.
void checkVariables(const Variables& variables, checks::HostReport& report);

}  // namespace weft::doctor
