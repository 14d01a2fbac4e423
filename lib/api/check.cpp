// SPDX-License-Identifier: Apache-2.0
#include "api/check.h"

#include <atomic>

#include "api/structs.h"
#include "base/knobs.h"
#include "base/max_ranks.h"
#include "base/text.h"

namespace weft::api {
namespace {

Status checkTimeout(int ms, const char* name) {
  return ms > 0 ? Status() : invalid(name, " is ", ms, " ms; fix: a positive number");
}

std::string nextCommName() {
  static std::atomic<std::uint32_t> made{0};
  return text("comm", made.fetch_add(1, std::memory_order_relaxed));
}

// The team of a parent serves as long as nothing else is asked for.
Status applyThreads(const weftConfig_t& given, comm::CommConfig* out) {
  const engine::Pool pool{given.parallelFor, given.parallelForContext};
  const bool isOther = given.threads != WEFT_UNDEF_INT && given.threads != out->threads;
  if (given.threads != WEFT_UNDEF_INT) out->threads = given.threads;
  if (out->threads < 1 || out->threads > kMaxThreads)
    return invalid("threads is ", out->threads, "; fix: 1 to ", kMaxThreads);
  if (given.teamCalls != WEFT_UNDEF_INT) out->teamCalls = given.teamCalls != 0;
  if (out->teamCalls && pool.parallelFor != nullptr)
    return invalid("teamCalls and parallelFor are two forms of a team; fix: leave one out");
  if (isOther || out->callers != nullptr || out->teamCalls ||
      (pool.parallelFor != nullptr && pool != out->pool))
    out->team = nullptr, out->callers = nullptr;
  if (pool.parallelFor != nullptr) out->pool = pool;
  return {};
}

Status applyConfig(const weftConfig_t* config, comm::CommConfig* out) {
  weftConfig_t given = WEFT_CONFIG_INITIALIZER;
  if (config != nullptr) WEFT_TRY(readStruct(*config, WEFT_CONFIG_MAGIC, "CONFIG", &given));
  if (given.timeoutMs != WEFT_UNDEF_INT) out->timeoutMs = given.timeoutMs;
  if (given.initTimeoutMs != WEFT_UNDEF_INT) out->initTimeoutMs = given.initTimeoutMs;
  if (given.commName != nullptr) out->name = given.commName;
  if (given.transport != nullptr) out->transport = given.transport;
  if (given.reproducible != WEFT_UNDEF_INT) out->reproducible = given.reproducible != 0;
  if (given.whileWaiting != nullptr)
    out->meanwhile = {given.whileWaiting, given.whileWaitingContext};
  WEFT_TRY(checkTimeout(out->timeoutMs, "timeoutMs"));
  WEFT_TRY(checkTimeout(out->initTimeoutMs, "initTimeoutMs"));
  WEFT_TRY(applyThreads(given, out));
  if (out->name.empty()) out->name = nextCommName();
  return {};
}

}  // namespace

Status readConfig(const weftConfig_t* config, comm::CommConfig* out) {
  std::int64_t timeout = 0, initTimeout = 0, threads = 0;
  WEFT_TRY(readInteger(Knob::TimeoutMs, &timeout));
  WEFT_TRY(readInteger(Knob::InitTimeoutMs, &initTimeout));
  WEFT_TRY(readInteger(Knob::Threads, &threads));
  WEFT_TRY(readText(Knob::Transport, &out->transport));
  WEFT_TRY(readFlag(Knob::Reproducible, &out->reproducible));
  out->timeoutMs = static_cast<int>(timeout);
  out->initTimeoutMs = static_cast<int>(initTimeout);
  out->threads = static_cast<int>(threads);
  return applyConfig(config, out);
}

Status readConfig(const weftConfig_t* config, const comm::CommConfig& parent,
                  comm::CommConfig* out) {
  *out = parent;
  out->name.clear();
  return applyConfig(config, out);
}

Status readGiven(const weftOpts_t& opts, Options* out) {
  weftOpts_t given = WEFT_OPTS_INITIALIZER;
  WEFT_TRY(readStruct(opts, WEFT_OPTS_MAGIC, "OPTS", &given));
  if (given.timeoutMs != WEFT_UNDEF_INT) {
    WEFT_TRY(checkTimeout(given.timeoutMs, "timeoutMs"));
    out->timeoutMs = given.timeoutMs;
  }
  if (given.algorithm != nullptr) out->algorithm = given.algorithm;
  if (given.reproducible != WEFT_UNDEF_INT) out->reproducible = given.reproducible != 0;
  out->label = given.label;
  return {};
}

namespace wrong {

Status type(weftDataType_t type) {
  return invalid("data type ", static_cast<int>(type), " is unknown; fix: one of weftDataType_t");
}

Status rank(const comm::Communicator& comm, const char* what, int rank) {
  return invalid(what, " is ", rank, "; communicator ", comm.name(), " has ranks 0 to ",
                 comm.ranks() - 1);
}

Status null(const char* name) { return invalid(name, " is NULL"); }

Status count(std::uint64_t count, std::uint64_t blocks, weftDataType_t type) {
  const std::uint64_t most = PTRDIFF_MAX / reduce::sizeOf(static_cast<reduce::DType>(type)) /
                             std::max<std::uint64_t>(1, blocks);
  if (count <= most) return {};
  return invalid("count ", count, " of ", reduce::name(static_cast<reduce::DType>(type)), " for ",
                 blocks, " block(s) exceeds the address space");
}

Status buffers(Range send, Range recv, bool mayCoincide) {
  if (send.bytes != 0 && send.start == nullptr) return null("sendbuff");
  if (recv.bytes != 0 && recv.start == nullptr) return null("recvbuff");
  const auto wraps = [](Range range) {
    const auto start = reinterpret_cast<std::uintptr_t>(range.start);
    return start + range.bytes < start;
  };
  if (wraps(send) || wraps(recv)) return invalid("a buffer runs past the end of the address space");
  return invalid(mayCoincide
                     ? "sendbuff and recvbuff overlap without being exactly in place; fix: see the "
                       "in-place form of this collective in weft.h"
                     : "sendbuff and recvbuff overlap; this collective has no in-place form");
}

Status bits(reduce::RedOp op, reduce::DType type) {
  return invalid("op ", reduce::name(op), " is bitwise, of integers only, and the call is for ",
                 reduce::name(type),
                 "; fix: pass the bits as an integer type of that size, or another op");
}

}  // namespace wrong
}  // namespace weft::api
