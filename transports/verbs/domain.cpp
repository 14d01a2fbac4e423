// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/domain.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "transports/setup.h"

namespace weft::verbs {
namespace {

constexpr std::uint32_t kFirstConnections = 8;  // that the first queue has room for

}  // namespace

Channel::Channel(Device& device)
    : device_(device), channel_(nullptr, device.verbs().destroy_comp_channel) {}

Status Channel::open() {
  channel_.reset(device_.verbs().create_comp_channel(device_.context()));
  const int flags = channel_ ? ::fcntl(channel_->fd, F_GETFL) : -1;
  if (flags >= 0 && ::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) == 0) return {};
  return Status::error(Code::SystemError, "verbs: no completion channel on ", device_.name(), ": ",
                       std::strerror(errno));
}

// Events of earlier ones are taken first: their queues notify once only.
bool Channel::notify(std::span<const Owned<ibv_cq>> queues) {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (device_.verbs().get_cq_event(channel_.get(), &queue, &context) == 0)
    device_.verbs().ack_cq_events(queue, 1);
  return std::ranges::all_of(
      queues, [](const auto& one) { return one->context->ops.req_notify_cq(one.get(), 0) == 0; });
}

Domain::Domain(std::shared_ptr<Device> device)
    : device_(std::move(device)), protection_(nullptr, verbs().dealloc_pd), channel_(*device_) {}

Status Domain::open(std::shared_ptr<Device> device, const Regions& memory, std::size_t devices,
                    std::unique_ptr<Domain>* out) {
  std::unique_ptr<Domain> domain(new Domain(std::move(device)));
  domain->protection_.reset(domain->verbs().alloc_pd(domain->device().context()));
  if (!domain->protection_)
    return Status::error(Code::SystemError, "verbs: no protection domain on ",
                         domain->device().name(), ": ", std::strerror(errno));
  for (const std::span<std::byte> one : memory) domain->lockedBytes_ += (devices - 1) * one.size();
  WEFT_TRY(domain->add(memory, &domain->memory_));
  WEFT_TRY(domain->channel_.open());
  *out = std::move(domain);
  return {};
}

Status Domain::add(const Regions& regions, Memory* out) {
  out->memory_ = regions;
  for (const std::span<std::byte> one : regions) lockedBytes_ += one.size();
  for (const std::span<std::byte> one : regions) {
    const bool outgoing = out->registered_.size() == kOutgoing;
    const int access = outgoing ? 0 : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    out->registered_.emplace_back(verbs().reg_mr(protection_.get(), one.data(), one.size(), access),
                                  verbs().dereg_mr);
    if (!out->registered_.back()) return unregistered(one.size());
  }
  return {};
}

Status Domain::unregistered(std::size_t bytes) const {
  const int error = errno;
  const std::string problem = text("verbs: cannot register ", bytes, " bytes with ",
                                   device_->name(), ": ", std::strerror(error));
  if (error != ENOMEM && error != EAGAIN && error != EPERM)
    return Status::error(Code::SystemError, problem);
  return Status::error(Code::OutOfMemory, problem, "; this rank locks ", lockedBytes_,
                       " bytes for all its devices and may lock ", lockableMemory(),
                       " (RLIMIT_MEMLOCK); fix: ulimit -l unlimited, or a smaller WEFT_SEGMENT_KB");
}

RemoteRegions Memory::regions() const {
  RemoteRegions all;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = {reinterpret_cast<std::uintptr_t>(memory_[i].data()), memory_[i].size(),
              registered_[i]->rkey};
  return all;
}

Status Domain::reserve(std::uint32_t completions, ibv_cq** out) {
  if (queues_.empty() || left_ < completions) {
    const auto most = static_cast<std::uint32_t>(device_->limits().max_cqe);
    const std::uint32_t wanted =
        std::min(std::max(made_, kFirstConnections * completions), planned_);
    left_ = std::min(std::max(wanted, completions), most);
    Owned<ibv_cq> queue(
        verbs().create_cq(device_->context(), static_cast<int>(left_), nullptr, channel_.get(), 0),
        verbs().destroy_cq);
    if (!queue)
      return Status::error(Code::SystemError, "verbs: no completion queue of ", left_,
                           " entries on ", device_->name(), ": ", std::strerror(errno));
    queues_.push_back(std::move(queue));
    made_ += left_;
  }
  if (left_ < completions)
    return Status::error(Code::SystemError, "verbs: ", device_->name(),
                         " has completion queues of ", left_, " entries, a connection needs ",
                         completions);
  left_ -= completions;
  planned_ -= std::min(planned_, completions);
  *out = queues_.back().get();
  return {};
}

}  // namespace weft::verbs
