/* SPDX-License-Identifier: Apache-2.0 */
/* In C: glibc's headers tell C++ of some of these functions that they do not throw, and of others nothing. */
#define _GNU_SOURCE
#include "failing_calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct Kind {
  const char* name;
  long made;
  struct Kind* next;
};

static struct Kind* kinds = NULL;
static long countdown = 0; /* to the call that fails; 0 or less: none */
static int lasts = 0;      /* and those that follow fail */
static enum Failing failing = kRefused;
static const char* wanted = NULL;
static const char* failed = NULL;
static int counts = 0;

/* weft's own calls, and those that the standard library makes for it; libfabric's are its own matter. */
static int isWefts(const void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) return 0;
  return strstr(info.dli_fname, "libweft") != NULL || strstr(info.dli_fname, "libstdc++") != NULL;
}

static void count(struct Kind* kind) {
  if (__atomic_fetch_add(&kind->made, 1, __ATOMIC_SEQ_CST) != 0) return;
  kind->next = __atomic_load_n(&kinds, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(&kinds, &kind->next, kind, 0, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
}

static int failsNow(struct Kind* kind, const void* caller, int error) {
  if (!__atomic_load_n(&counts, __ATOMIC_RELAXED) || !isWefts(caller)) return 0;
  count(kind);
  const char* const name = __atomic_load_n(&wanted, __ATOMIC_SEQ_CST);
  if (name != NULL && strcmp(name, kind->name) != 0) return 0;
  const int lasting = __atomic_load_n(&lasts, __ATOMIC_RELAXED);
  if (!lasting && __atomic_load_n(&countdown, __ATOMIC_RELAXED) <= 0) return 0;
  const long left = __atomic_fetch_sub(&countdown, 1, __ATOMIC_SEQ_CST);
  if (left > 1 || (left < 1 && !lasting)) return 0;
  __atomic_store_n(&failed, kind->name, __ATOMIC_SEQ_CST);
  errno = error;
  return 1;
}

void failCall(const char* name, long n, enum Failing how) {
  for (struct Kind *kind = kinds, *next; kind != NULL; kind = next) {
    next = kind->next;
    __atomic_store_n(&kind->made, 0, __ATOMIC_SEQ_CST);
  }
  __atomic_store_n(&kinds, NULL, __ATOMIC_SEQ_CST);
  __atomic_store_n(&wanted, name, __ATOMIC_SEQ_CST);
  __atomic_store_n(&failed, NULL, __ATOMIC_SEQ_CST);
  __atomic_store_n(&failing, how, __ATOMIC_SEQ_CST);
  __atomic_store_n(&lasts, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&countdown, n, __ATOMIC_SEQ_CST);
  __atomic_store_n(&counts, 1, __ATOMIC_SEQ_CST);
}

void failCallsFrom(const char* name, long n) {
  failCall(name, n, kRefused);
  __atomic_store_n(&lasts, 1, __ATOMIC_SEQ_CST);
}

const char* stopFailingCalls(void) {
  __atomic_store_n(&counts, 0, __ATOMIC_SEQ_CST);
  return __atomic_load_n(&failed, __ATOMIC_SEQ_CST);
}

const char* kindOfCall(int i, long* made) {
  const struct Kind* kind = __atomic_load_n(&kinds, __ATOMIC_SEQ_CST);
  while (kind != NULL && i-- > 0) kind = kind->next;
  if (kind != NULL) *made = __atomic_load_n(&kind->made, __ATOMIC_SEQ_CST);
  return kind != NULL ? kind->name : NULL;
}

static int isRefused(void) { return __atomic_load_n(&failing, __ATOMIC_RELAXED) == kRefused; }

/* A call that may be refused, with `error`, upon which it returns `bad`. */
#define REFUSES(type, bad, error, name, parameters, arguments)                            \
  type name parameters {                                                                  \
    static struct Kind kind = {#name, 0, NULL};                                           \
    static type(*real) parameters;                                                        \
    if (real == NULL) real = (type(*) parameters)dlsym(RTLD_NEXT, #name);                 \
    const int fails = isRefused() && failsNow(&kind, __builtin_return_address(0), error); \
    return fails ? bad : real arguments;                                                  \
  }

/* One that may be interrupted as well. */
#define BREAKS(type, error, name, parameters, arguments)                             \
  type name parameters {                                                             \
    static struct Kind kind = {#name, 0, NULL};                                      \
    static type(*real) parameters;                                                   \
    if (real == NULL) real = (type(*) parameters)dlsym(RTLD_NEXT, #name);            \
    return failsNow(&kind, __builtin_return_address(0), isRefused() ? error : EINTR) \
               ? (type)-1                                                            \
               : real arguments;                                                     \
  }

/* One that moves `bytes`, and when it is interrupted fewer: every other time none (EINTR), else one. Of 8
 * bytes it is the bell of a thread, an eventfd, which always rings. */
#define MOVES(error, name, parameters, arguments)                                                  \
  ssize_t name parameters {                                                                        \
    static struct Kind kind = {#name, 0, NULL};                                                    \
    static ssize_t(*real) parameters;                                                              \
    static int partly = 0;                                                                         \
    if (real == NULL) real = (ssize_t(*) parameters)dlsym(RTLD_NEXT, #name);                       \
    if (bytes != 8 && failsNow(&kind, __builtin_return_address(0), isRefused() ? error : EINTR)) { \
      partly = !partly;                                                                            \
      if (isRefused() || partly || bytes == 0) return -1;                                          \
      bytes = 1;                                                                                   \
    }                                                                                              \
    return real arguments;                                                                         \
  }

REFUSES(int, -1, EMFILE, socket, (int family, int type, int protocol), (family, type, protocol))
REFUSES(int, -1, EADDRINUSE, bind, (int fd, const struct sockaddr* to, socklen_t size),
        (fd, to, size))
REFUSES(int, -1, EADDRINUSE, listen, (int fd, int backlog), (fd, backlog))
REFUSES(int, -1, ECONNREFUSED, connect, (int fd, const struct sockaddr* to, socklen_t size),
        (fd, to, size))
REFUSES(int, -1, ENOBUFS, getsockname, (int fd, struct sockaddr* at, socklen_t* size),
        (fd, at, size))
REFUSES(int, -1, ENOBUFS, getsockopt, (int fd, int level, int name, void* value, socklen_t* size),
        (fd, level, name, value, size))
REFUSES(int, -1, ENOPROTOOPT, setsockopt,
        (int fd, int level, int name, const void* value, socklen_t size),
        (fd, level, name, value, size))
REFUSES(int, -1, EMFILE, eventfd, (unsigned value, int flags), (value, flags))
REFUSES(int, -1, EMFILE, memfd_create, (const char* name, unsigned flags), (name, flags))
REFUSES(int, -1, ENOSPC, ftruncate, (int fd, off_t bytes), (fd, bytes))
REFUSES(void*, MAP_FAILED, ENOMEM, mmap,
        (void* at, size_t bytes, int prot, int flags, int fd, off_t from),
        (at, bytes, prot, flags, fd, from))
REFUSES(int, -1, ENOMEM, mprotect, (void* at, size_t bytes, int prot), (at, bytes, prot))
REFUSES(int, -1, ENOMEM, madvise, (void* at, size_t bytes, int advice), (at, bytes, advice))
REFUSES(void*, NULL, ENOMEM, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes))
REFUSES(int, -1, EIO, fsync, (int fd), (fd))
REFUSES(int, -1, EACCES, mkdir, (const char* path, mode_t mode), (path, mode))
REFUSES(int, -1, EACCES, rename, (const char* from, const char* to), (from, to))
REFUSES(int, -1, EIO, fstat, (int fd, struct stat* info), (fd, info))
REFUSES(DIR*, NULL, EMFILE, opendir, (const char* path), (path))
REFUSES(int, -1, ENOMEM, getifaddrs, (struct ifaddrs * *all), (all))

/* These return their error. */
REFUSES(int, EAGAIN, 0, pthread_create,
        (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*),
         void* argument),
        (thread, attributes, start, argument))

BREAKS(int, EMFILE, accept4, (int fd, struct sockaddr* peer, socklen_t* size, int flags),
       (fd, peer, size, flags))
BREAKS(int, ENOMEM, poll, (struct pollfd * entries, nfds_t n, int timeout), (entries, n, timeout))
BREAKS(int, ENOSPC, fallocate, (int fd, int mode, off_t from, off_t bytes), (fd, mode, from, bytes))
BREAKS(ssize_t, EPIPE, sendmsg, (int fd, const struct msghdr* message, int flags),
       (fd, message, flags))
BREAKS(ssize_t, ECONNRESET, recvmsg, (int fd, struct msghdr* message, int flags),
       (fd, message, flags))
BREAKS(ssize_t, EPERM, process_vm_readv,
       (pid_t pid, const struct iovec* to, unsigned long n, const struct iovec* from,
        unsigned long m, unsigned long flags),
       (pid, to, n, from, m, flags))
BREAKS(ssize_t, EPERM, process_vm_writev,
       (pid_t pid, const struct iovec* from, unsigned long n, const struct iovec* to,
        unsigned long m, unsigned long flags),
       (pid, from, n, to, m, flags))

MOVES(ECONNRESET, send, (int fd, const void* from, size_t bytes, int flags),
      (fd, from, bytes, flags))
MOVES(ECONNRESET, recv, (int fd, void* to, size_t bytes, int flags), (fd, to, bytes, flags))
MOVES(ENOSPC, write, (int fd, const void* from, size_t bytes), (fd, from, bytes))
MOVES(EIO, read, (int fd, void* to, size_t bytes), (fd, to, bytes))
MOVES(EIO, pread, (int fd, void* to, size_t bytes, off_t at), (fd, to, bytes, at))
MOVES(ENOSYS, getrandom, (void* to, size_t bytes, unsigned flags), (to, bytes, flags))

/* ---- those with arguments that need not be there --------------------------------------------- */

int open(const char* path, int flags, ...) {
  static struct Kind kind = {"open", 0, NULL};
  static int (*real)(const char*, int, ...);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (real == NULL) real = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  const int fails = isRefused() && failsNow(&kind, __builtin_return_address(0), EMFILE);
  return fails ? -1 : real(path, flags, mode);
}

int fcntl(int fd, int command, ...) {
  static struct Kind kind = {"fcntl", 0, NULL};
  static int (*real)(int, int, ...);
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  if (real == NULL) real = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
  const int fails = isRefused() && failsNow(&kind, __builtin_return_address(0), EMFILE);
  return fails ? -1 : real(fd, command, argument);
}

/* What the kernel may lack; a futex may always be had. It reads six arguments, passed or not, as glibc's does. */
__attribute__((no_sanitize_address)) long syscall(long number, ...) {
  static struct Kind kind = {"syscall", 0, NULL};
  static long (*real)(long, ...);
  va_list more;
  va_start(more, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(more, long);
  va_end(more);
  if (real == NULL) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  const int fails =
      number != SYS_futex && isRefused() && failsNow(&kind, __builtin_return_address(0), ENOSYS);
  return fails ? -1 : real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
