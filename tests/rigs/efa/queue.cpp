// SPDX-License-Identifier: Apache-2.0
// Queue pairs and completion queues, as the provider sees them.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "fake.h"

namespace fake {
namespace {

Queue& queueOf(ibv_qp* base) { return *reinterpret_cast<Queue*>(base); }
Queue& queueOf(ibv_qp_ex* base) { return *reinterpret_cast<Queue*>(base); }
CompletionQueue& completionsOf(ibv_cq_ex* base) {
  return *reinterpret_cast<CompletionQueue*>(base);
}

// Gathers what is to be sent; false: not registered.
bool gather(const ibv_send_wr& work, std::vector<std::byte>* bytes) {
  for (int i = 0; i < work.num_sge; ++i) {
    const ibv_sge& piece = work.sg_list[i];
    if ((work.send_flags & IBV_SEND_INLINE) == 0 && !registered(piece)) return false;
    const auto* from = reinterpret_cast<const std::byte*>(piece.addr);
    bytes->insert(bytes->end(), from, from + piece.length);
  }
  return true;
}

Completion deliver(Queue& queue, std::size_t index) {
  Datagram arrived = std::move(queue.stash[index]);
  queue.stash.erase(queue.stash.begin() + static_cast<std::ptrdiff_t>(index));
  const Receive receive = std::move(queue.receives.front());
  queue.receives.pop_front();
  ++queue.delivered;
  queue.overtook += index != 0;
  std::size_t done = 0;
  for (const ibv_sge& piece : receive.into) {
    const std::size_t part = std::min<std::size_t>(piece.length, arrived.bytes.size() - done);
    std::memcpy(reinterpret_cast<void*>(piece.addr), arrived.bytes.data() + done, part);
    done += part;
  }
  return {kWell, receive.work, IBV_WC_RECV, static_cast<std::uint32_t>(done), arrived.source, {}};
}

void tally(const Queue& queue) {
  if (knobs().tally.empty()) return;
  std::ofstream(knobs().tally, std::ios::app) << queue.delivered << ' ' << queue.overtook << '\n';
}

// A thing that may be handed out next: a completion (queue null), or an arrival.
struct Choice {
  Queue* queue;
  std::size_t index;
};

// Disorder: any of all that are ready, and now and then nothing, so that more gather.
int next(ibv_cq_ex* base) {
  CompletionQueue& completions = completionsOf(base);
  std::vector<Choice> choices;
  const Clock::time_point now = Clock::now();
  for (std::size_t i = 0; i < completions.done.size(); ++i)
    if (completions.done[i].ready <= now) choices.push_back({nullptr, i});
  for (Queue* queue : completions.queues)
    for (std::size_t i = 0; i < queue->stash.size() && !queue->receives.empty(); ++i)
      if (queue->stash[i].ready <= now) choices.push_back({queue, i});
  if (choices.empty() || (knobs().shuffle && chance(30))) return ENOENT;
  const Choice choice = choices[knobs().shuffle ? draw(choices.size()) : 0];
  if (choice.queue != nullptr) {
    completions.current = deliver(*choice.queue, choice.index);
  } else {
    completions.current = completions.done[choice.index];
    completions.done.erase(completions.done.begin() + static_cast<std::ptrdiff_t>(choice.index));
  }
  base->wr_id = completions.current.work;
  base->status = completions.current.fate == kWell      ? IBV_WC_SUCCESS
                 : completions.current.fate == kFlushed ? IBV_WC_WR_FLUSH_ERR
                                                        : IBV_WC_RESP_TIMEOUT_ERR;
  return 0;
}

// Holds the lock until endPoll(), which is not called after ENOENT.
int startPoll(ibv_cq_ex* base, ibv_poll_cq_attr*) {
  lock().lock();
  for (Queue* queue : completionsOf(base).queues) pump(*queue);
  const int result = next(base);
  if (result != 0) lock().unlock();
  return result;
}
void endPoll(ibv_cq_ex*) { lock().unlock(); }

ibv_wc_opcode readOpcode(ibv_cq_ex* base) { return completionsOf(base).current.opcode; }
std::uint32_t readVendorError(ibv_cq_ex* base) { return completionsOf(base).current.fate; }
std::uint32_t readBytes(ibv_cq_ex* base) { return completionsOf(base).current.bytes; }
__be32 readData(ibv_cq_ex*) { return 0; }
std::uint32_t readQueue(ibv_cq_ex* base) {
  const auto& queues = completionsOf(base).queues;
  return queues.empty() ? 0 : queues.front()->place.queue;
}
std::uint32_t readSourceQueue(ibv_cq_ex* base) { return completionsOf(base).current.source.queue; }
unsigned readFlags(ibv_cq_ex*) { return 0; }
std::uint32_t readSourceHandle(ibv_cq_ex* base) {
  return static_cast<std::uint16_t>(ahNumberOf(completionsOf(base).current.source.gid));
}
int readSourceGid(efadv_cq* efa, ibv_gid* gid) {
  auto* completions = reinterpret_cast<CompletionQueue*>(reinterpret_cast<std::byte*>(efa) -
                                                         offsetof(CompletionQueue, efa));
  if (ahNumberOf(completions->current.source.gid) >= 0) return -ENOENT;  // known by its handle
  *gid = completions->current.source.gid;
  return 0;
}

void wrStart(ibv_qp_ex* base) {
  lock().lock();
  queueOf(base).read = {};
}
void wrRead(ibv_qp_ex* base, std::uint32_t, std::uint64_t address) {
  queueOf(base).read.work = base->wr_id;
  queueOf(base).read.address = address;
}
void wrPieces(ibv_qp_ex* base, std::size_t count, const ibv_sge* pieces) {
  queueOf(base).read.into.assign(pieces, pieces + count);
}
void wrTo(ibv_qp_ex* base, ibv_ah* ah, std::uint32_t queue, std::uint32_t) {
  queueOf(base).read.from = {gidOf(ah), queue};
}
int wrComplete(ibv_qp_ex* base) {
  Queue& queue = queueOf(base);
  const auto& into = queue.read.into;
  if (std::all_of(into.begin(), into.end(), registered))
    readRemote(queue, queue.read);
  else
    fail(queue, kBadKey, queue.read.work, IBV_WC_SEND, soon());
  lock().unlock();
  return 0;
}

void fillTables(ibv_cq_ex& table) {
  table.start_poll = startPoll;
  table.next_poll = next;
  table.end_poll = endPoll;
  table.read_opcode = readOpcode;
  table.read_vendor_err = readVendorError;
  table.read_byte_len = readBytes;
  table.read_imm_data = readData;
  table.read_qp_num = readQueue;
  table.read_src_qp = readSourceQueue;
  table.read_wc_flags = readFlags;
  table.read_slid = readSourceHandle;
}

}  // namespace

int postSend(ibv_qp* base, ibv_send_wr* work, ibv_send_wr** bad) {
  const std::lock_guard guard(lock());
  Queue& queue = queueOf(base);
  for (; work != nullptr; work = work->next) {
    *bad = work;
    Send send{work->wr_id, {gidOf(work->wr.ud.ah), work->wr.ud.remote_qpn}, {}};
    if (queue.backlog.size() >= kSendSlots) return ENOMEM;
    const bool known = gather(*work, &send.bytes);
    if (send.bytes.size() > kMtu) return EINVAL;
    if (known)
      launch(queue, std::move(send));
    else
      fail(queue, kBadKey, send.work, IBV_WC_SEND, soon());
  }
  return 0;
}

int postReceive(ibv_qp* base, ibv_recv_wr* work, ibv_recv_wr** bad) {
  const std::lock_guard guard(lock());
  Queue& queue = queueOf(base);
  for (; work != nullptr; work = work->next) {
    *bad = work;
    if (queue.receives.size() >= kReceiveSlots) return ENOMEM;
    Receive receive{work->wr_id, {work->sg_list, work->sg_list + work->num_sge}};
    if (queue.dead)
      fail(queue, kFlushed, receive.work, IBV_WC_RECV, soon());
    else
      queue.receives.push_back(std::move(receive));
  }
  return 0;
}

}  // namespace fake

