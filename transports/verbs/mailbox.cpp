// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/mailbox.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/mark.h"

namespace weft::verbs {
namespace {

// Datagrams that nobody has polled yet; more are lost, and sent again.
constexpr std::size_t kFewReceives = 64, kMostReceives = 512;
constexpr std::uint32_t kKeyBits = 0x7fffffff;  // a Q_Key with the highest bit means something else

}  // namespace

Mailbox::Mailbox(Domain& domain, const Port& port, PortId id)
    : domain_(domain),
      port_(port),
      id_(id),
      registered_(nullptr, domain.verbs().dereg_mr),
      channel_(domain.device()),
      queue_(nullptr, domain.verbs().destroy_cq),
      pair_(nullptr, domain.verbs().destroy_qp) {}

Status Mailbox::open(Domain& domain, const Port& port, PortId id, std::size_t edges,
                     std::unique_ptr<Mailbox>* out) {
  std::unique_ptr<Mailbox> mailbox(new Mailbox(domain, port, id));
  mailbox->receives_ =
      static_cast<std::uint32_t>(std::clamp(2 * edges, kFewReceives, kMostReceives));
  WEFT_TRY(mailbox->allocate());
  WEFT_TRY(mailbox->create());
  WEFT_TRY(mailbox->start());
  *out = std::move(mailbox);
  return {};
}

Status Mailbox::allocate() {
  const std::size_t bytes = kSends * kSendBytes + receives_ * kReceiveBytes;
  memory_ = std::make_shared<transport::Mapping>(bytes, -1);
  if (memory_->base() == nullptr)
    return Status::error(Code::OutOfMemory, "verbs: no ", bytes, " bytes for datagrams of ",
                         port_.info.name(), ": ", std::strerror(errno));
  for (std::uint32_t slot = kSends; slot-- > 0;) free_.push_back(slot);
  registered_.reset(
      domain_.verbs().reg_mr(domain_.protection(), memory_->base(), bytes, IBV_ACCESS_LOCAL_WRITE));
  if (!registered_) return domain_.unregistered(bytes);
  if (::getrandom(&address_.secret, sizeof(address_.secret), 0) == sizeof(address_.secret) &&
      ::getrandom(&address_.key, sizeof(address_.key), 0) == sizeof(address_.key)) {
    address_.key &= kKeyBits;
    return {};
  }
  return Status::error(Code::SystemError, "verbs: getrandom: ", std::strerror(errno));
}

Status Mailbox::create() {
  WEFT_TRY(channel_.open());
  const Device& device = domain_.device();
  queue_.reset(domain_.verbs().create_cq(device.context(), static_cast<int>(kSends + receives_),
                                         nullptr, channel_.get(), 0));
  ibv_qp_init_attr wanted{};  // no context: of no connection
  wanted.send_cq = wanted.recv_cq = queue_.get();
  wanted.qp_type = IBV_QPT_UD;
  wanted.sq_sig_all = 1;
  wanted.cap = {.max_send_wr = kSends,
                .max_recv_wr = receives_,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
  if (queue_) pair_.reset(domain_.verbs().create_qp(domain_.protection(), &wanted));
  if (pair_) return {};
  return Status::error(Code::SystemError, "verbs: no queue pair for datagrams on ",
                       port_.info.name(), ": ", std::strerror(errno));
}

Status Mailbox::start() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port_.number;
  attributes.qkey = address_.key;
  const auto modify = [&](int mask) {
    return domain_.verbs().modify_qp(pair_.get(), &attributes, mask);
  };
  int error = modify(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  for (std::uint32_t slot = 0; error == 0 && slot < receives_; ++slot)
    error = postReceive(slot) ? 0 : ENOMEM;
  attributes.qp_state = IBV_QPS_RTR;
  if (error == 0) error = modify(IBV_QP_STATE);
  attributes.qp_state = IBV_QPS_RTS;
  if (error == 0) error = modify(IBV_QP_STATE | IBV_QP_SQ_PSN);
  address_.number = pair_->qp_num;
  if (error == 0) return {};
  return Status::error(Code::SystemError, "verbs: cannot start the queue pair for datagrams on ",
                       port_.info.name(), ": ", std::strerror(error));
}

Owned<ibv_ah> Mailbox::route(const Gid& far, bool linkLocal) const {
  ibv_ah_attr path = port_.pathTo(far, linkLocal);
  const Library& verbs = domain_.verbs();
  return {verbs.create_ah(domain_.protection(), &path), verbs.destroy_ah};
}

bool Mailbox::send(ibv_ah* route, const Address& to, const Datagram& datagram, std::uint32_t edge) {
  if (free_.empty() && WEFT_MARK("verbs: too many datagrams on their way")) return false;
  const std::uint32_t slot = free_.back();
  std::byte* const from = memory_->base() + slot * kSendBytes;
  std::memcpy(from, &datagram, sizeof(datagram));
  ibv_sge source{reinterpret_cast<std::uintptr_t>(from), sizeof(datagram), registered_->lkey};
  ibv_send_wr work{};
  work.wr_id = slot;
  work.sg_list = &source;
  work.num_sge = 1;
  work.opcode = IBV_WR_SEND;
  work.wr.ud = {route, to.number, to.key};
  ibv_send_wr* refused = nullptr;
  if (pair_->context->ops.post_send(pair_.get(), &work, &refused) != 0) return false;
  free_.pop_back();
  edgeOf_[slot] = edge;
  return true;
}

bool Mailbox::postReceive(std::uint32_t slot) {
  ibv_sge place{reinterpret_cast<std::uintptr_t>(receiveAt(slot)), kReceiveBytes,
                registered_->lkey};
  ibv_recv_wr work{};
  work.wr_id = kReceive | slot;
  work.sg_list = &place;
  work.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  return pair_->context->ops.post_recv(pair_.get(), &work, &refused) == 0;
}

std::span<const std::byte> Mailbox::datagramOf(const ibv_wc& completion) const {
  if (completion.byte_len < kHeader || completion.byte_len > kReceiveBytes) return {};
  const std::byte* const at = receiveAt(static_cast<std::uint32_t>(completion.wr_id));
  return {at + kHeader, completion.byte_len - kHeader};
}

}  // namespace weft::verbs
