// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/rail.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/deadline.h"
#include "base/log.h"
#include "base/mark.h"
#include "base/text.h"
#include "transports/setup.h"

namespace weft::ofi {
namespace {

constexpr std::size_t kLongest = std::size_t{1} << 30;

// Options of later libfabrics than the headers may be; a library without them says so.
constexpr int kSharedMemoryPermitted = 11;  // FI_OPT_SHARED_MEMORY_PERMITTED
constexpr int kMaxRmaSize = 14;             // FI_OPT_MAX_RMA_SIZE
constexpr int kEfaEmulatedWrite = -(0xefa << 16) + 2;

std::byte* makePages(std::size_t bytes) {
  const std::size_t whole = roundUp(bytes, kPage);
  auto* pages = static_cast<std::byte*>(std::aligned_alloc(kPage, whole));
  if (pages != nullptr) std::memset(pages, 0, whole);
  return pages;
}

// So asked, ofi_rxm looks at its connections by poll(2) in place of epoll(7), 1.5 us less for a short
// message, and then the descriptor that it gives does not tell of them (libfabric 1.17).
bool connectionsAreHidden() {
  for (const char* name : {"FI_OFI_RXM_DEF_TCP_WAIT_OBJ", "FI_OFI_RXM_DEF_WAIT_OBJ"}) {
    const char* const asked = std::getenv(name);
    if (asked != nullptr && std::string_view(asked) == "pollfd") return true;
  }
  return false;
}

// Of a packet of its own that one peer did not take the efa provider tells as if the endpoint had failed, and not
// whose it was; what is sent to that peer fails by itself. The device's REMOTE_ERROR_BAD_ADDRESS to
// LOCAL_ERROR_UNRESP_REMOTE (rdma-core, providers/efa/efa_io_defs.h).
bool isOfAPeer(int status) { return status >= 7 && status <= 13; }

Status randomNumber(std::size_t bytes, std::uint64_t* number) {
  Token token;
  WEFT_TRY(randomToken(&token));
  *number = 0;
  std::memcpy(number, token.data(), std::min(bytes, sizeof(*number)));
  return {};
}

}  // namespace

void FreePages::operator()(std::byte* pages) const { std::free(pages); }

Status Rail::open(const Library& library, const Candidate& candidate, const RailSpec& spec,
                  std::unique_ptr<Rail>* out) {
  std::unique_ptr<Rail> rail(new Rail(library, candidate));
  WEFT_TRY(rail->openObjects(spec));
  WEFT_TRY(rail->openEndpoint());
  WEFT_TRY(rail->registerRegions(spec));
  WEFT_TRY(rail->readAddress());
  *out = std::move(rail);
  return {};
}

Rail::~Rail() { closeEndpoint(); }

void Rail::settle(int ms) {
  if (descriptor_ < 0) return;
  pollfd something{descriptor_, POLLIN, 0};
  const Deadline enough = Deadline::in(100);
  while (!(mayWait() && ::poll(&something, 1, ms) == 0) && !enough.expired()) {
    fi_cq_data_entry entry{};
    fi_cq_err_entry error{};
    if (fi_cq_read(queue_.get(), &entry, 1) == -FI_EAVAIL) fi_cq_readerr(queue_.get(), &error, 0);
  }
}

// Closing an endpoint may complete operations, which needs their memory: so it goes first, unless
// registrations are bound to endpoints.
void Rail::closeEndpoint() {
  if ((info().domain_attr->mr_mode & FI_MR_ENDPOINT) == 0) endpoint_.reset();
}

std::string Rail::failure(const char* what, std::int64_t result) const {
  return text("ofi: ", what, " on ", device(), " (", provider(),
              "): ", reason(*library_, provider(), result));
}

Status Rail::check(const char* what, std::int64_t result) const {
  return result >= 0 ? Status() : Status::error(Code::SystemError, failure(what, result));
}

template <class Object, class Open>
Status Rail::make(const char* what, Owned<Object>* out, const Open& open) const {
  Object* made = nullptr;
  const int result = open(&made);
  out->reset(made);
  return check(what, result);
}

Status Rail::openObjects(const RailSpec& spec) {
  WEFT_TRY(make("fi_fabric", &fabric_,
                [&](auto** made) { return library_->fabric(info().fabric_attr, made, nullptr); }));
  WEFT_TRY(make("fi_domain", &domain_, [&](auto** made) {
    return fi_domain(fabric_.get(), candidate_.info.get(), made, nullptr);
  }));
  fi_av_attr book{};
  book.type = FI_AV_UNSPEC;
  WEFT_TRY(make("fi_av_open", &peers_,
                [&](auto** made) { return fi_av_open(domain_.get(), &book, made, nullptr); }));
  WEFT_TRY(openQueue(spec.completions));
  // Without one, efa aborts the process where an error belongs to no operation.
  fi_eq_attr events{};
  events.wait_obj = FI_WAIT_NONE;
  return make("fi_eq_open", &events_,
              [&](auto** made) { return fi_eq_open(fabric_.get(), &events, made, nullptr); });
}

// One that can be slept on, if the provider has such. efa opens one (1.17), whose descriptor only its
// own progress writes to: nothing that arrives wakes who sleeps on it.
Status Rail::openQueue(std::size_t completions) {
  fi_cq_attr attributes{};
  attributes.size = completions;
  attributes.format = FI_CQ_FORMAT_DATA;
  const auto open = [&](fi_wait_obj wait) {
    attributes.wait_obj = wait;
    return make("fi_cq_open", &queue_,
                [&](auto** made) { return fi_cq_open(domain_.get(), &attributes, made, nullptr); });
  };
  if (provider() != "efa" && !connectionsAreHidden() && open(FI_WAIT_FD).ok() &&
      fi_control(&queue_->fid, FI_GETWAIT, &descriptor_) == 0)
    return {};
  logInfo("ofi: ", provider(), " on ", device(),
          " has no queue to sleep on: who waits polls, and between calls a thread looks every few "
          "milliseconds");
  descriptor_ = -1;
  queue_.reset();
  return open(FI_WAIT_NONE);
}

bool Rail::mayWait() const {
  fid* queue = &queue_->fid;
  return fi_trywait(fabric_.get(), &queue, 1) == 0;
}

Status Rail::openEndpoint() {
  // ofi_rxm makes room for two times as many at once.
  if (provider().ends_with("ofi_rxm"))
    candidate_.info->rx_attr->size = std::min(info().rx_attr->size, kMostReceives);
  WEFT_TRY(make("fi_endpoint", &endpoint_, [&](auto** made) {
    return fi_endpoint(domain_.get(), candidate_.info.get(), made, nullptr);
  }));
  fid_ep* const endpoint = endpoint_.get();
  WEFT_TRY(check("fi_ep_bind", fi_ep_bind(endpoint, &peers_->fid, 0)));
  WEFT_TRY(check("fi_ep_bind", fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV)));
  WEFT_TRY(check("fi_ep_bind", fi_ep_bind(endpoint, &events_->fid, 0)));
  // Ranks of one host have better ways than the provider's own shared memory. Refused: as it likes.
  const bool no = false;
  if (provider() == "efa")
    fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, kSharedMemoryPermitted, &no, sizeof(no));
  return check("fi_enable", fi_enable(endpoint));
}