using namespace fake;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT ibv_cq_ex* efadv_create_cq(ibv_context* context, ibv_cq_init_attr_ex* wanted,
                                  efadv_cq_init_attr*, std::uint32_t) {
  auto* made = new CompletionQueue;
  made->base.context = context;
  made->base.cqe = static_cast<int>(wanted->cqe);
  made->base.cq_context = wanted->cq_context;
  fillTables(made->base);
  made->efa.wc_read_sgid = readSourceGid;
  return &made->base;
}
EXPORT efadv_cq* efadv_cq_from_ibv_cq_ex(ibv_cq_ex* base) { return &completionsOf(base).efa; }
EXPORT int ibv_destroy_cq(ibv_cq* base) {
  delete reinterpret_cast<CompletionQueue*>(base);
  return 0;
}

EXPORT ibv_qp* efadv_create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* wanted,
                                  efadv_qp_init_attr*, std::uint32_t) {
  static std::uint32_t lastNumber = 0;
  const std::lock_guard guard(lock());
  auto* made = new Queue;
  ibv_qp& base = made->base.qp_base;
  base.context = context;
  base.pd = wanted->pd;
  base.send_cq = wanted->send_cq;
  base.recv_cq = wanted->recv_cq;
  base.qp_type = IBV_QPT_DRIVER;
  base.qp_num = ++lastNumber;
  made->base.wr_start = wrStart;
  made->base.wr_rdma_read = wrRead;
  made->base.wr_set_sge_list = wrPieces;
  made->base.wr_set_ud_addr = wrTo;
  made->base.wr_complete = wrComplete;
  made->place.queue = base.qp_num;
  ibv_query_gid(context, 1, 0, &made->place.gid);
  made->socket = openSocket(made->place);
  if (made->socket < 0) {
    delete made;
    return nullptr;
  }
  made->completions = reinterpret_cast<CompletionQueue*>(wanted->recv_cq);
  made->completions->queues.push_back(made);
  return &base;
}
EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* base) { return &queueOf(base).base; }
EXPORT int ibv_modify_qp(ibv_qp* base, ibv_qp_attr* attributes, int mask) {
  if ((mask & IBV_QP_STATE) != 0) base->state = attributes->qp_state;
  return 0;
}
EXPORT int ibv_destroy_qp(ibv_qp* base) {
  const std::lock_guard guard(lock());
  Queue& queue = queueOf(base);
  closeSocket(queue);
  tally(queue);
  std::erase(queue.completions->queues, &queue);
  delete &queue;
  return 0;
}
