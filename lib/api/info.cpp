// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "api/check.h"
#include "api/entry.h"
#include "api/structs.h"
#include "plan/forced.h"

namespace weft::api {
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

constexpr int kCollectives = static_cast<int>(schedule::Collective::Barrier) + 1;

bool findCollective(std::string_view name, schedule::Collective* out) {
  for (int c = 0; c < kCollectives; ++c) {
    *out = static_cast<schedule::Collective>(c);
    for (const bool uneven : {false, plan::sharesCounts(*out)})  // the others have no plan
      if (plan::collectiveName(*out, uneven) == name) return true;
  }
  return false;
}

Status callOf(const comm::Communicator& comm, const char* collective, size_t count,
              weftDataType_t type, plan::Call* call) {
  WEFT_TRY(checkPointer(collective, "collective"));
  WEFT_TRY(checkType(type));
  if (!findCollective(collective, &call->collective))
    return invalid("unknown collective '", collective,
                   "'; fix: a name of nccl-tests, such as all_reduce");
  WEFT_TRY(checkCount(count, comm.ranks(), type));
  call->count = count;
  call->type = static_cast<reduce::DType>(type);
  return {};
}

// An entry point that says something of a communicator in the caller's buffer.
template <class Say>
weftResult_t tell(weftComm_t handle, char* out, std::size_t length, const Say& say) noexcept {
  return onComm(handle, [&](comm::Communicator& comm) -> Status {
    WEFT_TRY(checkPointer(out, "text"));
    std::string lines;
    WEFT_TRY(say(comm, &lines));
    std::snprintf(out, length, "%s", lines.c_str());
    return {};
  });
}

// With the options that the choice depends on.
Status explainChoice(comm::Communicator& comm, plan::Call call, weftRedOp_t op,
                     const weftOpts_t* opts, std::string* lines) {
  Options options;
  WEFT_TRY(readOptions(comm, opts, &options));
  call.algorithm = options.algorithm;
  call.reproducible = options.reproducible;
  std::array<std::byte, 8> scalar{};
  if (schedule::isReduction(call.collective))
    WEFT_TRY(checkOp(comm, op, static_cast<weftDataType_t>(call.type), &call.op, &scalar));
  return comm.explainChoice(call, lines);
}

// Made once; the strings live as long as the library.
const char* namesOf(const char* collective) {
  thread_local std::string names;
  names.clear();
  schedule::Collective one;
  if (collective != nullptr)
    return findCollective(collective, &one) ? (names = plan::algorithmNames(one)).c_str() : "";
  for (int c = 0; c < kCollectives; ++c) {
    const schedule::Collective each = static_cast<schedule::Collective>(c);
    names += text(c == 0 ? "" : ";", plan::collectiveName(each), "=", plan::algorithmNames(each));
  }
  return names.c_str();
}

// As the comment of weftGetLastError in weft.h says.
const Status& lastErrorOn(weftComm_t comm) {
  const CommHandles::Pin found = commHandles().find(comm);
  if (found && !hasJustFailedOn(comm)) {
    beginCall();
    if (const Status firstError = found->firstError(); !firstError.ok()) report(firstError);
  }
  return lastErrorOfThread();
}

// Its pointers are into `error`.
weftErrorInfo_t infoOf(const Status& error) {
  const ErrorData& data = error.data();
  weftErrorInfo_t info = WEFT_ERROR_INFO_INITIALIZER;
  info.result = resultOf(error);
  info.rank = data.who.rank;
  info.pid = data.who.pid;
  info.host = data.who.host.c_str();
  info.device = data.device.c_str();
  info.port = data.port;
  info.call = data.call.c_str();
  info.message = error.message().c_str();
  info.fix = data.fix.c_str();
  // Which may be read as either sign.
  info.missingRanks = reinterpret_cast<const int*>(data.missing.data());
  info.missingCount = static_cast<int>(data.missing.size());
  info.variable = data.variable.c_str();
  return info;
}

Status lastErrorInfo(weftComm_t comm, weftErrorInfo_t* info) {
  WEFT_TRY(checkPointer(info, "info"));
  return writeStruct(infoOf(lastErrorOn(comm)), WEFT_ERROR_INFO_MAGIC, "ERROR_INFO", info);
}

}  // namespace
}  // namespace weft::api

using namespace weft::api;
using weft::Status;
using weft::comm::Communicator;

weftResult_t weftGetVersion(int* version) {
  return entry([&] { return give(version, "version", WEFT_VERSION_CODE); });
}

const char* weftGetErrorString(weftResult_t result) {
  const unsigned index = static_cast<unsigned>(result);
  return index < weftNumResults ? kResultNames[index] : "unknown result code";
}

const char* weftGetLastError(weftComm_t comm) { return lastErrorOn(comm).text().c_str(); }

weftResult_t weftGetLastErrorInfo(weftComm_t comm, weftErrorInfo_t* info) {
  const Status status = weft::withoutExceptions([&] { return lastErrorInfo(comm, info); });
  return status.ok() ? weftSuccess : report(status);
}

weftResult_t weftCommEdges(weftComm_t comm, char* text, size_t length) {
  return tell(comm, text, length, [](Communicator& c, std::string* lines) -> Status {
    *lines = c.explainEdges();
    return {};
  });
}

weftResult_t weftExplain(weftComm_t comm, const char* collective, size_t count, weftDataType_t type,
                         char* text, size_t length) {
  return tell(comm, text, length, [&](Communicator& c, std::string* line) -> Status {
    weft::plan::Call call;
    WEFT_TRY(callOf(c, collective, count, type, &call));
    return c.explain(call, line);
  });
}

weftResult_t weftCommExplain(weftComm_t comm, const char* collective, size_t count,
                             weftDataType_t type, weftRedOp_t op, const weftOpts_t* opts,
                             char* text, size_t length) {
  return tell(comm, text, length, [&](Communicator& c, std::string* lines) -> Status {
    *lines = c.explainMachine();
    if (collective == nullptr) return {};
    weft::plan::Call call;
    WEFT_TRY(callOf(c, collective, count, type, &call));
    return explainChoice(c, call, op, opts, lines);
  });
}

const char* weftAlgorithms(const char* collective) { return namesOf(collective); }
