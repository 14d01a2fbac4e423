// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The few names of the PMIx client interface that weft uses, as the PMIx Standard 4.1 defines them
// and as libpmix.so.2 has them, so that building weft needs no PMIx and running it needs it only
// under a launcher that speaks it. A unit test compares them with <pmix.h> where that is installed.
namespace weft::launch::pmix {

using Status = int;
inline constexpr Status kSuccess = 0;
inline constexpr Status kOperationSucceeded = -157;  // done already: no callback will come

using Scope = std::uint8_t;
inline constexpr Scope kGlobal = 3;

using DataType = std::uint16_t;
inline constexpr DataType kBool = 1;
inline constexpr DataType kString = 3;
inline constexpr DataType kUint16 = 13;
inline constexpr DataType kUint32 = 14;

inline constexpr std::size_t kMaxNamespace = 255;
inline constexpr std::size_t kMaxKey = 511;
inline constexpr std::uint32_t kRankWildcard = UINT32_MAX - 1;

inline constexpr const char* kJobSize = "pmix.job.size";      // uint32
inline constexpr const char* kLocalRank = "pmix.lrank";       // uint16
inline constexpr const char* kLocalSize = "pmix.local.size";  // uint32
inline constexpr const char* kCollectData = "pmix.collect";   // bool

struct Process {
  char nspace[kMaxNamespace + 1];
  std::uint32_t rank;
};

struct Value {
  DataType type;
  union {
    bool flag;
    char* string;
    std::uint16_t uint16;
    std::uint32_t uint32;
    void* largest[3];
  } data;
};

struct Info {
  char key[kMaxKey + 1];
  std::uint32_t flags;
  Value value;
};

using Init = Status (*)(Process* self, Info* infos, std::size_t count);
using Finalize = Status (*)(const Info* infos, std::size_t count);
using Put = Status (*)(Scope scope, const char* key, Value* value);
using Commit = Status (*)();
using DoneCallback = void (*)(Status status, void* context);
using FenceNb = Status (*)(const Process* processes, std::size_t processCount, const Info* infos,
                           std::size_t infoCount, DoneCallback done, void* context);
using Get = Status (*)(const Process* process, const char* key, const Info* infos,
                       std::size_t count, Value** value);
using ErrorString = const char* (*)(Status status);
using ValueDestruct = void (*)(Value* value);

}  // namespace weft::launch::pmix