// Whoever knows the key writes there, so it is not to be guessed. Some providers choose it
// themselves.
Status Rail::registerMemory(std::span<std::byte> memory, bool open, Owned<fid_mr>* out) {
  const std::uint64_t access =
      FI_SEND | FI_RECV | FI_WRITE | (open ? std::uint64_t{FI_REMOTE_WRITE} : 0);
  std::uint64_t key = 0;
  WEFT_TRY(randomNumber(info().domain_attr->mr_key_size, &key));
  fid_mr* made = nullptr;
  WEFT_TRY(check("fi_mr_reg", fi_mr_reg(domain_.get(), memory.data(), memory.size(), access, 0, key,
                                        0, &made, nullptr)));
  out->reset(made);
  if ((info().domain_attr->mr_mode & FI_MR_ENDPOINT) == 0) return {};
  WEFT_TRY(check("fi_mr_bind", fi_mr_bind(made, &endpoint_->fid, 0)));
  return check("fi_mr_enable", fi_mr_enable(made));
}

Status Rail::registerOpen(std::span<std::byte> memory, Owned<fid_mr>* out, Place* place) {
  WEFT_TRY(registerMemory(memory, true, out));
  place->key = fi_mr_key(out->get());
  if (place->key == FI_KEY_NOTAVAIL) return check("fi_mr_key", -FI_ENOKEY);
  if ((info().domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0)
    place->base = reinterpret_cast<std::uintptr_t>(memory.data());
  return {};
}

Status Rail::add(const Regions& regions, bool open, Memory* out) {
  out->regions_ = regions;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].empty()) continue;
    if (open && i < kWireRegions)
      WEFT_TRY(registerOpen(regions[i], &out->keys_[i], &out->places_[i]));
    else if (wantsRegistered())
      WEFT_TRY(registerMemory(regions[i], false, &out->keys_[i]));
  }
  return {};
}

