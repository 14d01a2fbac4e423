// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) and HMAC (RFC 2104) without libcrypto: for the few hundred bytes of a handshake, in plain code.
#include "net/crypto.h"

#include <bit>
#include <cstdint>

namespace weft::net {
namespace {

constexpr std::size_t kShaBlock = 64;

constexpr std::array<std::uint32_t, 64> kShaRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Sha256 {
 public:
  void add(ByteView bytes) {
    length_ += bytes.size();
    for (const std::byte b : bytes) put(b);
  }

  Digest finish() {
    const std::uint64_t bits = 8 * length_;
    put(std::byte{0x80});
    while (filled_ != kShaBlock - sizeof bits) put(std::byte{0});
    for (int shift = 56; shift >= 0; shift -= 8) put(static_cast<std::byte>(bits >> shift));
    Digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i)
      digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
  }

 private:
  void put(std::byte b) {
    block_[filled_++] = b;
    if (filled_ != kShaBlock) return;
    compress();
    filled_ = 0;
  }

  // The message schedule of the standard.
  std::array<std::uint32_t, 64> expanded() const {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < kShaBlock; ++i)
      w[i / 4] = w[i / 4] << 8 | std::to_integer<std::uint32_t>(block_[i]);
    for (std::size_t t = 16; t < w.size(); ++t) {
      const std::uint32_t a = w[t - 15], b = w[t - 2];
      const std::uint32_t low = std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3;
      const std::uint32_t high = std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10;
      w[t] = w[t - 16] + low + w[t - 7] + high;
    }
    return w;
  }

  void compress() {
    const std::array<std::uint32_t, 64> w = expanded();
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t t = 0; t < w.size(); ++t) {
      const std::uint32_t chosen = (e & f) ^ (~e & g), major = (a & b) ^ (a & c) ^ (b & c);
      const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                  chosen + kShaRounds[t] + w[t];
      const std::uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + major;
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const std::array<std::uint32_t, 8> worked{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < worked.size(); ++i) state_[i] += worked[i];
  }

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kShaBlock> block_{};
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;  // bytes
};

// A block of HMAC's, each byte of it the key's or 0, with a mask over it.
std::array<std::byte, kShaBlock> padded(const Key& key, std::byte mask) {
  std::array<std::byte, kShaBlock> block;
  for (std::size_t i = 0; i < block.size(); ++i)
    block[i] = mask ^ (i < key.size() ? key[i] : std::byte{0});
  return block;
}

}  // namespace

Digest sha256(std::initializer_list<ByteView> parts) {
  Sha256 hash;
  for (const ByteView part : parts) hash.add(part);
  return hash.finish();
}

Digest hmacSha256(const Key& key, std::initializer_list<ByteView> parts) {
  Sha256 inner, outer;
  inner.add(padded(key, std::byte{0x36}));
  for (const ByteView part : parts) inner.add(part);
  outer.add(padded(key, std::byte{0x5c}));
  outer.add(inner.finish());
  return outer.finish();
}

bool equalInConstantTime(ByteView a, ByteView b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char differ = 0;  // else the compiler might stop at the first
  for (std::size_t i = 0; i < a.size(); ++i)
    differ = differ | std::to_integer<unsigned char>(a[i] ^ b[i]);
  return differ == 0;
}

}  // namespace weft::net
