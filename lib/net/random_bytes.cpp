// SPDX-License-Identifier: Apache-2.0
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "net/crypto.h"

namespace weft::net {

Status randomBytes(std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = getrandom(to.data(), to.size(), 0);
    if (got > 0) to = to.subspan(static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR)
      return Status::error(Code::SystemError, "getrandom: ", std::strerror(errno));
  }
  return {};
}

}  // namespace weft::net
