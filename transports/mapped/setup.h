// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "transports/transport.h"

// What the set-ups of local and shm share: who are you, are we on one host, how do all of us fare.
namespace weft {

using Token = std::array<std::byte, kTokenBytes>;

// What each rank tells all others first. Plain bytes: whoever does not have the same layout of them
// is not on this host or runs another weft, and `magic`, `version` and the length tell.
struct Card {
  std::uint32_t magic = kSegmentMagic;
  std::uint32_t version = kSegmentVersion;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t barriers = 0;  // registerForBarriers() succeeded
  std::uint32_t allowDirect = 0;
  std::uint64_t netNamespace = 0;
  std::uint64_t base = 0;  // address of the segment in its owner's memory
  std::uint64_t layout[5] = {};
  std::uint64_t heapBytes = 0;  // of the process's heap (shm); 0 if it has none
  Token heapToken = {};         // names that heap, which all ranks of its process share
  char bootId[40] = {};
  char host[64] = {};
  Token token = {};   // public name of the segment
  Token secret = {};  // whoever knows it learned it through the exchange
};

// All but base, heap, token and secret.
Card describe(const TransportSetup&);
Status randomToken(Token*);

// All-gather of `record` and of each rank's status so far. If any rank has failed, all ranks get
// the text of the lowest such rank, so that nobody waits for it any longer; what a rank says of
// itself goes before what others say of it (RemoteError). Where the exchange itself fails, each
// rank keeps what it says of itself, else gets the error of the exchange: who is seen to have ended
// has often only heard of a death, and the exchange knows whose.
Status gatherBytes(const TransportSetup&, const Status& mine, std::span<const std::byte> record,
                   std::vector<std::vector<std::byte>>* all);

template <class Record>
Status gather(const TransportSetup& setup, const Status& mine, const Record& record,
              std::vector<Record>* all) {
  static_assert(std::is_trivially_copyable_v<Record>);
  std::vector<std::vector<std::byte>> blobs;
  WEFT_TRY(gatherBytes(setup, mine, std::as_bytes(std::span(&record, 1)), &blobs));
  all->resize(blobs.size());
  for (std::size_t i = 0; i < blobs.size(); ++i)
    std::memcpy(&(*all)[i], blobs[i].data(), sizeof(Record));
  return {};
}

// Same weft, same world, same layout, and, if asked for, same host. All ranks judge the same cards
// and so say the same.
enum class HostsOf { One, Any };
Status checkCards(const char* transport, const std::vector<Card>& cards,
                  HostsOf hosts = HostsOf::One);

// "rank 3 (host b, pid 71)"
std::string nameOf(const Card&);

// Writes the header of one's own control page.
ControlPage* initControlPage(const Card&, std::byte* base);
// Is this mapping the segment of that rank?
Status checkControlPage(const Card&, const std::byte* base);
// Frees the peers from fencing if all of them can be ordered by membarrier.
void chooseBarriers(const std::vector<Card>& cards, ControlPage& mine);

}  // namespace weft
