// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/address.h"
#include "net/crypto.h"

namespace weft::bootstrap {

// The 128 opaque bytes of weftUniqueId: names one communicator to be, and holds the secret that
// lets a rank join it. Never logged.
struct UniqueId {
  std::array<std::byte, 128> bytes{};
};

// What launched a job, as far as it tells jobs apart.
enum class JobKind : std::uint8_t { None, Torchrun, Pmix, Slurm, AwsBatch };

// Which job this process, or the creator of an id, belongs to: a launcher's kind and a hash of its
// job id.
struct JobMark {
  JobKind kind = JobKind::None;
  std::uint64_t nonce = 0;
};

// An id taken apart.
struct IdContent {
  enum class Origin : std::uint8_t {
    Created,  // by createUniqueId: a root listens before anybody can hold the id
    Address,  // agreed beforehand: rank 0 starts to listen when it joins
  };
  Origin origin = Origin::Created;
  std::vector<net::Address> addresses;  // one or two, tried in this order
  net::Key secret{};
  std::int64_t createdUnixSeconds =
      0;  // 0 for Origin::Address, where all ranks compute the same bytes
  JobMark job;
};

inline constexpr std::size_t kMaxIdAddresses = 2;

UniqueId encodeId(const IdContent& content);
// InvalidArgument if the bytes are not an id (zeros, cut, changed: the checksum differs) or of
// another version.
Status decodeId(const UniqueId& id, IdContent* content);

// "12 s ago", "3 h ago"; "at an unknown time" for 0.
std::string ageOf(std::int64_t createdUnixSeconds, std::int64_t nowUnixSeconds);

}  // namespace weft::bootstrap
