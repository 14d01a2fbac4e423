// SPDX-License-Identifier: Apache-2.0
#include "transports/mapped/setup.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/log.h"
#include "base/text.h"
#include "transports/mapped/doorbell.h"
#include "transports/mapped/handle.h"

namespace weft {
namespace {

template <std::size_t N>
void copyText(char (&to)[N], const std::string& from) {
  std::memcpy(to, from.data(), std::min(from.size(), N - 1));
}

// Differs between hosts and between boots of one host. Empty if /proc is not there.
std::string bootId() {
  const Fd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char id[36] = {};
  if (!file || ::read(file.get(), id, sizeof(id)) != sizeof(id)) return {};
  return std::string(id, sizeof(id));
}

std::uint64_t netNamespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/net", &info) == 0 ? info.st_ino : 0;
}

// Wire form of one rank's contribution: code, length of the text, text, record.
struct Prefix {
  std::uint8_t code = 0;
  std::uint8_t textBytes[2] = {};
};
constexpr std::size_t kMaxText = 1000;

std::vector<std::byte> pack(const Status& status, std::span<const std::byte> record) {
  const std::string text = status.text().substr(0, kMaxText);
  const Prefix prefix{
      static_cast<std::uint8_t>(status.code()),
      {static_cast<std::uint8_t>(text.size() & 0xff), static_cast<std::uint8_t>(text.size() >> 8)}};
  std::vector<std::byte> blob(sizeof(prefix) + text.size() + record.size());
  std::memcpy(blob.data(), &prefix, sizeof(prefix));
  if (!text.empty()) std::memcpy(blob.data() + sizeof(prefix), text.data(), text.size());
  if (!record.empty())
    std::memcpy(blob.data() + sizeof(prefix) + text.size(), record.data(), record.size());
  return blob;
}

// Leaves the record in `blob`; the result is the status that came with it.
Status unpack(std::size_t rank, std::size_t recordBytes, std::vector<std::byte>* blob) {
  Prefix prefix;
  const auto size = blob->size();
  if (size >= sizeof(prefix)) std::memcpy(&prefix, blob->data(), sizeof(prefix));
  const std::size_t textBytes = prefix.textBytes[0] | std::size_t{prefix.textBytes[1]} << 8;
  if (size != sizeof(prefix) + textBytes + recordBytes)
    return Status::error(Code::Mismatch, text("rank ", rank, " sent ", size,
                                              " bytes of set-up data that this weft does not"
                                              " understand; fix: the same libweft on all ranks"));
  const auto* letters = reinterpret_cast<const char*>(blob->data() + sizeof(prefix));
  const auto code = static_cast<Code>(prefix.code);
  if (code != Code::Ok)
    return Status::error(code, text("rank ", rank, ": ", std::string(letters, textBytes)));
  blob->erase(blob->begin(),
              blob->begin() + static_cast<std::ptrdiff_t>(sizeof(prefix) + textBytes));
  return {};
}

std::string describeLayout(const Card& card) {
  return text(card.layout[0], " ranks, ", card.layout[1], "+", card.layout[2], " tags, ",
              card.layout[3], "+", card.layout[4], " bytes");
}

Status mismatch(const char* transport, const std::string& why) {
  return Status::error(Code::Mismatch, text(transport, " transport: ", why));
}

Status checkPair(const char* transport, const Card& first, const Card& card, HostsOf hosts) {
  if (card.magic != kSegmentMagic || card.version != kSegmentVersion)
    return mismatch(transport, text(nameOf(card), " runs another version of weft (segment version ",
                                    card.version, ", here ", kSegmentVersion,
                                    "); fix: the same libweft on all ranks"));
  // Without /proc it is unknown; then the peer will not be found, which is said less well.
  const bool known = first.bootId[0] != '\0' && card.bootId[0] != '\0';
  if (hosts == HostsOf::One && known &&
      std::memcmp(first.bootId, card.bootId, sizeof(card.bootId)) != 0)
    return mismatch(transport, text(nameOf(first), " and ", nameOf(card),
                                    " are on different hosts; this transport joins ranks of one"
                                    " host only"));
  if (std::memcmp(first.layout, card.layout, sizeof(card.layout)) != 0)
    return mismatch(transport, text("segments differ: ", nameOf(first), " has ",
                                    describeLayout(first), ", ", nameOf(card), " has ",
                                    describeLayout(card), "; fix: the same WEFT_* on all ranks"));
  return {};
}

}  // namespace

