// SPDX-License-Identifier: Apache-2.0
// Which transport joins which ranks, why not the others, and which libraries are missing for it.
#pragma once

#include <span>
#include <vector>

#include "tools/checks/host.h"
#include "tools/checks/libraries.h"
#include "tools/checks/nics.h"
#include "tools/doctor/launcher.h"
#include "tools/doctor/probe.h"

namespace weft::doctor {

struct Devices {
  bool roce = false, efa = false;
};
Devices devicesOf(const std::vector<checks::Nic>& nics);

// shm, verbs and ofi, and what WEFT_TRANSPORT asks for (an empty name) if it is set.
std::vector<Probe> probeTransports(bool wanted);

// Pure. Between hosts weft takes verbs where it works and ofi else (WEFT_TRANSPORT in
// docs/knobs.md).
void checkTransports(std::span<const Probe> probes, const Devices& devices,
                     checks::HostReport& report);

// Pure: what is missing of what the devices or the job need.
void checkLibraries(std::span<const checks::Library> libraries, const Devices& devices,
                    const Job& job, checks::HostReport& report);

}  // namespace weft::doctor
