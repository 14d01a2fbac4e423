// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/handshake.h"

#include <algorithm>

#include "bootstrap/messages.h"
#include "net/bytes.h"

namespace weft::bootstrap {
namespace {

// The lengths in front keep "ab" + "c" from reading like "a" + "bc".
net::Digest proofOf(const net::Key& secret, std::string_view label, net::ByteView hello,
                    net::ByteView challenge) {
  net::ByteWriter writer;
  writer.text(label).blob(hello).blob(challenge);
  return net::hmacSha256(secret, {writer.take()});
}

}  // namespace

net::Nonce idTag(const net::Key& secret) {
  const net::Digest digest = net::hmacSha256(secret, {net::bytesOf("weft id tag")});
  net::Nonce tag;
  std::copy_n(digest.begin(), tag.size(), tag.begin());
  return tag;
}

net::Digest rootProof(const net::Key& secret, net::ByteView hello, Challenge challenge) {
  challenge.proof.fill(std::byte{0});
  return proofOf(secret, "weft root", hello, encode(challenge));
}

net::Digest rankProof(const net::Key& secret, net::ByteView hello, net::ByteView challenge) {
  return proofOf(secret, "weft rank", hello, challenge);
}

SessionKeys sessionKeys(const net::Key& secret, net::ByteView hello, net::ByteView challenge) {
  return {proofOf(secret, "weft key to root", hello, challenge),
          proofOf(secret, "weft key to rank", hello, challenge)};
}

}  // namespace weft::bootstrap
