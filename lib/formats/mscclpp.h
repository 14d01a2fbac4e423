// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/contents.h"
#include "formats/form.h"

// A plan as MSCCL++'s JSON has it (github.com/microsoft/mscclpp, src/core/executor/execution_plan.cc):
// thread blocks that write into and read from buffers of peers, and tell each other by signals. The
// k-th signal on a channel releases the k-th wait at its other end; a packet says itself that it is
// there.
namespace weft::formats {

struct MscclppPlace {
  std::uint32_t rank = 0;
  Contents::Buffer buffer = Contents::Buffer::Input;
  std::uint32_t first = 0, count = 0;  // chunks
  bool isPacket = false;
};

// One end of a channel: the n-th between these two ranks.
struct MscclppChannel {
  std::uint32_t peer = 0, number = 0;
};

struct MscclppOp {
  enum class Kind : std::uint8_t {
    Nop,
    Move,  // the k-th target gets the k-th source
    Sum,   // all targets get the sum of all sources
    Signal,
    Wait,
    Barrier,
    Acquire,
    Release,
  };
  Kind kind = Kind::Nop;
  bool signals = false;  // after a Move
  std::vector<MscclppPlace> sources, targets;
  std::vector<MscclppChannel> channels;
  std::uint32_t barrier = 0, blocks = 0;  // how many meet there
  std::vector<std::uint32_t> semaphores;
  std::size_t line = 0;
};

struct MscclppGpu {
  std::uint32_t scratchChunks = 0;
  std::vector<std::uint32_t> semaphores;  // what they begin with
  std::vector<std::vector<MscclppOp>> blocks;
  std::size_t line = 0;
};

struct MscclppPlan {
  std::string name;
  Form form;
  bool inPlace = false;
  std::vector<MscclppGpu> gpus;  // by rank
  std::size_t line = 0;
};

}  // namespace weft::formats
