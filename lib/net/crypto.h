// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace weft::net {

// The little cryptography that the bootstrap needs, all of it libcrypto's. Thread-safe.

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;
using Key = std::array<std::byte, 32>;     // an HMAC key
using Digest = std::array<std::byte, 32>;  // a SHA-256 or HMAC-SHA256 value
using Nonce = std::array<std::byte, 16>;

// Fills `to` from getrandom(2).
Status randomBytes(std::span<std::byte> to);

// Both take the concatenation of `parts`. Should libcrypto fail, which it does only without memory,
// the digest is random: nothing is ever equal to it, so the failure closes doors and opens none.
Digest sha256(std::initializer_list<ByteView> parts);
Digest hmacSha256(const Key& key, std::initializer_list<ByteView> parts);

// Takes the same time wherever the first difference is. False if the sizes differ.
bool equalInConstantTime(ByteView a, ByteView b);

inline ByteView bytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace weft::net
