// SPDX-License-Identifier: Apache-2.0
#include "net/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

namespace weft::net {
namespace {

Bytes concatenated(std::initializer_list<ByteView> parts) {
  Bytes all;
  for (ByteView part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const unsigned char* raw(ByteView bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Digest unequalToAnything() {
  Digest digest{};
  [[maybe_unused]] const ssize_t got = getrandom(digest.data(), digest.size(), 0);
  return digest;
}

}  // namespace

Digest sha256(std::initializer_list<ByteView> parts) {
  const Bytes all = concatenated(parts);
  Digest digest;
  const int done =
      EVP_Digest(all.data(), all.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr,
                 EVP_sha256(), nullptr);
  return done == 1 ? digest : unequalToAnything();
}

Digest hmacSha256(const Key& key, std::initializer_list<ByteView> parts) {
  const Bytes all = concatenated(parts);
  Digest digest;
  const void* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(all),
                          all.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return done ? digest : unequalToAnything();
}

bool equalInConstantTime(ByteView a, ByteView b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace weft::net
