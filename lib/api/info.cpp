// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <string>

#include "api/check.h"
#include "api/entry.h"
#include "plan/choose.h"

namespace weft {
namespace {

constexpr const char* kResultNames[] = {
    "success",          "unhandled device error", "system error", "internal error",
    "invalid argument", "invalid usage",          "remote error", "in progress",
    "timeout",          "mismatched calls",       "aborted",      "out of memory",
};
static_assert(std::size(kResultNames) == weftNumResults);

constexpr int kCollectives = static_cast<int>(Collective::Barrier) + 1;

bool findCollective(std::string_view name, Collective* out) {
  for (int c = 0; c < kCollectives; ++c) {
    *out = static_cast<Collective>(c);
    if (collectiveName(*out) == name || collectiveName(*out, true) == name) return true;
  }
  return false;
}

Status explain(weftComm_t handle, const char* collective, size_t count, weftDataType_t type,
               char* out, size_t length) {
  Communicator* comm = nullptr;
  WEFT_TRY(findComm(handle, &comm));
  WEFT_TRY(checkPointer(collective, "collective"));
  WEFT_TRY(checkPointer(out, "text"));
  WEFT_TRY(checkType(type));
  Call call;
  if (!findCollective(collective, &call.collective))
    return invalid(text("unknown collective '", collective,
                        "'; fix: a name of nccl-tests, such as all_reduce"));
  WEFT_TRY(checkCount(count, comm->ranks(), type));
  call.count = count;
  call.type = static_cast<DType>(type);
  std::string line;
  WEFT_TRY(comm->explain(call, &line));
  std::snprintf(out, length, "%s", line.c_str());
  return {};
}

// Made once; the strings live as long as the library.
const char* namesOf(const char* collective) {
  thread_local std::string names;
  names.clear();
  Collective one;
  if (collective != nullptr)
    return findCollective(collective, &one) ? (names = algorithmNames(one)).c_str() : "";
  for (int c = 0; c < kCollectives; ++c) {
    const Collective each = static_cast<Collective>(c);
    names += text(c == 0 ? "" : ";", collectiveName(each), "=", algorithmNames(each));
  }
  return names.c_str();
}

}  // namespace
}  // namespace weft

weftResult_t weftGetVersion(int* version) {
  return weft::entry([&]() -> weft::Status {
    WEFT_TRY(weft::checkPointer(version, "version"));
    *version = WEFT_VERSION_CODE;
    return {};
  });
}

const char* weftGetErrorString(weftResult_t result) {
  const unsigned index = static_cast<unsigned>(result);
  return index < weftNumResults ? weft::kResultNames[index] : "unknown result code";
}

const char* weftGetLastError(weftComm_t comm) {
  if (const weft::Communicator* found = weft::commHandles().find(comm)) {
    if (const weft::Status verdict = found->verdict(); !verdict.ok()) weft::report(verdict);
  }
  return weft::lastErrorOfThread();
}

weftResult_t weftExplain(weftComm_t comm, const char* collective, size_t count, weftDataType_t type,
                         char* text, size_t length) {
  return weft::entry([&] { return weft::explain(comm, collective, count, type, text, length); });
}

const char* weftAlgorithms(const char* collective) { return weft::namesOf(collective); }
