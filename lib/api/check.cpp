// SPDX-License-Identifier: Apache-2.0
#include "api/check.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "api/entry.h"
#include "base/knobs.h"
#include "base/text.h"

namespace weft {
namespace {

// Copies what the caller's version of an appendable struct has; the rest keeps the defaults.
template <class Struct>
Status readStruct(const Struct& given, unsigned int magic, const char* what, Struct* out) {
  if (given.magic != magic)
    return invalid(text(what, " is not initialized; fix: start from WEFT_", what, "_INITIALIZER"));
  if (given.size > sizeof(Struct)) {
    // A newer caller: its further fields must not ask for anything that this library does not know.
    const char* bytes = reinterpret_cast<const char*>(&given);
    if (std::any_of(bytes + sizeof(Struct), bytes + given.size, [](char c) { return c != 0; }))
      return invalid(text(what, " is of version ", given.version,
                          " and sets fields that this libweft (", WEFT_VERSION_CODE,
                          ") does not know; fix: use a newer libweft"));
  }
  std::memcpy(out, &given, std::min(given.size, sizeof(Struct)));
  return {};
}

Status checkTimeout(int ms, const char* name) {
  return ms > 0 ? Status() : invalid(text(name, " is ", ms, " ms; fix: a positive number"));
}

std::string nextCommName() {
  static std::atomic<std::uint32_t> made{0};
  return text("comm", made.fetch_add(1, std::memory_order_relaxed));
}

Status applyConfig(const weftConfig_t* config, CommConfig* out) {
  if (config == nullptr) return {};
  weftConfig_t given = WEFT_CONFIG_INITIALIZER;
  WEFT_TRY(readStruct(*config, WEFT_CONFIG_MAGIC, "CONFIG", &given));
  if (given.timeoutMs != WEFT_UNDEF_INT) out->timeoutMs = given.timeoutMs;
  if (given.initTimeoutMs != WEFT_UNDEF_INT) out->initTimeoutMs = given.initTimeoutMs;
  if (given.commName != nullptr) out->name = given.commName;
  if (given.transport != nullptr) out->transport = given.transport;
  if (given.reproducible != WEFT_UNDEF_INT) out->reproducible = given.reproducible != 0;
  WEFT_TRY(checkTimeout(out->timeoutMs, "timeoutMs"));
  return checkTimeout(out->initTimeoutMs, "initTimeoutMs");
}

}  // namespace

Status readConfig(const weftConfig_t* config, CommConfig* out) {
  std::int64_t timeout = 0, initTimeout = 0;
  WEFT_TRY(readInteger(Knob::TimeoutMs, &timeout));
  WEFT_TRY(readInteger(Knob::InitTimeoutMs, &initTimeout));
  WEFT_TRY(readText(Knob::Transport, &out->transport));
  WEFT_TRY(readFlag(Knob::Reproducible, &out->reproducible));
  out->timeoutMs = static_cast<int>(timeout);
  out->initTimeoutMs = static_cast<int>(initTimeout);
  WEFT_TRY(applyConfig(config, out));
  if (out->name.empty()) out->name = nextCommName();
  return {};
}

Status readConfig(const weftConfig_t* config, const CommConfig& parent, CommConfig* out) {
  *out = parent;
  out->name.clear();
  WEFT_TRY(applyConfig(config, out));
  if (out->name.empty()) out->name = nextCommName();
  return {};
}

Status readOptions(const Communicator& comm, const weftOpts_t* opts, Options* out) {
  out->timeoutMs = comm.config().timeoutMs;
  out->reproducible = comm.config().reproducible;
  if (opts == nullptr) return {};
  weftOpts_t given = WEFT_OPTS_INITIALIZER;
  WEFT_TRY(readStruct(*opts, WEFT_OPTS_MAGIC, "OPTS", &given));
  if (given.timeoutMs != WEFT_UNDEF_INT) {
    WEFT_TRY(checkTimeout(given.timeoutMs, "timeoutMs"));
    out->timeoutMs = given.timeoutMs;
  }
  if (given.algorithm != nullptr) out->algorithm = given.algorithm;
  if (given.reproducible != WEFT_UNDEF_INT) out->reproducible = given.reproducible != 0;
  out->label = given.label;
  return {};
}

Status checkType(weftDataType_t type) {
  if (static_cast<unsigned>(type) < weftNumTypes) return {};
  return invalid(
      text("data type ", static_cast<int>(type), " is unknown; fix: one of weftDataType_t"));
}

Status checkRoot(const Communicator& comm, int root) {
  if (root >= 0 && static_cast<std::uint32_t>(root) < comm.ranks()) return {};
  return invalid(
      text("root is ", root, "; communicator ", comm.name(), " has ranks 0 to ", comm.ranks() - 1));
}

Status checkPeer(const Communicator& comm, int peer) {
  if (peer >= 0 && static_cast<std::uint32_t>(peer) < comm.ranks()) return {};
  return invalid(
      text("peer is ", peer, "; communicator ", comm.name(), " has ranks 0 to ", comm.ranks() - 1));
}

Status checkPointer(const void* pointer, const char* name) {
  return pointer ? Status() : invalid(text(name, " is NULL"));
}

Status checkOp(const Communicator& comm, weftRedOp_t op, weftDataType_t type, RedOp* out,
               std::array<std::byte, 8>* scalar) {
  if (static_cast<unsigned>(op) < weftNumOps) {
    *out = static_cast<RedOp>(op);
    return {};
  }
  *out = RedOp::PreMulSum;
  return comm.scalarOf(static_cast<int>(op) - weftNumOps, static_cast<DType>(type), scalar);
}

Status checkCount(std::uint64_t count, std::uint64_t blocks, weftDataType_t type) {
  const std::uint64_t most =
      PTRDIFF_MAX / sizeOf(static_cast<DType>(type)) / std::max<std::uint64_t>(1, blocks);
  if (count <= most) return {};
  return invalid(text("count ", count, " of ", name(static_cast<DType>(type)), " for ", blocks,
                      " block(s) exceeds the address space"));
}

Status checkBuffers(Range send, Range recv, std::int64_t inPlace, bool mayCoincide) {
  if (send.bytes != 0) WEFT_TRY(checkPointer(send.start, "sendbuff"));
  if (recv.bytes != 0) WEFT_TRY(checkPointer(recv.start, "recvbuff"));
  if (send.bytes == 0 || recv.bytes == 0) return {};
  const auto s = reinterpret_cast<std::uintptr_t>(send.start);
  const auto r = reinterpret_cast<std::uintptr_t>(recv.start);
  if (s + send.bytes < s || r + recv.bytes < r)
    return invalid("a buffer runs past the end of the address space");
  if (s + send.bytes <= r || r + recv.bytes <= s) return {};
  if (mayCoincide && s == r + static_cast<std::uintptr_t>(inPlace)) return {};
  return invalid(mayCoincide
                     ? "sendbuff and recvbuff overlap without being exactly in place; fix: see the "
                       "in-place form of this collective in weft.h"
                     : "sendbuff and recvbuff overlap; this collective has no in-place form");
}

}  // namespace weft
