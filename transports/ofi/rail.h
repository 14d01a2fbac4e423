// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "transports/ofi/candidates.h"
#include "transports/ofi/library.h"

// One NIC (or interface) in use: the objects of libfabric, the registered memory, the slots of
// operations.
namespace weft::ofi {

struct Close {
  template <class Object>
  void operator()(Object* object) const {
    if (object != nullptr) fi_close(&object->fid);
  }
};
template <class Object>
using Owned = std::unique_ptr<Object, Close>;

struct FreePages {
  void operator()(std::byte* pages) const;
};

// In front of each payload that travels as a message.
struct Header {
  std::uint32_t magic = 0;
  std::uint32_t rank = 0;
  std::uint64_t target = 0;
  std::uint32_t bytes = 0;
  std::uint32_t notice = 0;
  std::uint32_t region = 0;
  std::uint32_t spare = 0;
};

// One operation that the provider has in hand. It knows it by the address of `context`.
struct Slot {
  // Failed: not used again, since efa reports each packet of an operation that fails. It is one of
  // those that only this peer, now out of reach, would have needed.
  enum Kind : std::uint32_t { Write, Hello, Receive, Failed };
  fi_context2 context;
  Kind kind;
  std::uint32_t peer;
  std::uint64_t cookie;
  Header header;
  std::byte* landing;  // of a Receive
};
static_assert(std::is_standard_layout_v<Slot> && offsetof(Slot, context) == 0);

// Memory that peers write into: as WireRegion, and a page of our own, the source and target of
// writes of 0 bytes, whose addresses and keys some providers check all the same.
enum Window : std::size_t { kSegment, kMailbox, kNowhere, kWindows };

// How to reach a rail of a peer. Plain bytes, of one size on all ranks.
struct Contact {
  std::uint32_t addressBytes = 0;
  std::uint32_t spare = 0;
  std::byte address[96] = {};
  std::uint64_t key[kWindows] = {};
  std::uint64_t base[kWindows] = {};  // what its offset 0 is called in a write
};

struct RailSpec {
  std::array<std::span<std::byte>, 2> windows;  // segment, mailbox
  std::size_t completions = 0;                  // that may wait to be read
};

class Rail {
 public:
  static Status open(const Library&, const Candidate&, const RailSpec&, std::unique_ptr<Rail>* out);
  ~Rail();

  const fi_info& info() const { return *candidate_.info; }
  const std::string& device() const { return candidate_.device; }
  std::string provider() const { return info().fabric_attr->prov_name; }
  const Contact& contact() const { return contact_; }
  std::string where(const Contact&) const;  // its address, for people
  // Names the peer under which the provider knows it from now on.
  Status insert(const Contact&, fi_addr_t*);

  fid_ep* endpoint() const { return endpoint_.get(); }
  fid_cq* queue() const { return queue_.get(); }
  void* descriptor(const std::byte* memory, std::size_t bytes) const;  // null: not registered
  void* slotDescriptor() const { return descriptorOf(slab_); }
  std::span<std::byte> nowhere() const { return {nowherePage_.get(), 64}; }
  void* nowhereDescriptor() const { return descriptorOf(windowKeys_[kNowhere]); }
  bool wantsRegistered() const { return (info().domain_attr->mr_mode & FI_MR_LOCAL) != 0; }
  // Remote writes by the NIC itself, or as good as that; false: out of messages, by the provider.
  bool writesNatively() const;
  std::size_t dataBytes() const { return info().domain_attr->cq_data_size; }
  std::size_t maxWrite() const;
  // Longest payload of a message.
  std::size_t maxMessage() const;

  // What has befallen the endpoint as a whole; empty: nothing.
  std::string mishap();
  // Makes the slots of that many writes and receives, and posts the receives.
  Status prepare(std::size_t writes, std::size_t receives, std::size_t landingBytes);
  // A free slot for a write, or null.
  Slot* take();
  void giveBack(Slot* slot) { free_.push_back(slot); }
  // Slot `Receive`: hands its landing to the provider, now or in a later repost().
  void post(Slot*);
  void repost();

  std::string failure(const char* what, std::int64_t result) const;
  void abandon();  // in a child of fork: what closing does would reach the parent's connections

 private:
  Rail(const Library& library, const Candidate& candidate)
      : library_(&library), candidate_(candidate) {}
  Status openObjects(const RailSpec&);
  Status openEndpoint();
  Status registerWindows(const RailSpec&);
  Status registerMemory(std::span<std::byte>, bool remote, Owned<fid_mr>*);
  Status readAddress();
  Status check(const char* what, std::int64_t result) const;
  static void* descriptorOf(const Owned<fid_mr>& mr) { return mr ? fi_mr_desc(mr.get()) : nullptr; }
  ssize_t tryPost(Slot*);

  const Library* library_;
  Candidate candidate_;
  std::uint64_t nextKey_ = 1;
  std::array<std::span<std::byte>, kWindows> windows_;
  std::unique_ptr<std::byte, FreePages> slabPages_;
  std::unique_ptr<std::byte, FreePages> nowherePage_;
  std::size_t landingBytes_ = 0;
  std::vector<Slot*> free_;
  std::vector<Slot*> waiting_;  // Receives that the provider had no room for
  Contact contact_;
  // Closed from below; but see the destructor.
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> peers_;
  Owned<fid_cq> queue_;
  Owned<fid_eq> events_;
  Owned<fid_ep> endpoint_;
  Owned<fid_mr> slab_;
  std::array<Owned<fid_mr>, kWindows> windowKeys_;
};

}  // namespace weft::ofi
