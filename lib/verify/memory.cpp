// SPDX-License-Identifier: Apache-2.0
#include "verify/memory.h"

#include <algorithm>

namespace weft::verify {

// The index of the span that begins there, which is made if need be.
std::size_t History::splitAt(std::uint32_t byte) {
  const auto at = std::ranges::lower_bound(spans_, byte, {}, &Span::end);
  auto span = at != spans_.end() && at->end == byte ? at + 1 : at;
  const auto index = static_cast<std::size_t>(span - spans_.begin());
  if (span == spans_.end() || span->begin == byte) return index;
  Span rest = *span;
  span->end = rest.begin = byte;
  spans_.insert(span + 1, std::move(rest));
  return index + 1;
}

std::optional<History::Conflict> History::touch(std::uint32_t begin, std::uint32_t end,
                                                const Access& self, bool write, const Order& order,
                                                const Clock& clock) {
  if (begin == end) return {};
  const std::size_t first = splitAt(begin), last = splitAt(end);
  const auto isOpen = [&](const Access& other, bool writes) {
    const bool same = other.actor == self.actor && other.step == self.step;
    return !same && !order.isThrough(other, writes, clock);
  };
  for (std::size_t i = first; i < last; ++i) {
    Span& span = spans_[i];
    if (span.write && isOpen(*span.write, true)) return Conflict{*span.write, true};
    for (const Access& read : span.reads)
      if (write && isOpen(read, false)) return Conflict{read, false};
    if (!write) span.reads.push_back(self);
  }
  if (!write) return {};
  const auto at = spans_.begin() + static_cast<std::ptrdiff_t>(first);
  *at = {begin, end, self, {}};
  spans_.erase(at + 1, spans_.begin() + static_cast<std::ptrdiff_t>(last));
  return {};
}

}  // namespace weft::verify
