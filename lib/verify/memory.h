// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verify/order.h"
#include "verify/values.h"

namespace weft::verify {

// Who has accessed which bytes, as far as it can still conflict: the last write and the reads since
// (as in FastTrack: Flanagan and Freund, PLDI 2009).
class History {
 public:
  explicit History(std::uint32_t bytes) : spans_{{0, bytes, {}, {}}} {}

  struct Conflict {
    Access access;
    bool write;
  };
  // Notes an access to bytes [begin, end) by `self`. The answer is an access that conflicts with it
  // and is not known to be through, if there is one.
  std::optional<Conflict> touch(std::uint32_t begin, std::uint32_t end, const Access& self,
                                bool write, const Order& order, const Clock& clock);

 private:
  struct Span {
    std::uint32_t begin, end;
    std::optional<Access> write;
    std::vector<Access> reads;
  };
  std::size_t splitAt(std::uint32_t byte);

  std::vector<Span> spans_;  // without gaps
};

// Some bytes of one rank's, as fingerprints: what they hold, and who has accessed them. A "slot"
// and a "chunk" of values.h are one byte here.
struct Memory {
  explicit Memory(std::uint32_t size) : bytes(size), history(size) {}

  std::uint32_t bytes;
  Slots values;
  History history;
};

}  // namespace weft::verify
