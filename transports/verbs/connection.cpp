// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/connection.h"

#include <arpa/inet.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace weft::verbs {
namespace {

// As the InfiniBand specification codes them: a packet is sent again after 268 ms, seven times; and
// for ever to a receiver that has no receive posted, which does not happen.
constexpr std::uint8_t kTimeout = 16;
constexpr std::uint8_t kRetries = 7;
constexpr std::uint8_t kReceiverRetries = 7;
constexpr std::uint8_t kReceiverTimer = 12;
constexpr std::uint32_t kInlineSizes[] = {256, 220, 128, 64, 0};  // the first that is granted

std::uint32_t randomSequence() {
  std::uint32_t sequence = 0;
  if (::getrandom(&sequence, sizeof(sequence), GRND_NONBLOCK) < 0) sequence = 0;
  return sequence & 0xffffff;
}

ibv_mtu mtuOf(std::uint32_t bytes) {
  return static_cast<ibv_mtu>(std::bit_width(std::clamp(bytes, 256u, 4096u)) - 8);
}

}  // namespace

std::string Way::route() const {
  return text(port().info.name(), " -> ", far.name(), ", ", show(gidOf(port().info)), " -> ",
              show(gidOf(far)));
}

Connection::Connection(const Way& way, std::uint32_t index)
    : way_(way),
      domain_(way.mailbox->domain()),
      index_(index),
      pair_(nullptr, domain_.verbs().destroy_qp),
      ring_(kDepth),
      receives_(kReceiveBatch) {
  for (std::uint32_t i = 0; i < kReceiveBatch; ++i) {
    receives_[i] = {};
    receives_[i].wr_id = kReceive | std::uint64_t{index} << 32;
  }
}

Status Connection::create(std::uint32_t remoteCompletions) {
  ibv_cq* queue = nullptr;
  WEFT_TRY(domain_.reserve(completions(remoteCompletions), &queue));
  WEFT_TRY(createPair(queue, remoteCompletions + kReceiveBatch));
  WEFT_TRY(initialize());
  const std::uint32_t receives = remoteCompletions + kReceiveBatch;
  for (std::uint32_t posted = 0; posted < receives; posted += kReceiveBatch)
    if (const int error = postReceives(std::min(kReceiveBatch, receives - posted)))
      return Status::error(Code::SystemError, "verbs: cannot post ", remoteCompletions,
                           " receives on ", way_.port().info.name(), ": ", std::strerror(error));
  sequence_ = randomSequence();
  return {};
}

Status Connection::createPair(ibv_cq* queue, std::uint32_t receives) {
  for (const std::uint32_t inlined : kInlineSizes) {
    ibv_qp_init_attr wanted{};
    wanted.qp_context = this;
    wanted.send_cq = wanted.recv_cq = queue;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {.max_send_wr = kDepth,
                  .max_recv_wr = receives,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = inlined};
    pair_.reset(domain_.verbs().create_qp(domain_.protection(), &wanted));
    inlineBytes_ = wanted.cap.max_inline_data;
    if (pair_) return {};
  }
  return Status::error(Code::SystemError, "verbs: no queue pair of ", kDepth, " writes and ",
                       receives, " receives on ", way_.port().info.name(), ": ",
                       std::strerror(errno));
}

Status Connection::initialize() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = way_.port().number;
  attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  return modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                "initialize");
}

Status Connection::modify(ibv_qp_attr& attributes, int mask, const char* what) {
  const int error = domain_.verbs().modify_qp(pair_.get(), &attributes, mask);
  if (error == 0) return {};
  return Status::error(Code::SystemError, "verbs: cannot ", what, " queue pair ", pair_->qp_num,
                       " of ", way_.route(), ": ", std::strerror(error));
}

Status Connection::connect(const Endpoint& theirs) {
  ibv_qp_attr ready{};
  ready.qp_state = IBV_QPS_RTR;
  ready.path_mtu = mtuOf(way_.mtu());
  ready.dest_qp_num = theirs.number;
  ready.rq_psn = theirs.sequence;
  ready.max_dest_rd_atomic = 1;
  ready.min_rnr_timer = kReceiverTimer;
  ready.ah_attr = way_.port().pathTo(way_.gidOf(way_.far), way_.linkLocal);
  WEFT_TRY(modify(ready,
                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                  "connect"));
  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = sequence_;
  send.timeout = kTimeout;
  send.retry_cnt = kRetries;
  send.rnr_retry = kReceiverRetries;
  send.max_rd_atomic = 1;
  return modify(send,
                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
                "open");
}

int Connection::post(const WireWrite& write, const RemoteRegion& target, std::uint32_t localKey) {
  ibv_sge source{};
  ibv_send_wr work{};
  if (write.bytes != 0) {
    source.addr = reinterpret_cast<std::uintptr_t>(write.src);
    source.length = static_cast<std::uint32_t>(write.bytes);
    source.lkey = localKey;
    work.sg_list = &source;
    work.num_sge = 1;
  }
  work.wr.rdma.remote_addr = target.at + write.target;
  work.wr.rdma.rkey = static_cast<std::uint32_t>(target.key);
  work.opcode = write.quiet ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
  work.imm_data = htonl(write.immediate);
  if (write.bytes <= inlineBytes_) work.send_flags = IBV_SEND_INLINE;
  const bool signal = !write.quiet || posted_ - signaled_ >= kDepth / 4;
  return postSend(work, signal, {write.cookie, true});
}

int Connection::flush() {
  ibv_send_wr work{};
  work.opcode = IBV_WR_RDMA_WRITE;
  work.wr.rdma.remote_addr = way_.target(WireRegion::Bounce).at;
  work.wr.rdma.rkey = static_cast<std::uint32_t>(way_.target(WireRegion::Bounce).key);
  return postSend(work, true, {});
}

int Connection::postSend(ibv_send_wr& work, bool signal, Posted record) {
  work.wr_id = std::uint64_t{index_} << 32 | static_cast<std::uint32_t>(posted_ + 1);
  if (signal) work.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  const int error = pair_->context->ops.post_send(pair_.get(), &work, &refused);
  if (error != 0) return error;
  ring_[posted_ % kDepth] = record;
  ++posted_;
  if (signal) signaled_ = posted_;
  return 0;
}

int Connection::postReceives(std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i)
    receives_[i].next = i + 1 < count ? &receives_[i + 1] : nullptr;
  ibv_recv_wr* refused = nullptr;
  return pair_->context->ops.post_recv(pair_.get(), receives_.data(), &refused);
}

int Connection::renew() {
  ++polled_;
  if (++spent_ < kReceiveBatch) return 0;
  spent_ = 0;
  return postReceives(kReceiveBatch);
}

void Connection::stop() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  (void)domain_.verbs().modify_qp(pair_.get(), &attributes, IBV_QP_STATE);
}

}  // namespace weft::verbs
