// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "net/crypto.h"

namespace weft::bootstrap {

// The table that the root sends to all ranks: what each has given. That is n parts to n ranks, most
// of which are nearly the same: host and boot id of ranks of one host, addresses of one network,
// capabilities of one kind of machine, a calibration that one rank gives and all others leave empty.
// So a part travels as what differs from the one before it:
//
//   0                                          it is the same
//   1 + its length, then up to that length     as many bytes as before, so many others, these others
//
// in numbers of 7 bits a byte (net/bytes.h).
net::Bytes encodeTable(const std::vector<net::Bytes>& parts);
// As many parts as announced, each of at most maxPart bytes.
bool decodeTable(net::ByteView bytes, std::size_t parts, std::size_t maxPart,
                 std::vector<net::Bytes>* out);

// No table of parts that have so many bytes in all is longer.
std::size_t maxTableBytes(std::size_t parts, std::size_t bytes);

}  // namespace weft::bootstrap
