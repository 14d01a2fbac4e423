// SPDX-License-Identifier: Apache-2.0
#include "transports/mapped/direct.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/mark.h"

namespace weft::mapped {
namespace {

using Attach = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                           unsigned long);

const char* fixFor(int error) {
  switch (error) {
    case EPERM:
      return "; fix: allow ptrace between these processes (same user, kernel.yama.ptrace_scope <= "
             "1, in containers --cap-add SYS_PTRACE) or set WEFT_CMA=off";
    case ENOSYS:
      return "; fix: set WEFT_CMA=off, this kernel or its seccomp filter lacks the call";
    case EFAULT:
      return "; fix: keep the buffer mapped until the collective has completed on all ranks";
    case ESRCH:
      return "; the process has ended";
    default:
      return "; fix: set WEFT_CMA=off to copy through shared memory";
  }
}

Status failure(const char* call, pid_t pid, std::uint64_t address, int error) {
  return Status::error(error == ESRCH ? Code::RemoteError : Code::SystemError, call, " of pid ",
                       pid, " at address ", address, ": ", std::strerror(error), fixFor(error));
}

// A look that failed says nothing.
bool ended(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

// The kernel may stop at any page boundary and then reports what it did so far.
Status transfer(const char* call, Attach attach, const Process& process, std::uint64_t address,
                void* mine, std::size_t bytes) {
  if (ended(process.pidfd)) return failure(call, process.pid, address, ESRCH);
  auto* local = static_cast<std::byte*>(mine);
  while (bytes != 0) {
    const iovec here{local, bytes};
    const iovec there{reinterpret_cast<void*>(address), bytes};
    const ssize_t moved = attach(process.pid, &here, 1, &there, 1, 0);
    if (moved < 0 && errno == EINTR && WEFT_MARK("CMA again")) continue;
    if (moved <= 0) return failure(call, process.pid, address, moved < 0 ? errno : EFAULT);
    const auto done = static_cast<std::size_t>(moved);
    local += done;
    address += done;
    bytes -= done;
  }
  return {};
}

// Without a lock, which a forked child could inherit taken.
constinit std::atomic<int> permits{0};

bool isRestricted() {
  const Fd scope(::open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC));
  char value = '0';
  return scope && ::read(scope.get(), &value, 1) == 1 && value == '1';
}

void allowTracers(unsigned long who) { (void)::prctl(PR_SET_PTRACER, who, 0, 0, 0); }

}  // namespace

Status writeMemory(const Process& to, std::uint64_t address, const void* from, std::size_t bytes) {
  return transfer("process_vm_writev", ::process_vm_writev, to, address, const_cast<void*>(from),
                  bytes);
}

Status readMemory(const Process& from, std::uint64_t address, void* to, std::size_t bytes) {
  return transfer("process_vm_readv", ::process_vm_readv, from, address, to, bytes);
}

AttachPermit::AttachPermit() : needed_(isRestricted()) {
  if (needed_ && permits.fetch_add(1) == 0) allowTracers(PR_SET_PTRACER_ANY);
}

// Another may have been made between the two calls.
AttachPermit::~AttachPermit() {
  if (!needed_ || permits.fetch_sub(1) != 1) return;
  allowTracers(0);
  if (permits.load() != 0) allowTracers(PR_SET_PTRACER_ANY);
}

}  // namespace weft::mapped
