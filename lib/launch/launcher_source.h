// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "launch/launcher.h"

namespace weft::launch {

// One way to be launched. Each has a file of its own; launcher.cpp lists them in order of
// precedence.
struct LauncherSource {
  const char* name;
  bool (*present)();                       // are its variables there?
  Status (*identify)(Identity* identity);  // rank, size, localRank, localSize
  Status (*meet)(const Identity& identity, Deadline deadline, bootstrap::UniqueId* id);
};

extern const LauncherSource kWeftSource;
extern const LauncherSource kTorchrunSource;
extern const LauncherSource kPmixSource;
extern const LauncherSource kPmiSource;
extern const LauncherSource kSlurmSource;
extern const LauncherSource kAwsBatchSource;

// ---- what they share ----

// The variable as a number from min to max; InvalidArgument if it is missing or anything else.
Status environmentNumber(const char* name, int min, int max, int* value);
// The same, but the value stays as it is if the variable is not set.
Status optionalNumber(const char* name, int min, int max, int* value);
bool allSet(std::initializer_list<const char*> names);

// The names of a launcher's variables.
struct IdentityVariables {
  const char *rank, *size;
  const char *localRank = "", *localSize = "";  // those of this host; need not be set
};
// The identity that they say, each number checked against the size.
Status readIdentity(const IdentityVariables& names, Identity* identity);

// A port below the usual ephemeral range, 16384 to 32767, that all ranks of a job derive from its
// name.
std::uint16_t portForJob(const std::string& jobName);
// The id for ranks that know no more than an address and their job's name, which has to be the same
// on all of them, also where they write the address in different ways.
Status idForJob(const Identity& identity, const std::string& hostPort, const std::string& jobName,
                Deadline deadline, bootstrap::UniqueId* id);

// An id as text for key-value stores, without blanks, and back.
std::string idToHex(const bootstrap::UniqueId& id);
Status idFromHex(const std::string& hex, bootstrap::UniqueId* id);

}  // namespace weft::launch
