// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/deadline.h"
#include "base/status.h"
#include "launch/pmix_abi.h"

namespace weft::launch {

// A conversation with the launcher's PMIx server through libpmix.so.2, which is opened when this is
// and stays loaded. Reference-counted inside libpmix, so an MPI in the same process does not mind.
class PmixClient {
 public:
  PmixClient() = default;
  ~PmixClient();
  PmixClient(const PmixClient&) = delete;
  PmixClient& operator=(const PmixClient&) = delete;

  // SystemError if libpmix cannot be opened or the server does not answer.
  Status open();

  // What the launcher knows about this job or this process (pmix::kJobSize, kLocalSize;
  // kLocalRank).
  Status jobNumber(const char* key, std::uint32_t* value) const;
  Status ownNumber(const char* key, std::uint32_t* value) const;

  Status put(const std::string& key, std::string value) const;
  // Waits for all processes of the job and exchanges what they have put.
  Status fence(Deadline deadline) const;
  Status get(std::uint32_t rank, const std::string& key, std::string* value) const;

 private:
  struct Library;
  // Shows a value to `take`, which says whether it is what was `wanted`.
  Status read(std::uint32_t rank, const char* key, const char* wanted,
              const std::function<bool(const pmix::Value&)>& take) const;
  Status number(std::uint32_t rank, const char* key, std::uint32_t* value) const;

  const Library* library_ = nullptr;
  pmix::Process self_{};
  int owner_ = 0;  // process id
};

}  // namespace weft::launch
