// SPDX-License-Identifier: Apache-2.0
#include "transports/setup.h"

#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/folder.h"
#include "base/log.h"
#include "base/no_fork.h"
#include "base/text.h"
#include "transports/doorbell.h"

namespace weft::transport {
namespace {

std::string describeLayout(const WindowLayout& has) {
  return text(has.ranks, " ranks, ", has.dense, " of ", has.arrivalSlots, "+", has.pairArrivalSlots,
              " tags, ", has.arenaBytes, "+", has.pairBytes, " bytes");
}

template <class... Parts>
Status mismatch(const char* transport, const Parts&... why) {
  return Status::error(Code::Mismatch, transport, " transport: ", why...);
}

}  // namespace

PeerName nameOf(const PeerInfo& info) {
  return {static_cast<int>(info.rank), fieldText(info.host), info.pid};
}

PeerInfo describe(const TransportSetup& setup) {
  PeerInfo info;
  info.rank = setup.rank;
  info.ranks = setup.ranks;
  info.pid = ::getpid();
  info.uid = ::geteuid();
  info.barriers = hasHeavyFences();
  info.allowDirect = setup.allowDirect;
  info.netNamespace = netNamespace();
  info.layout = setup.layout;
  copyText(info.bootId, bootId());
  copyText(info.host, hostName());
  return info;
}

Status randomToken(Token* token) {
  std::size_t have = 0;
  while (have < token->size()) {
    const ssize_t got = ::getrandom(token->data() + have, token->size() - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::error(Code::SystemError, "getrandom: ", std::strerror(errno));
    have += static_cast<std::size_t>(got);
  }
  return {};
}

Status checkPeers(const char* transport, const std::vector<PeerInfo>& infos, HostsOf hosts) {
  const PeerInfo& first = infos[0];
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const PeerInfo& info = infos[i];
    if (info.magic != kWindowMagic || info.version != kWindowVersion)
      return mismatch(transport, nameOf(info), " runs another version of weft (window version ",
                      info.version, ", here ", kWindowVersion,
                      "); fix: the same libweft on all ranks");
    // Without /proc it is unknown; then the peer will not be found, which is said less well.
    const bool known = first.bootId[0] != '\0' && info.bootId[0] != '\0';
    if (hosts == HostsOf::One && known &&
        std::memcmp(first.bootId, info.bootId, sizeof(info.bootId)) != 0)
      return mismatch(transport, nameOf(first), " and ", nameOf(info),
                      " are on different hosts; this transport joins ranks of one host only");
    if (first.layout != info.layout)
      return mismatch(transport, "windows differ: ", nameOf(first), " has ",
                      describeLayout(first.layout), ", ", nameOf(info), " has ",
                      describeLayout(info.layout), "; fix: the same WEFT_* on all ranks");
    if (info.rank != i || info.ranks != infos.size())
      return mismatch(transport, nameOf(info), " of ", info.ranks, " answers in the place of rank ",
                      i, " of ", infos.size());
  }
  return {};
}

void initControlPage(const PeerInfo& info, void* at) {
  auto* page = new (at) ControlPage;
  page->rank = static_cast<std::int32_t>(info.rank);
  page->pid = info.pid;
  std::ranges::copy(info.token, page->token);
}

Status checkControlPage(const PeerInfo& info, const std::byte* base) {
  const auto& page = *reinterpret_cast<const ControlPage*>(base);
  // Not by its rank, which its owner may be writing: on a routed transport that of all hosts' ranks.
  if (page.magic == kWindowMagic && page.version == kWindowVersion &&
      std::ranges::equal(info.token, page.token))
    return {};
  return Status::error(Code::InternalError, "the window of ", nameOf(info),
                       " does not begin with its control page (magic ", page.magic, ", version ",
                       page.version, ")");
}

Status mapPrivate(const TransportSetup& setup, const char* what, std::size_t bytes,
                  std::shared_ptr<Mapping>* out) {
  *out = std::make_shared<Mapping>(bytes, -1);
  if ((*out)->base() != nullptr) {
    preferNode((*out)->base(), bytes, setup.node);
    return {};
  }
  return Status::error(Code::OutOfMemory, "cannot map ", bytes, " bytes for the ", what,
                       " of rank ", setup.rank, ": ", std::strerror(errno),
                       "; fix: fewer ranks, a smaller WEFT_SEGMENT_KB or more memory");
}

Status makeWindow(const TransportSetup& setup, PeerInfo* info, std::shared_ptr<Mapping>* out) {
  WEFT_TRY(randomToken(&info->token));
  WEFT_TRY(mapPrivate(setup, "window", setup.layout.size(), out));
  initControlPage(*info, (*out)->base());
  return {};
}

bool allAllowDirect(const std::vector<PeerInfo>& infos) {
  return std::ranges::all_of(infos, [](const PeerInfo& info) { return info.allowDirect != 0; });
}

void chooseBarriers(const std::vector<PeerInfo>& infos, ControlPage* own) {
  if (std::ranges::all_of(infos, [](const PeerInfo& info) { return info.barriers != 0; }))
    relieveRingers(*own);
}

std::string bootId() {
  struct BootId {
    std::string text = firstLine("/proc/sys/kernel/random/boot_id");
  };
  return processWide<BootId>().text;
}

std::uint64_t netNamespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/net", &info) == 0 ? info.st_ino : 0;
}

std::string lockableMemory() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : text(limit.rlim_cur, " bytes");
}

}  // namespace weft::transport
