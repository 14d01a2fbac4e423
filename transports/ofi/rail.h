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
#include "transports/ofi/message.h"
#include "transports/wire/wire.h"

// One NIC (or interface) in use: libfabric's objects, registered memory, slots of operations.
namespace weft::ofi {

struct Close {
  template <class Object>
  void operator()(Object* object) const {
    if (object != nullptr) fi_close(&object->fid);
  }
};
template <class Object>
using Owned = std::unique_ptr<Object, Close>;

inline void* descriptorOf(const Owned<fid_mr>& mr) { return mr ? fi_mr_desc(mr.get()) : nullptr; }

struct FreePages {
  void operator()(std::byte* pages) const;
};

// One operation in progress; the provider knows it by the address of `context`.
struct Slot {
  // Failed: not used again, since efa reports each packet of an operation that fails. Its peer, now
  // out of reach, needs it no more.
  enum Kind : std::uint32_t { Write, Receive, Failed };
  fi_context2 context;
  Kind kind;
  std::uint32_t peer;
  std::uint64_t cookie;
  Header header;
  std::byte* buffer;  // of a Receive
};
static_assert(std::is_standard_layout_v<Slot> && offsetof(Slot, context) == 0);

// Memory that peers write into: as WireRegion, and a page of our own, the source and target of
// writes of 0 bytes, whose addresses and keys some providers check all the same.
enum Region : std::size_t { kWindow, kBounce, kNowhere, kRegions };

// What a peer needs to write into a region, and what proves that it may.
struct Place {
  std::uint64_t key = 0;
  std::uint64_t base = 0;  // what its offset 0 is called in a write
};

// How to reach a rail of a peer, and what proves that somebody may: keys and secret cannot be
// guessed, where the provider lets us choose keys. Plain bytes, of one size on all ranks.
struct Contact {
  std::uint32_t addressBytes = 0;
  std::uint32_t spare = 0;
  std::byte address[96] = {};
  Place place[kRegions] = {};
  std::uint64_t secret = 0;  // of messages
};

// A communicator's memory, known to the provider.
class Memory {
 public:
  const Regions& regions() const { return regions_; }
  const Place& place(std::size_t region) const { return places_[region]; }
  void* descriptor(const std::byte* memory, std::size_t bytes) const;  // null: not registered

 private:
  friend class Rail;
  Regions regions_;
  std::array<Owned<fid_mr>, kWireRegions + 1> keys_;
  std::array<Place, kWireRegions> places_;
};

inline constexpr std::size_t kMostReceives = 32;  // that wait for messages

struct RailSpec {
  Regions regions;
  std::size_t completions = 0;  // that may wait to be read
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
  // Is readable as soon as there may be something in the queue, if mayWait() was true; -1: the
  // provider has none.
  int queueDescriptor() const { return descriptor_; }
  bool mayWait() const;
  // That of whoever has opened it, and of others. `open`: peers write into it.
  const Memory& memory() const { return memory_; }
  Status add(const Regions& regions, bool open, Memory* out);
  void* slotDescriptor() const { return descriptorOf(slab_); }
  std::span<std::byte> nowhere() const { return {nowherePage_.get(), 64}; }
  void* nowhereDescriptor() const { return descriptorOf(nowhereKey_); }
  bool wantsRegistered() const { return (info().domain_attr->mr_mode & FI_MR_LOCAL) != 0; }
  // Remote writes by the NIC itself, or as good as that; false: out of messages, by the provider.
  bool writesNatively() const;
  std::size_t dataBytes() const { return info().domain_attr->cq_data_size; }
  std::size_t maxWrite() const;
  // Longest payload of a message.
  std::size_t maxMessage() const;

  // An error of the endpoint as a whole, not of what one peer did not take; empty: none.
  std::string mishap();
  // Peers send messages and nothing else: their keys are void from now on.
  Status refuseWrites();
  // What has come, and what comes within the next `ms` milliseconds, is read and forgotten.
  void settle(int ms);
  // Operations end here, so that nothing reads the memory any more that is about to go.
  void closeEndpoint();
  // Makes the slots of that many writes and receives, and posts the receives.
  Status prepare(std::size_t writes, std::size_t receives, std::size_t bufferBytes);
  // A free slot for a write, or null.
  Slot* take();
  void giveBack(Slot* slot) { free_.push_back(slot); }
  // Slot `Receive`: hands its buffer to the provider, now or in a later repost().
  void post(Slot*);
  void repost();

  std::string failure(const char* what, std::int64_t result) const;

 private:
  Rail(const Library& library, const Candidate& candidate)
      : library_(&library), candidate_(candidate) {}
  template <class Object, class Open>
  Status make(const char* what, Owned<Object>* out, const Open& open) const;
  Status openObjects(const RailSpec&);
  Status openQueue(std::size_t completions);
  Status openEndpoint();
  Status registerRegions(const RailSpec&);
  Status registerMemory(std::span<std::byte>, bool open, Owned<fid_mr>*);
  Status registerOpen(std::span<std::byte>, Owned<fid_mr>*, Place*);
  Status readAddress();
  std::size_t bufferOfRxm() const;
  Status check(const char* what, std::int64_t result) const;
  ssize_t tryPost(Slot*);

  const Library* library_;
  Candidate candidate_;
  std::unique_ptr<std::byte, FreePages> slabPages_;
  std::unique_ptr<std::byte, FreePages> nowherePage_;
  std::size_t bufferBytes_ = 0;
  int descriptor_ = -1;
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
  Owned<fid_mr> nowhereKey_;
  Memory memory_;
};

}  // namespace weft::ofi
