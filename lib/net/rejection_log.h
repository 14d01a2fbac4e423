// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "net/address.h"
#include "net/crypto.h"

namespace weft::net {

// One INFO line a minute about connections that were not ours, however many there are:
//   ignored 291 foreign connections (first 10.0.0.9:4242: "GET / HTTP": no valid hello)
class RejectionLog {
 public:
  void note(const Address& peer, ByteView said, std::string_view why);
  // Says what has not been said yet.
  void report();

 private:
  std::size_t count_ = 0;
  std::string first_;
  Deadline next_ = Deadline::in(60000);
};

}  // namespace weft::net
