// SPDX-License-Identifier: Apache-2.0
// Devices, memory and addresses: all that happens before the first byte.
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "fake.h"

// verbs.h renames some of its own functions.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_get_device_list

namespace fake {
namespace {

struct Ah {
  ibv_ah base = {};  // first
  ibv_gid gid = {};
};

struct Range {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

std::map<std::uint32_t, Range>& memory() {
  static std::map<std::uint32_t, Range> registrations;
  return registrations;
}

// An address handle's number is the index here.
std::vector<ibv_gid>& gids() {
  static std::vector<ibv_gid> table;
  return table;
}

bool equal(const ibv_gid& a, const ibv_gid& b) {
  return std::memcmp(a.raw, b.raw, sizeof(a.raw)) == 0;
}

std::uint32_t indexOf(const ibv_device* device) {
  return static_cast<std::uint32_t>(std::atoi(device->name + std::strlen("efa_")));
}

// The peer's process is in it, for reads of its memory.
ibv_gid gidOfDevice(const ibv_device* device) {
  ibv_gid gid = {};
  const auto pid = static_cast<std::uint32_t>(::getpid());
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  std::memcpy(gid.raw + 8, &pid, sizeof(pid));
  gid.raw[15] = static_cast<std::uint8_t>(indexOf(device));
  return gid;
}

int queryPort(ibv_context*, std::uint8_t, ibv_port_attr* port, std::size_t bytes) {
  ibv_port_attr full = {};
  full.state = IBV_PORT_ACTIVE;
  full.max_mtu = full.active_mtu = IBV_MTU_4096;
  full.gid_tbl_len = 1;
  full.max_msg_sz = kMtu;
  full.pkey_tbl_len = 1;
  full.active_width = 2;
  full.active_speed = 32;
  full.link_layer = IBV_LINK_LAYER_UNSPECIFIED;
  std::memcpy(port, &full, std::min(bytes, sizeof(full)));
  return 0;
}

}  // namespace

bool registered(const ibv_sge& piece) {
  const auto found = memory().find(piece.lkey);
  return found != memory().end() && piece.addr >= found->second.address &&
         piece.addr + piece.length <= found->second.address + found->second.bytes;
}

ibv_gid gidOf(const ibv_ah* ah) { return reinterpret_cast<const Ah*>(ah)->gid; }

int ahNumberOf(const ibv_gid& gid) {
  const auto found = std::find_if(gids().begin(), gids().end(),
                                  [&](const ibv_gid& known) { return equal(known, gid); });
  return found == gids().end() ? -1 : static_cast<int>(found - gids().begin());
}

// queue.cpp
int postSend(ibv_qp*, ibv_send_wr*, ibv_send_wr**);
int postReceive(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**);

}  // namespace fake

using namespace fake;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT ibv_device** ibv_get_device_list(int* count) {
  const std::size_t devices = knobs().devices;
  auto** list = static_cast<ibv_device**>(std::calloc(devices + 1, sizeof(ibv_device*)));
  const char* sysfs = std::getenv("SYSFS_PATH");
  for (std::size_t i = 0; i < devices; ++i) {
    auto* device = static_cast<ibv_device*>(std::calloc(1, sizeof(ibv_device)));
    device->node_type = IBV_NODE_UNSPECIFIED;
    device->transport_type = IBV_TRANSPORT_UNSPECIFIED;
    std::snprintf(device->name, sizeof(device->name), "efa_%zu", i);
    std::snprintf(device->dev_name, sizeof(device->dev_name), "uverbs%zu", i);
    std::snprintf(device->ibdev_path, sizeof(device->ibdev_path), "%s/class/infiniband/efa_%zu",
                  sysfs != nullptr ? sysfs : "/sys", i);
    list[i] = device;
  }
  if (count != nullptr) *count = static_cast<int>(devices);
  return list;
}

// The devices outlive the list: contexts point to them.
EXPORT void ibv_free_device_list(ibv_device** list) { std::free(list); }
EXPORT const char* ibv_get_device_name(ibv_device* device) { return device->name; }

EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // peers read our memory
  auto* made = new verbs_context{};
  made->sz = sizeof(verbs_context);
  made->query_port = queryPort;
  made->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  made->context.device = device;
  made->context.num_comp_vectors = 1;
  made->context.ops.post_send = postSend;
  made->context.ops.post_recv = postReceive;
  return &made->context;
}

