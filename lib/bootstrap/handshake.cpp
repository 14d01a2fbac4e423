// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/handshake.h"

#include <algorithm>

#include "bootstrap/bytes.h"
#include "bootstrap/messages.h"

namespace weft {
namespace {

// The lengths in front keep "ab" + "c" from reading like "a" + "bc".
Digest proofOf(const Key& secret, std::string_view label, ByteView hello, ByteView challenge) {
  ByteWriter writer;
  writer.text(label).blob(hello).blob(challenge);
  return hmacSha256(secret, {writer.take()});
}

}  // namespace

Nonce idTag(const Key& secret) {
  const Digest digest = hmacSha256(secret, {bytesOf("weft id tag")});
  Nonce tag;
  std::copy_n(digest.begin(), tag.size(), tag.begin());
  return tag;
}

Digest rootProof(const Key& secret, ByteView hello, Challenge challenge) {
  challenge.proof.fill(std::byte{0});
  return proofOf(secret, "weft root", hello, encode(challenge));
}

Digest rankProof(const Key& secret, ByteView hello, ByteView challenge) {
  return proofOf(secret, "weft rank", hello, challenge);
}

SessionKeys sessionKeys(const Key& secret, ByteView hello, ByteView challenge) {
  return {proofOf(secret, "weft key to root", hello, challenge),
          proofOf(secret, "weft key to rank", hello, challenge)};
}

}  // namespace weft
