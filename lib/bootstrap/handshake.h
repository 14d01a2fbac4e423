// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/crypto.h"

namespace weft::bootstrap {

// The mutual proof that both sides hold the id's secret, without sending it. Three messages:
//
//   Hello                          rank's nonce, rank, size, versions
//   Challenge  root's nonce,       HMAC(secret, "root",  Hello, Challenge without the proof)
//   Proof                          HMAC(secret, "rank",  Hello, Challenge)
//
// Each proof covers everything said before it, both nonces included: neither side can be fed
// another session's messages, and the two labels keep one side's proof from being reflected as the
// other's. Who fails the root's test hears a Refusal, the one message that nobody can authenticate,
// since the two share no keys. A forged one may keep a rank out, as may whoever can cut its
// connection; it lets nobody in, and the root takes none. The keys of the session come from the
// secret and the same transcript (one block of HKDF-Expand, RFC 5869, section 2.3), one for each
// direction.

struct Challenge;

struct SessionKeys {
  net::Key toRoot{};
  net::Key toRank{};
};

// A public name of a secret.
net::Nonce idTag(const net::Key& secret);

// `hello` and `challenge` are the encoded messages. rootProof ignores challenge.proof, which it is.
net::Digest rootProof(const net::Key& secret, net::ByteView hello, Challenge challenge);
net::Digest rankProof(const net::Key& secret, net::ByteView hello, net::ByteView challenge);
SessionKeys sessionKeys(const net::Key& secret, net::ByteView hello, net::ByteView challenge);

}  // namespace weft::bootstrap