Status Rail::registerRegions(const RailSpec& spec) {
  nowherePage_.reset(makePages(kPage));
  if (!nowherePage_) return check("allocating a page", -FI_ENOMEM);
  WEFT_TRY(registerOpen({nowherePage_.get(), kPage}, &nowhereKey_, &contact_.place[kNowhere]));
  WEFT_TRY(add(spec.regions, true, &memory_));
  for (std::size_t i = 0; i < kWireRegions; ++i) contact_.place[i] = memory_.place(i);
  return randomNumber(sizeof(contact_.secret), &contact_.secret);
}

Status Rail::refuseWrites() {
  const Regions regions = memory_.regions();
  memory_ = {};
  nowhereKey_.reset();
  if (wantsRegistered()) WEFT_TRY(registerMemory({nowherePage_.get(), kPage}, false, &nowhereKey_));
  return add(regions, false, &memory_);
}

// All slots first, then the receive buffers.
Status Rail::prepare(std::size_t writes, std::size_t receives, std::size_t bufferBytes) {
  if (receives != 0 && info().tx_attr->iov_limit < 2)
    return Status::error(Code::SystemError, "ofi: ", provider(), " on ", device(),
                         " sends from one place only, but a message needs header and payload; fix: "
                         "another WEFT_OFI_PROVIDER or WEFT_OFI_MODE=rdma");
  const std::size_t slotBytes = roundUp((writes + receives) * sizeof(Slot), kPage);
  bufferBytes_ = bufferBytes;
  slabPages_.reset(makePages(slotBytes + receives * bufferBytes));
  if (!slabPages_) return check("allocating slots", -FI_ENOMEM);
  if (wantsRegistered())
    WEFT_TRY(registerMemory({slabPages_.get(), slotBytes + receives * bufferBytes}, false, &slab_));
  auto* slots = reinterpret_cast<Slot*>(slabPages_.get());
  for (std::size_t i = 0; i < writes; ++i) free_.push_back(new (slots + i) Slot{});
  waiting_.reserve(receives);
  for (std::size_t i = 0; i < receives; ++i) {
    Slot* slot = new (slots + writes + i) Slot{};
    slot->kind = Slot::Receive;
    slot->buffer = slabPages_.get() + slotBytes + i * bufferBytes;
    const ssize_t result = tryPost(slot);
    if (result == -FI_EAGAIN && WEFT_MARK("ofi: receive later")) waiting_.push_back(slot);
    if (result != 0 && result != -FI_EAGAIN) return check("fi_recv", result);
  }
  return {};
}

Status Rail::readAddress() {
  std::size_t bytes = sizeof(contact_.address);
  WEFT_TRY(check("fi_getname", fi_getname(&endpoint_->fid, contact_.address, &bytes)));
  contact_.addressBytes = static_cast<std::uint32_t>(bytes);
  return {};
}

