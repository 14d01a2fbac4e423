// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace weft::fuzz {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: it does not hold that %s\n", what);
  std::abort();
}

bool isGood(const Status& status) {
  require(status.ok() || !status.text().empty(), "an error says something");
  return status.ok();
}

std::string restOf(FuzzedDataProvider& from) { return from.ConsumeRemainingBytesAsString(); }

// Unlinked when the process ends in whichever way: it has a name only in /proc.
std::string fileWith(std::string_view content) {
  static const int fd = ::memfd_create("fuzz", 0);
  const bool written =
      fd >= 0 && ::ftruncate(fd, 0) == 0 &&
      ::pwrite(fd, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size());
  require(written, "a file in memory can be written");
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace weft::fuzz

// Library code logs what it refuses, which would be most of a fuzzer's time.
extern "C" int LLVMFuzzerInitialize(int*, char***) { return ::setenv("WEFT_DEBUG", "NONE", 1); }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz::tryInput({data, size});
  return 0;
}
