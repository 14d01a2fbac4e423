// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/candidates.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/environment.h"
#include "base/text.h"

namespace weft::ofi {
namespace {

using InfoPtr = std::shared_ptr<fi_info>;

constexpr const char* kTwice = "listed twice";
constexpr std::uint32_t kApi = FI_VERSION(1, 17);

InfoPtr makeHints(const Library& library, const std::string& provider) {
  InfoPtr hints(library.dupinfo(nullptr), library.freeinfo);
  if (!hints) return hints;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  return hints;
}

InfoPtr ask(const Library& library, const fi_info* hints, int* result) {
  const WritingEnvironment writing;  // the first call starts all providers
  fi_info* list = nullptr;
  *result = library.getinfo(std::min(kApi, library.version()), nullptr, nullptr, 0, hints, &list);
  return {list, library.freeinfo};
}

// Where the data of a write has no room for the sender, the provider must name it (FI_SOURCE). Not
// elsewhere: ofi_rxm looks the sender up in its connection, even after that is gone.
InfoPtr query(const Library& library, const std::string& provider, std::string* why) {
  const InfoPtr hints = makeHints(library, provider);
  if (!hints) return nullptr;
  int result = 0;
  InfoPtr list = ask(library, hints.get(), &result);
  if (result != 0) *why += text(" ", provider, ": ", library.strerror(-result), ";");
  if (!list || list->domain_attr->cq_data_size >= 8) return list;
  hints->caps |= FI_SOURCE;
  const InfoPtr telling = ask(library, hints.get(), &result);
  return telling ? telling : list;
}

// "0000:00:06.0"; empty if it is on no PCI bus.
std::string busIdOf(const fi_info& info) {
  if (info.nic == nullptr || info.nic->bus_attr == nullptr ||
      info.nic->bus_attr->bus_type != FI_BUS_PCI)
    return {};
  const fi_pci_attr& pci = info.nic->bus_attr->attr.pci;
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%04x:%02x:%02x.%x", pci.domain_id, pci.bus_id,
                pci.device_id, pci.function_id);
  return name.data();
}

// What the kernel knows, if nothing better is known.
int numaDistanceOf(const std::string& busId) {
  int node = -1;
  unsigned cpu = 0;
  unsigned here = 0;
  std::ifstream(text("/sys/bus/pci/devices/", busId, "/numa_node")) >> node;
  return node >= 0 && ::getcpu(&cpu, &here) == 0 && static_cast<unsigned>(node) != here ? 1 : 0;
}

int distanceTo(const std::string& busId, const Distance& distanceOf) {
  if (busId.empty()) return 0;
  const int known = distanceOf ? distanceOf(busId) : -1;
  return known >= 0 ? known : numaDistanceOf(busId);
}

bool isIp(const fi_info& info) {
  return info.src_addr != nullptr &&
         (info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6 ||
          info.addr_format == FI_SOCKADDR);
}

bool isLoopback(const void* address) {
  const auto* v4 = static_cast<const sockaddr_in*>(address);
  const auto* v6 = static_cast<const sockaddr_in6*>(address);
  return v4->sin_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                                   : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

// fe80::/10 needs a zone, which a peer cannot know.
bool isLinkLocal(const void* address) {
  const auto* v6 = static_cast<const sockaddr_in6*>(address);
  return v6->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

Candidate describe(const Library& library, const fi_info& entry, const Distance& distanceOf) {
  Candidate made;
  made.info = InfoPtr(library.dupinfo(&entry), library.freeinfo);
  const bool nic = entry.nic != nullptr && entry.nic->device_attr != nullptr &&
                   entry.nic->device_attr->name != nullptr;
  made.device = nic ? entry.nic->device_attr->name : entry.domain_attr->name;
  made.subnet = entry.fabric_attr->name;
  made.ip = isIp(entry);
  made.loopback = made.ip && isLoopback(entry.src_addr);
  if (made.ip) made.address = ipText(entry.src_addr, entry.src_addrlen);
  made.distance = distanceTo(busIdOf(entry), distanceOf);
  return made;
}

// Why this entry is of no use; empty if it is.
std::string objection(const fi_info& entry, const Candidate& made, const DeviceFilter& filter,
                      const std::vector<Candidate>& have) {
  const auto same = [&](const Candidate& other) {
    return other.device == made.device && other.subnet == made.subnet;
  };
  if (std::ranges::any_of(have, same)) return kTwice;
  if (!filter.allows(made.device)) return "not allowed by WEFT_NET_DEVICES";
  if (made.subnet == "efa-direct") return "no tags and no software segmentation";
  if (made.ip && isLinkLocal(entry.src_addr)) return "link-local address";
  return {};
}

}  // namespace

std::string ipText(const void* address, std::size_t bytes) {
  std::array<char, INET6_ADDRSTRLEN> name{};
  const auto* v4 = static_cast<const sockaddr_in*>(address);
  const auto* v6 = static_cast<const sockaddr_in6*>(address);
  if (bytes >= sizeof(*v4) && v4->sin_family == AF_INET &&
      ::inet_ntop(AF_INET, &v4->sin_addr, name.data(), name.size()) != nullptr)
    return text(name.data(), ":", ntohs(v4->sin_port));
  if (bytes >= sizeof(*v6) && v6->sin6_family == AF_INET6 &&
      ::inet_ntop(AF_INET6, &v6->sin6_addr, name.data(), name.size()) != nullptr)
    return text("[", name.data(), "]:", ntohs(v6->sin6_port));
  return {};
}

std::vector<Candidate> listCandidates(const Library& library, const std::string& provider,
                                      const DeviceFilter& filter, const Distance& distanceOf,
                                      std::string* why) {
  std::vector<Candidate> found;
  const InfoPtr list = query(library, provider, why);
  for (const fi_info* entry = list.get(); entry != nullptr; entry = entry->next) {
    Candidate made = describe(library, *entry, distanceOf);
    const std::string no = objection(*entry, made, filter, found);
    const std::string line = text(" ", made.device, " ", made.address, ": ", no, ";");
    if (no.empty())
      found.push_back(std::move(made));
    else if (no != kTwice && why->find(line) == std::string::npos)
      *why += line;
  }
  std::ranges::stable_sort(found, [](const Candidate& a, const Candidate& b) {
    const auto key = [](const Candidate& c) {
      return std::pair(c.distance, c.info->addr_format == FI_SOCKADDR_IN6);
    };
    return key(a) < key(b);
  });
  return found;
}

}  // namespace weft::ofi