std::string nameOf(const Card& card) {
  return text("rank ", card.rank, " (host ", card.host, ", pid ", card.pid, ")");
}

Card describe(const TransportSetup& setup) {
  Card card;
  card.rank = setup.rank;
  card.ranks = setup.ranks;
  card.pid = ::getpid();
  card.uid = ::geteuid();
  card.barriers = registerForBarriers();
  card.allowDirect = setup.allowDirect;
  card.netNamespace = netNamespace();
  const SegmentLayout& layout = setup.layout;
  const std::uint64_t fields[] = {layout.ranks, layout.tags, layout.pairTags, layout.arenaBytes,
                                  layout.pairBytes};
  std::copy(std::begin(fields), std::end(fields), card.layout);
  copyText(card.bootId, bootId());
  copyText(card.host, hostName());
  return card;
}

Status randomToken(Token* token) {
  std::size_t have = 0;
  while (have < token->size()) {
    const ssize_t got = ::getrandom(token->data() + have, token->size() - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::error(Code::SystemError, text("getrandom: ", std::strerror(errno)));
    have += static_cast<std::size_t>(got);
  }
  return {};
}

Status gatherBytes(const TransportSetup& setup, const Status& mine,
                   std::span<const std::byte> record, std::vector<std::vector<std::byte>>* all) {
  const std::vector<std::byte> blob = pack(mine, record);
  const Status exchanged = setup.exchange(blob, all);
  const bool knowsBetter =
      mine.ok() || (mine.code() == Code::RemoteError && exchanged.code() == Code::RemoteError);
  if (!exchanged.ok()) return knowsBetter ? exchanged : mine;
  if (all->size() != setup.ranks)
    return Status::error(Code::InternalError, text("set-up exchange gave ", all->size(),
                                                   " blobs for ", setup.ranks, " ranks"));
  Status first;
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    const Status said = unpack(rank, record.size(), &(*all)[rank]);
    const bool isCause = first.code() == Code::RemoteError && said.code() != Code::RemoteError;
    if (!said.ok() && (first.ok() || isCause)) first = said;
  }
  return first;
}

Status checkCards(const char* transport, const std::vector<Card>& cards, HostsOf hosts) {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    WEFT_TRY(checkPair(transport, cards[0], cards[i], hosts));
    if (cards[i].rank != i || cards[i].ranks != cards.size())
      return mismatch(transport, text(nameOf(cards[i]), " of ", cards[i].ranks,
                                      " answers in the place of rank ", i, " of ", cards.size()));
  }
  return {};
}

ControlPage* initControlPage(const Card& card, std::byte* base) {
  auto* page = new (base) ControlPage;
  page->rank = static_cast<std::int32_t>(card.rank);
  page->pid = card.pid;
  std::copy(card.token.begin(), card.token.end(), page->token);
  return page;
}

Status checkControlPage(const Card& card, const std::byte* base) {
  const auto& page = *reinterpret_cast<const ControlPage*>(base);
  if (page.magic == kSegmentMagic && page.version == kSegmentVersion &&
      page.rank == static_cast<std::int32_t>(card.rank) &&
      std::equal(card.token.begin(), card.token.end(), page.token))
    return {};
  return Status::error(Code::InternalError, text("the segment of ", nameOf(card),
                                                 " does not begin with its control"
                                                 " page (magic ",
                                                 page.magic, ", rank ", page.rank, ")"));
}

void chooseBarriers(const std::vector<Card>& cards, ControlPage& mine) {
  if (std::all_of(cards.begin(), cards.end(), [](const Card& card) { return card.barriers != 0; }))
    relieveRingers(mine);
}

}  // namespace weft
