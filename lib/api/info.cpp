// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "api/check.h"
#include "api/entry.h"
#include "plan/choose.h"

namespace weft {
namespace {

// clang-format off
constexpr const char* kResultNames[] = {
    "success",          "unhandled device error", "system error", "internal error",
    "invalid argument", "invalid usage",          "remote error", "in progress",
    "timeout",          "mismatched calls",       "aborted",      "out of memory",
    "authentication failed",
};
// clang-format on
static_assert(std::size(kResultNames) == weftNumResults);

constexpr int kCollectives = static_cast<int>(Collective::Barrier) + 1;

bool findCollective(std::string_view name, Collective* out) {
  for (int c = 0; c < kCollectives; ++c) {
    *out = static_cast<Collective>(c);
    if (collectiveName(*out) == name || collectiveName(*out, true) == name) return true;
  }
  return false;
}

Status callOf(const Communicator& comm, const char* collective, size_t count, weftDataType_t type,
              Call* call) {
  WEFT_TRY(checkPointer(collective, "collective"));
  WEFT_TRY(checkType(type));
  if (!findCollective(collective, &call->collective))
    return invalid(text("unknown collective '", collective,
                        "'; fix: a name of nccl-tests, such as all_reduce"));
  WEFT_TRY(checkCount(count, comm.ranks(), type));
  call->count = count;
  call->type = static_cast<DType>(type);
  return {};
}

Status explain(weftComm_t handle, const char* collective, size_t count, weftDataType_t type,
               char* out, size_t length) {
  Communicator* comm = nullptr;
  WEFT_TRY(findComm(handle, &comm));
  WEFT_TRY(checkPointer(out, "text"));
  Call call;
  WEFT_TRY(callOf(*comm, collective, count, type, &call));
  std::string line;
  WEFT_TRY(comm->explain(call, &line));
  std::snprintf(out, length, "%s", line.c_str());
  return {};
}

// With the options that the choice depends on.
Status explainChoice(Communicator& comm, Call call, weftRedOp_t op, const weftOpts_t* opts,
                     std::string* lines) {
  Options options;
  WEFT_TRY(readOptions(comm, opts, &options));
  call.algorithm = options.algorithm;
  call.reproducible = options.reproducible;
  std::array<std::byte, 8> scalar{};
  if (isReduction(call.collective))
    WEFT_TRY(checkOp(comm, op, static_cast<weftDataType_t>(call.type), &call.op, &scalar));
  return comm.explainChoice(call, lines);
}

Status explainAll(weftComm_t handle, const char* collective, size_t count, weftDataType_t type,
                  weftRedOp_t op, const weftOpts_t* opts, char* out, size_t length) {
  Communicator* comm = nullptr;
  WEFT_TRY(findComm(handle, &comm));
  WEFT_TRY(checkPointer(out, "text"));
  std::string lines = comm->explainMachine();
  if (collective != nullptr) {
    Call call;
    WEFT_TRY(callOf(*comm, collective, count, type, &call));
    WEFT_TRY(explainChoice(*comm, call, op, opts, &lines));
  }
  std::snprintf(out, length, "%s", lines.c_str());
  return {};
}

Status edges(weftComm_t handle, char* out, size_t length) {
  Communicator* comm = nullptr;
  WEFT_TRY(findComm(handle, &comm));
  WEFT_TRY(checkPointer(out, "text"));
  std::snprintf(out, length, "%s", comm->explainEdges().c_str());
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
  const weft::Communicator* found = weft::commHandles().find(comm);
  if (found != nullptr && !weft::hasJustFailedOn(comm)) {
    weft::beginCall();
    if (const weft::Status verdict = found->verdict(); !verdict.ok()) weft::report(verdict);
  }
  return weft::lastErrorOfThread();
}

weftResult_t weftCommEdges(weftComm_t comm, char* text, size_t length) {
  return weft::entry([&] { return weft::edges(comm, text, length); });
}

weftResult_t weftExplain(weftComm_t comm, const char* collective, size_t count, weftDataType_t type,
                         char* text, size_t length) {
  return weft::entry([&] { return weft::explain(comm, collective, count, type, text, length); });
}

weftResult_t weftCommExplain(weftComm_t comm, const char* collective, size_t count,
                             weftDataType_t type, weftRedOp_t op, const weftOpts_t* opts,
                             char* text, size_t length) {
  return weft::entry(
      [&] { return weft::explainAll(comm, collective, count, type, op, opts, text, length); });
}

const char* weftAlgorithms(const char* collective) { return weft::namesOf(collective); }