std::string Rail::where(const Contact& contact) const {
  if (candidate_.ip) return ipText(contact.address, contact.addressBytes);
  std::array<char, 128> name{};
  std::size_t bytes = name.size();
  fi_av_straddr(peers_.get(), contact.address, name.data(), &bytes);
  return name.data();
}

Status Rail::insert(const Contact& contact, fi_addr_t* out) {
  const int inserted = fi_av_insert(peers_.get(), contact.address, 1, out, 0, nullptr);
  return inserted == 1 ? Status() : check("fi_av_insert", inserted < 0 ? inserted : -FI_EINVAL);
}

void* Memory::descriptor(const std::byte* memory, std::size_t bytes) const {
  for (std::size_t i = 0; i < regions_.size(); ++i)
    if (keys_[i] && contains(regions_[i], memory, bytes)) return descriptorOf(keys_[i]);
  return nullptr;
}

bool Rail::writesNatively() const {
  if (provider() != "efa") return dataBytes() >= 8;
  bool emulated = true;
  std::size_t bytes = sizeof(emulated);
  return fi_getopt(&endpoint_->fid, FI_OPT_ENDPOINT, kEfaEmulatedWrite, &emulated, &bytes) == 0 &&
         !emulated;
}

std::size_t Rail::maxWrite() const {
  std::size_t most = std::min(info().ep_attr->max_msg_size, kLongest);
  std::size_t longest = 0;
  std::size_t bytes = sizeof(longest);
  if (fi_getopt(&endpoint_->fid, FI_OPT_ENDPOINT, kMaxRmaSize, &longest, &bytes) == 0 &&
      longest != 0)
    most = std::min(most, longest);
  return most;
}

// With its header within what goes at once, and within what a receiver that has posted none keeps. What
// ofi_rxm lets the receiver fetch is fatal if the sender dies before (1.17: it goes to a closed
// connection, and the process crashes).
std::size_t Rail::maxMessage() const {
  constexpr std::size_t kRoomForHeaders = 256;
  const std::size_t atOnce = provider() == "efa" ? 65536 : bufferOfRxm();
  return atOnce - std::min(kRoomForHeaders, atOnce / 2);
}

// FI_OFI_RXM_BUFFER_SIZE as it was when libfabric began.
std::size_t Rail::bufferOfRxm() const {
  std::size_t buffer = 0;
  std::size_t bytes = sizeof(buffer);
  const bool known =
      provider().ends_with("ofi_rxm") &&
      fi_getopt(&endpoint_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &buffer, &bytes) == 0 &&
      buffer != 0;
  return known ? buffer : 16384;
}

std::string Rail::mishap() {
  std::uint32_t event = 0;
  fi_eq_err_entry error{};
  if (fi_eq_read(events_.get(), &event, &error, sizeof(error), 0) != -FI_EAVAIL ||
      fi_eq_readerr(events_.get(), &error, 0) < 0)
    return {};
  const std::string what = text(failure("the endpoint", -error.err), " [", error.prov_errno, "]");
  if (provider() != "efa" || !isOfAPeer(error.prov_errno)) return what;
  logInfo(what, ", of one peer");
  return {};
}

Slot* Rail::take() {
  if (free_.empty()) return nullptr;
  Slot* slot = free_.back();
  free_.pop_back();
  return slot;
}

ssize_t Rail::tryPost(Slot* slot) {
  return fi_recv(endpoint_.get(), slot->buffer, bufferBytes_, slotDescriptor(), FI_ADDR_UNSPEC,
                 &slot->context);
}

void Rail::post(Slot* slot) {
  if (!waiting_.empty() || tryPost(slot) != 0) waiting_.push_back(slot);
}

void Rail::repost() {
  while (!waiting_.empty() && tryPost(waiting_.back()) == 0) waiting_.pop_back();
}

}  // namespace weft::ofi
