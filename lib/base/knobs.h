// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace weft::inline base {

// The WEFT_* environment variables, all of them: at most 32. The table in knobs.cpp is the only
// place that knows a name, a type, a default and a sentence of documentation; the manual is printed
// from it. A variable that is set but empty counts as not set.
enum class Knob {
  Debug,
  DebugFile,
  TimeoutMs,
  InitTimeoutMs,
  Transport,
  Reproducible,
  Algo,
  SegmentKb,
  Lanes,
  Threads,
  OneShotMax,
  DirectMin,
  Cma,
  TuneFile,
  SpinUs,
  NetDevices,
  OfiProvider,
  OfiMode,
  MeshFile,
  RoceGid,
  TopoFile,
  SocketIfname,
  CommId,
  Secret,
  SecretFile,
  Auth,
  Rank,
  Size,
  Root,
  LocalRank,
  LocalSize,
  Library,
};

enum class KnobType {
  Integer,   // decimal, within [min, max]
  ByteSize,  // as Integer, with an optional suffix K, M or G (powers of 1024)
  Flag,      // 0 or 1 (also on/off, yes/no, true/false)
  Choice,    // one of `choices`, case ignored
  Text,      // anything
};

// What readInteger gives for an Integer or ByteSize knob whose value is "auto".
inline constexpr std::int64_t kKnobAuto = -1;

struct KnobInfo {
  Knob knob;
  const char* name;  // WEFT_...
  KnobType type;
  const char* fallback;      // as a user would write it; "auto" is a legal value then
  const char* doc;           // one sentence
  const char* choices = "";  // of a Choice, separated by '|'
  std::int64_t min = 0;      // of Integer and ByteSize
  std::int64_t max = INT32_MAX;
};

std::span<const KnobInfo> knobTable();
const KnobInfo& knobInfo(Knob knob);

// The value from the environment, else the default. A value that does not parse is InvalidArgument
// with a text that names the variable, what it holds and what it may hold (a secret's value is not
// shown). Each reader is for its own types: Integer and ByteSize, Flag, Choice and Text (a Choice
// comes back as spelled in the table). They read the environment on each call: call them at set-up,
// not in a loop.
Status readInteger(Knob knob, std::int64_t* value);
Status readFlag(Knob knob, bool* value);
Status readText(Knob knob, std::string* value);
bool isSet(Knob knob);

// One sentence for each variable of the environment that begins with WEFT_ and is not in the table,
// with the nearest name if one is near.
std::vector<std::string> unknownKnobs();

bool equalIgnoringCase(std::string_view a, std::string_view b);

}  // namespace weft::inline base
