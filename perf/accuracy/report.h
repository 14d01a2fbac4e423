// SPDX-License-Identifier: Apache-2.0
// What a run leaves behind: tables for people, JSON for programs and for --replay.
#pragma once

#include <string>
#include <vector>

#include "perf/accuracy/verdict.h"

namespace weft::accuracy {

// What a report says of its run.
struct Head {
  std::string command, machine, kind, date;
};

// Markdown, also on a terminal: by number of ranks and size, by mode and buffers, by collective,
// and the `worst` costliest choices.
std::string tablesOf(const Head& head, const std::vector<World>& worlds,
                     const std::vector<Verdict>& verdicts, std::size_t worst);

// All measurements, and what became of them.
std::string jsonOf(const Head& head, const std::vector<World>& worlds,
                   const std::vector<Verdict>& verdicts);

// The worlds of such a file. InvalidArgument where it is none.
Status readReport(const std::string& file, Head* head, std::vector<World>* worlds);

}  // namespace weft::accuracy
