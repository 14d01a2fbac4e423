// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "net/crypto.h"

namespace weft::net {

// How values are laid out on the wire and in a unique id: little-endian integers one after the
// other, strings and blobs with their length in front. No native struct is ever copied.

class ByteWriter {
 public:
  template <std::integral T>
  ByteWriter& number(T value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i)
      out_.push_back(static_cast<std::byte>(bits >> (8 * i)));
    return *this;
  }
  // Of any size but mostly small: 7 bits a byte, the lowest first, and a bit that says that more
  // follow.
  ByteWriter& small(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) number(static_cast<std::uint8_t>(value | 0x80));
    return number(static_cast<std::uint8_t>(value));
  }
  ByteWriter& raw(ByteView bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  ByteWriter& blob(ByteView bytes) {
    return number(static_cast<std::uint32_t>(bytes.size())).raw(bytes);
  }
  ByteWriter& text(std::string_view words) { return blob(bytesOf(words)); }

  std::size_t size() const { return out_.size(); }
  Bytes take() { return std::move(out_); }

 private:
  Bytes out_;
};

// Reads what ByteWriter wrote. Reading past the end or over a limit yields zeros and makes ok()
// false for good, so a decoder reads all its fields and checks once.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) : left_(bytes) {}

  template <std::integral T>
  T number() {
    std::uint64_t bits = 0;
    const ByteView bytes = raw(sizeof(T));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bits |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    return static_cast<T>(bits);
  }
  template <std::unsigned_integral T>
  T small() {
    std::uint64_t bits = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = number<std::uint8_t>();
      bits |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
      if (shift == 63) ok_ = false;
    }
    if (bits > std::numeric_limits<T>::max()) ok_ = false;
    return ok_ ? static_cast<T>(bits) : T{0};
  }
  // A view of the next `size` bytes; empty if there are fewer.
  ByteView raw(std::size_t size) {
    if (size > left_.size()) ok_ = false;
    if (!ok_) return {};
    const ByteView bytes = left_.first(size);
    left_ = left_.subspan(size);
    return bytes;
  }
  template <std::size_t N>
  void array(std::array<std::byte, N>* to) {
    const ByteView bytes = raw(N);
    to->fill(std::byte{0});
    std::copy(bytes.begin(), bytes.end(), to->begin());
  }
  ByteView blob(std::size_t limit) {
    const auto size = number<std::uint32_t>();
    if (size > limit) ok_ = false;
    return raw(size);
  }
  std::string text(std::size_t limit) {
    const ByteView bytes = blob(limit);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  ByteView rest() { return raw(left_.size()); }

  bool ok() const { return ok_; }
  // Everything was read and nothing was wrong.
  bool done() const { return ok_ && left_.empty(); }

 private:
  ByteView left_;
  bool ok_ = true;
};

}  // namespace weft::net
