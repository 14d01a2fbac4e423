// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/contents.h"
#include "formats/form.h"

// A schedule as MSCCL's XML has it (Cowan et al., MSCCLang, ASPLOS 2023; github.com/Azure/msccl-tools,
// msccl/language/ir.py): on each GPU thread blocks, each of them a serial list of steps, which has one
// peer to send to and one to receive from at most. The k-th step that sends from one GPU to another on
// a channel meets the k-th that receives there.
namespace weft::formats {

enum class MscclKind : std::uint8_t {
  Send,                   // s
  Receive,                // r
  ReceiveCopySend,        // rcs
  ReceiveReduceCopy,      // rrc: dst = src + what arrives
  ReceiveReduceSend,      // rrs: src + what arrives goes on, and is stored nowhere
  ReceiveReduceCopySend,  // rrcs
  Copy,                   // cpy
  Reduce,                 // re: dst = dst + src
  Nop,                    // nop: carries a dependency
};

struct MscclSlot {
  Contents::Buffer buffer = Contents::Buffer::Input;
  std::uint32_t offset = 0;  // in chunks
};

struct MscclStep {
  MscclKind kind = MscclKind::Nop;
  MscclSlot src, dst;
  std::uint32_t count = 1;  // chunks
  // It runs after step `afterStep` of this GPU's block `afterBlock`; kNone: of none.
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t afterBlock = kNone, afterStep = kNone;
  bool isAwaited = false;  // another step runs after it (hasdep)
  std::size_t line = 0;

  bool receives() const {
    return kind == MscclKind::Receive || kind == MscclKind::ReceiveCopySend || reducesArrived();
  }
  bool reducesArrived() const {
    return kind == MscclKind::ReceiveReduceCopy || kind == MscclKind::ReceiveReduceSend ||
           kind == MscclKind::ReceiveReduceCopySend;
  }
  bool sends() const {
    return kind == MscclKind::Send || kind == MscclKind::ReceiveCopySend ||
           kind == MscclKind::ReceiveReduceSend || kind == MscclKind::ReceiveReduceCopySend;
  }
  bool readsSource() const {
    return kind == MscclKind::Send || kind == MscclKind::Copy || kind == MscclKind::Reduce ||
           reducesArrived();
  }
  bool stores() const {
    return kind != MscclKind::Send && kind != MscclKind::ReceiveReduceSend &&
           kind != MscclKind::Nop;
  }
};

struct MscclBlock {
  static constexpr std::uint32_t kNobody = ~0u;
  std::uint32_t sendPeer = kNobody, receivePeer = kNobody;
  std::uint32_t channel = 0;
  std::vector<MscclStep> steps;
  std::size_t line = 0;
};

struct MscclGpu {
  std::uint32_t inputChunks = 0, outputChunks = 0, scratchChunks = 0;
  struct Copied {
    std::uint32_t input = 0, output = 0;  // chunks
    std::size_t line = 0;
  };
  std::vector<Copied> copied;      // what lies in the output before any step, from the input
  std::vector<MscclBlock> blocks;  // by their numbers
  std::size_t line = 0;            // 0: it is missing
};

struct MscclAlgorithm {
  std::string name;
  Form form;
  bool inPlace = false;        // input and output are one buffer
  std::vector<MscclGpu> gpus;  // by rank
  std::size_t line = 0;
};

}  // namespace weft::formats