EXPORT int ibv_close_device(ibv_context* context) {
  delete verbs_get_ctx(context);
  return 0;
}

EXPORT int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  std::snprintf(attributes->fw_ver, sizeof(attributes->fw_ver), "0.0.0.0");
  attributes->max_mr_size = std::uint64_t{1} << 40;
  attributes->page_size_cap = 4096;
  attributes->vendor_id = 0x1d0f;
  attributes->vendor_part_id = 0xefa0;
  attributes->max_qp = 256;
  attributes->max_qp_wr = kSendSlots;
  attributes->max_sge = 2;
  attributes->max_sge_rd = 1;
  attributes->max_cq = 512;
  attributes->max_cqe = 65536;
  attributes->max_mr = 65536;
  attributes->max_pd = 256;
  attributes->max_ah = 65536;
  attributes->phys_port_cnt = 1;
  return 0;
}

EXPORT int efadv_query_device(ibv_context*, efadv_device_attr* attributes, std::uint32_t bytes) {
  efadv_device_attr full = {};
  full.max_sq_wr = kSendSlots;
  full.max_rq_wr = kReceiveSlots;
  full.max_sq_sge = 2;
  full.max_rq_sge = 1;
  full.inline_buf_size = 32;
  full.device_caps = EFADV_DEVICE_ATTR_CAPS_RNR_RETRY;
  if (knobs().reads) full.device_caps |= EFADV_DEVICE_ATTR_CAPS_RDMA_READ;
  full.max_rdma_size = knobs().reads ? 1u << 30 : 0;
  std::memcpy(attributes, &full, std::min<std::size_t>(bytes, sizeof(full)));
  return 0;
}

EXPORT int ibv_query_gid(ibv_context* context, std::uint8_t, int, ibv_gid* gid) {
  *gid = gidOfDevice(context->device);
  return 0;
}

EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* domain = new ibv_pd{};
  domain->context = context;
  return domain;
}
EXPORT int ibv_dealloc_pd(ibv_pd* domain) {
  delete domain;
  return 0;
}

EXPORT int ibv_fork_init() { return 0; }
EXPORT ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

EXPORT ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t bytes, int) {
  static std::uint32_t lastKey = 0x100;
  const std::lock_guard guard(lock());
  std::uint64_t total = bytes;
  for (const auto& [key, range] : memory()) total += range.bytes;
  if (knobs().memoryKb != 0 && total > knobs().memoryKb * 1024) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* made = new ibv_mr{};
  made->context = domain->context;
  made->pd = domain;
  made->addr = address;
  made->length = bytes;
  made->lkey = made->rkey = ++lastKey;
  memory()[lastKey] = {reinterpret_cast<std::uintptr_t>(address), bytes};
  return made;
}
EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t bytes, std::uint64_t,
                                unsigned access) {
  return ibv_reg_mr(domain, address, bytes, static_cast<int>(access));
}
EXPORT int ibv_dereg_mr(ibv_mr* registration) {
  const std::lock_guard guard(lock());
  memory().erase(registration->lkey);
  delete registration;
  return 0;
}

EXPORT ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* attributes) {
  const std::lock_guard guard(lock());
  auto* made = new Ah;
  made->base.context = domain->context;
  made->base.pd = domain;
  made->gid = attributes->grh.dgid;
  if (ahNumberOf(made->gid) < 0) gids().push_back(made->gid);
  return &made->base;
}
EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  delete reinterpret_cast<Ah*>(ah);
  return 0;
}
EXPORT int efadv_query_ah(ibv_ah* ah, efadv_ah_attr* attributes, std::uint32_t) {
  const std::lock_guard guard(lock());
  attributes->comp_mask = 0;
  attributes->ahn = static_cast<std::uint16_t>(ahNumberOf(gidOf(ah)));
  return 0;
}
