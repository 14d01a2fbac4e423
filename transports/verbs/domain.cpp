// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/domain.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace weft::verbs {
namespace {

std::string lockable() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : text(limit.rlim_cur, " bytes");
}

}  // namespace

Domain::Domain(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      protection_(nullptr, verbs().dealloc_pd),
      segmentRegion_(nullptr, verbs().dereg_mr),
      mailboxRegion_(nullptr, verbs().dereg_mr) {}

Status Domain::open(std::shared_ptr<Device> device, std::span<std::byte> segment,
                    std::span<std::byte> mailbox, std::size_t devices,
                    std::unique_ptr<Domain>* out) {
  std::unique_ptr<Domain> domain(new Domain(std::move(device)));
  domain->protection_.reset(domain->verbs().alloc_pd(domain->device().context()));
  if (!domain->protection_)
    return Status::error(Code::SystemError,
                         text("verbs: no protection domain on ", domain->device().name(), ": ",
                              std::strerror(errno)));
  const std::size_t total = (segment.size() + mailbox.size()) * devices;
  domain->segment_ = segment;
  WEFT_TRY(domain->registerMemory(segment, "segment", total, &domain->segmentRegion_));
  WEFT_TRY(domain->registerMemory(mailbox, "mailbox", total, &domain->mailboxRegion_));
  *out = std::move(domain);
  return {};
}

Status Domain::registerMemory(std::span<std::byte> memory, const char* what, std::size_t total,
                              Owned<ibv_mr>* out) {
  out->reset(verbs().reg_mr(protection_.get(), memory.data(), memory.size(),
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  if (*out) return {};
  const int error = errno;
  const bool tooLittle = error == ENOMEM || error == EAGAIN || error == EPERM;
  return Status::error(tooLittle ? Code::OutOfMemory : Code::SystemError,
                       text("verbs: cannot register the ", what, " (", memory.size(),
                            " bytes) with ", device_->name(), ": ", std::strerror(error),
                            tooLittle ? text("; this rank locks ", total,
                                             " bytes for all its devices and may lock ", lockable(),
                                             " (RLIMIT_MEMLOCK); fix: ulimit -l unlimited, or a"
                                             " smaller WEFT_SEGMENT_KB")
                                      : std::string()));
}

Status Domain::reserve(std::uint32_t completions, ibv_cq** out) {
  if (queues_.empty() || left_ < completions) {
    const auto most = static_cast<std::uint32_t>(device_->limits().max_cqe);
    left_ = std::min(std::max(planned_, completions), most);
    Owned<ibv_cq> queue(
        verbs().create_cq(device_->context(), static_cast<int>(left_), nullptr, nullptr, 0),
        verbs().destroy_cq);
    if (!queue)
      return Status::error(Code::SystemError,
                           text("verbs: no completion queue of ", left_, " entries on ",
                                device_->name(), ": ", std::strerror(errno)));
    queues_.push_back(std::move(queue));
  }
  if (left_ < completions)
    return Status::error(Code::SystemError,
                         text("verbs: ", device_->name(), " has completion queues of ", left_,
                              " entries, a connection needs ", completions));
  left_ -= completions;
  planned_ -= std::min(planned_, completions);
  *out = queues_.back().get();
  return {};
}

}  // namespace weft::verbs
