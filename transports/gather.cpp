// SPDX-License-Identifier: Apache-2.0
#include "transports/gather.h"

#include <string>

#include "base/text.h"

namespace weft::transport {
namespace {

// A rank's blob: its record, then its error, if it has one.
constexpr std::size_t kMaxError = 2000;

std::vector<std::byte> pack(const Status& status, std::span<const std::byte> record) {
  const std::string error = status.ok() ? "" : weft::pack(status, kMaxError);
  std::vector<std::byte> blob(record.begin(), record.end());
  const auto bytes = std::as_bytes(std::span(error));
  blob.insert(blob.end(), bytes.begin(), bytes.end());
  return blob;
}

// Leaves the record in `blob`; the result is the status that came with it.
Status unpack(std::size_t rank, std::size_t recordBytes, std::vector<std::byte>* blob) {
  const PeerName who(static_cast<int>(rank), "");
  if (blob->size() == recordBytes) return {};
  const std::string_view bytes(reinterpret_cast<const char*>(blob->data()), blob->size());
  Status said;
  if (bytes.size() > recordBytes && unpack(bytes.substr(recordBytes), &said)) {
    blob->resize(recordBytes);
    return within(text(who, ": "), who, said);
  }
  return Status::error({.code = Code::Mismatch,
                        .who = who,
                        .what = text("{who} sent ", blob->size(),
                                     " bytes of set-up data that this weft does not understand"),
                        .fix = "the same libweft on all ranks"});
}

}  // namespace

Status gatherBytes(const TransportSetup& setup, const Status& mine,
                   std::span<const std::byte> record, std::vector<std::vector<std::byte>>* all) {
  const std::vector<std::byte> blob = pack(mine, record);
  const Status exchanged = setup.exchange(blob, all);
  const bool knowsBetter =
      mine.ok() || (mine.code() == Code::RemoteError && exchanged.code() == Code::RemoteError);
  if (!exchanged.ok()) return knowsBetter ? exchanged : mine;
  if (all->size() != setup.ranks)
    return Status::error(Code::InternalError, "set-up exchange gave ", all->size(), " blobs for ",
                         setup.ranks, " ranks");
  Status first;
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    const Status said = unpack(rank, record.size(), &(*all)[rank]);
    const bool isCause = first.code() == Code::RemoteError && said.code() != Code::RemoteError;
    if (!said.ok() && (first.ok() || isCause)) first = said;
  }
  return first;
}

}  // namespace weft::transport
