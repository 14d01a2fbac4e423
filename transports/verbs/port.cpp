// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/port.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "transports/setup.h"

namespace weft::verbs {
namespace {

constexpr std::size_t kMaxGids = 1024;
constexpr std::uint8_t kHops = 64;

Status failed(const std::string& what, int error) {
  return Status::error(Code::SystemError, "verbs: ", what, ": ", std::strerror(error));
}

// The address in the form of a GID; its mask if `mask`. False: of no family that has GIDs.
bool asGid(const sockaddr* address, bool mask, Gid* out) {
  *out = {};
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) {
    std::fill_n(out->begin() + (mask ? 0 : 10), mask ? 12 : 2, std::uint8_t{0xff});
    std::memcpy(out->data() + 12, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
    return true;
  }
  if (address->sa_family != AF_INET6) return false;
  std::memcpy(out->data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  return true;
}

std::uint32_t ones(const Gid& mask) {
  std::uint32_t bits = 0;
  for (const std::uint8_t byte : mask) bits += static_cast<std::uint32_t>(std::popcount(byte));
  return bits;
}

// How long the prefix of that address is on its interface; 0 if it is not there.
std::uint32_t prefixOf(const Gid& gid, const char* interface) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return 0;
  std::uint32_t bits = 0;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    Gid address, mask;
    if (std::strcmp(one->ifa_name, interface) == 0 && asGid(one->ifa_addr, false, &address) &&
        address == gid && asGid(one->ifa_netmask, true, &mask))
      bits = ones(mask);
  }
  ::freeifaddrs(all);
  return bits;
}

void chooseGids(const std::vector<ibv_gid_entry>& gids, const GidRule& rule, Port* port) {
  int best = 0;
  for (const ibv_gid_entry& entry : gids) {
    if (entry.port_num != port->number || entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
    Gid gid;
    std::memcpy(gid.data(), entry.gid.raw, gid.size());
    const int score = rule.score(gid);
    if (score == 0) continue;
    if (kindOf(gid) == GidKind::LinkLocal) {
      port->info.linkLocal = gid;
      port->linkLocalIndex = static_cast<std::uint8_t>(entry.gid_index);
      port->interface = entry.ndev_ifindex;
    }
    if (score <= best) continue;
    best = score;
    port->info.gid = gid;
    port->gidIndex = static_cast<std::uint8_t>(entry.gid_index);
    port->interface = entry.ndev_ifindex;
  }
}

Status describePort(const std::vector<ibv_gid_entry>& gids, const GidRule& rule, Port* port) {
  ibv_port_attr attributes{};
  WEFT_TRY(port->device->queryPort(port->number, &attributes));
  PortInfo& info = port->info;
  transport::copyText(info.device, port->device->name());
  info.port = port->number;
  info.mtu = 128u << attributes.active_mtu;
  port->maxMessage = attributes.max_msg_sz;
  chooseGids(gids, rule, port);
  char interface[IF_NAMESIZE] = {};
  info.onNetwork = ::if_indextoname(port->interface, interface) != nullptr;
  if (info.onNetwork) info.prefixBits = prefixOf(info.gid, interface);
  if (attributes.state != IBV_PORT_ACTIVE)
    info.state = PortState::Down;
  else if (attributes.link_layer != IBV_LINK_LAYER_ETHERNET)
    info.state = PortState::NotEthernet;
  else if (info.gid == Gid{})
    info.state = PortState::NoGid;
  return {};
}

Status openDevice(const Library& verbs, ibv_device* listed, const DeviceFilter& filter,
                  const GidRule& rule, std::vector<Port>* out) {
  const std::string name = verbs.get_device_name(listed);
  ibv_context* const context = verbs.open_device(listed);
  if (context == nullptr)
    return failed(
        text("cannot open ", name, " (may this process write to /dev/infiniband/uverbs*?)"), errno);
  const auto device = std::make_shared<Device>(verbs, context);
  WEFT_TRY(device->query());
  const std::vector<ibv_gid_entry> gids = device->gids();
  for (std::uint32_t number = 1; number <= device->limits().phys_port_cnt; ++number) {
    if (!filter.allows(name, number)) continue;
    Port port;
    port.device = device;
    port.number = static_cast<std::uint8_t>(number);
    WEFT_TRY(describePort(gids, rule, &port));
    out->push_back(std::move(port));
  }
  return {};
}

Status openListed(const Library& verbs, ibv_device** list, const DeviceFilter& filter,
                  const GidRule& rule, std::vector<Port>* out) {
  std::string seen;
  for (; *list != nullptr; ++list) {
    const std::string name = verbs.get_device_name(*list);
    seen += text(seen.empty() ? "" : ", ", name);
    if (filter.allows(name, 0)) WEFT_TRY(openDevice(verbs, *list, filter, rule, out));
  }
  if (!out->empty()) return {};
  return Status::error(
      Code::InvalidUsage,
      seen.empty() ? text("verbs: this host has no RDMA device; fix: another WEFT_TRANSPORT")
                   : text("verbs: WEFT_NET_DEVICES allows none of the devices here (", seen, ")"));
}

}  // namespace

std::string PortInfo::name() const { return text(device, ':', port); }

ibv_ah_attr Port::pathTo(const Gid& far, bool linkLocal) const {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = number;
  path.grh.sgid_index = linkLocal ? linkLocalIndex : gidIndex;
  path.grh.hop_limit = kHops;
  std::memcpy(path.grh.dgid.raw, far.data(), far.size());
  return path;
}

Device::Device(const Library& verbs, ibv_context* context) : verbs_(verbs), context_(context) {
  // Events are read between polls, which must not block.
  ::fcntl(context->async_fd, F_SETFL, ::fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
}

Status Device::query() {
  const int error = verbs_.query_device(context_, &limits_);
  return error == 0 ? Status() : failed(text("cannot query ", name()), error);
}

Status Device::queryPort(std::uint32_t port, ibv_port_attr* attributes) const {
  const verbs_context* const extended = verbs_get_ctx(context_);
  const bool known = extended != nullptr &&
                     extended->sz >= sizeof(verbs_context) - offsetof(verbs_context, query_port) &&
                     extended->query_port != nullptr;
  const int error = known ? extended->query_port(context_, static_cast<std::uint8_t>(port),
                                                 attributes, sizeof(*attributes))
                          : ENOSYS;
  return error == 0 ? Status() : failed(text("cannot query ", name(), ':', port), error);
}

std::vector<ibv_gid_entry> Device::gids() const {
  std::vector<ibv_gid_entry> entries(kMaxGids);
  const ssize_t count =
      verbs_.query_gid_table(context_, entries.data(), entries.size(), 0, sizeof(ibv_gid_entry));
  entries.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return entries;
}

Status openPorts(const Library& verbs, const DeviceFilter& filter, const GidRule& rule,
                 std::vector<Port>* out) {
  out->clear();
  int count = 0;
  ibv_device** const list = verbs.get_device_list(&count);
  if (list == nullptr)
    return Status::error(
        Code::SystemError, "verbs: cannot list the RDMA devices: ", std::strerror(errno),
        "; fix: load the kernel's modules for them (modprobe ib_uverbs), or use another "
        "transport than verbs");
  const Status status = openListed(verbs, list, filter, rule, out);
  verbs.free_device_list(list);
  if (!status.ok()) return status;
  std::sort(out->begin(), out->end(), [](const Port& a, const Port& b) {
    const int order = std::strcmp(a.info.device, b.info.device);
    return order != 0 ? order < 0 : a.number < b.number;
  });
  return {};
}

}  // namespace weft::verbs
