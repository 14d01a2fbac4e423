// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft {

// What every rank tells all others at creation.
struct RankCard {
  int rank = -1;
  std::string host;    // name, for people
  std::string hostId;  // equal exactly for ranks that can reach each other through the kernel
  int pid = 0;         // as the rank itself sees it
  std::uint64_t startTime =
      0;                // clock ticks after boot (field 22 of /proc/PID/stat): tells a reused pid
  std::string version;  // of libweft
  std::string configText;       // "key=value;..." of everything that must agree on all ranks
  std::vector<std::byte> blob;  // the caller's
};

inline constexpr std::size_t kMaxHostBytes = 256;
inline constexpr std::size_t kMaxVersionBytes = 64;
inline constexpr std::size_t kMaxConfigBytes = 4096;
inline constexpr std::size_t kMaxBlobBytes = 4096;
// One rank's part of an all-gather.
inline constexpr std::size_t kMaxPartBytes = 60 * 1024;

// Host, host id, pid and start time of this process, and this libweft's version.
//
// The host id is the kernel's boot id and the network namespace: ranks in one namespace of one
// running kernel can connect over abstract Unix sockets and so hand each other memory; other
// namespaces (IPC, PID, mount) do not matter to that.
RankCard cardOfThisProcess();

// This libweft's version, "0.1.0".
std::string libraryVersion();

// "rank 5 (host b, pid 4711)".
std::string describe(const RankCard& card);

}  // namespace weft
