/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "watched_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum What { kBytes, kName };
struct Lack {
  enum What what;
  char path[PATH_MAX];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct Lack lacks[100];
static int lacking = 0, made = 0, linked = 0;
static const char *watched = NULL, *linkTarget = NULL;
static char told[PATH_MAX + 50];

#define REAL(type, name, parameters)    \
  static type(*real) parameters = NULL; \
  if (real == NULL) real = (type(*) parameters)dlsym(RTLD_NEXT, name)

static int isIn(const char* path, const char* folder) {
  const size_t n = strlen(folder);
  return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Tests make files there as well. */
static int isWefts(const void* caller, const char* path) {
  Dl_info info;
  if (watched == NULL || !isIn(path, watched)) return 0;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) return 0;
  return strstr(info.dli_fname, "libweft") != NULL || strstr(info.dli_fname, "libstdc++") != NULL;
}

/* ---- what is lacking: the callers hold the mutex ------------------------------------------------ */

static void tell(const struct Lack* lack, const char* when) {
  if (told[0] == 0)
    snprintf(told, sizeof(told), "%s: its %s %s", lack->path,
             lack->what == kBytes ? "content" : "name", when);
}

static void lack(const char* path, enum What what) {
  for (int i = 0; i < lacking; ++i)
    if (lacks[i].what == what && strcmp(lacks[i].path, path) == 0) return;
  if (lacking == (int)(sizeof(lacks) / sizeof(lacks[0]))) return;
  lacks[lacking].what = what;
  snprintf(lacks[lacking++].path, PATH_MAX, "%s", path);
}

static int isChild(const char* path, const char* folder) {
  return isIn(path, folder) && strchr(path + strlen(folder) + 1, '/') == NULL;
}

static void synced(const char* path) {
  for (int i = lacking; i-- > 0;) {
    const int own = lacks[i].what == kBytes && strcmp(lacks[i].path, path) == 0;
    const int child = lacks[i].what == kName && isChild(lacks[i].path, path);
    if (own || child) lacks[i] = lacks[--lacking];
  }
}

/* What is given its name must be whole on the disk. */
static void renamed(const char* from, const char* to) {
  for (int i = 0; i < lacking; ++i) {
    char* const path = lacks[i].path;
    const int itself = strcmp(path, from) == 0, within = isIn(path, from);
    if (within || (itself && lacks[i].what == kBytes)) tell(&lacks[i], "is lost after a rename");
    if (!itself && !within) continue;
    char moved[2 * PATH_MAX];
    snprintf(moved, sizeof(moved), "%s%s", to, path + strlen(from));
    snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, moved);
  }
  lack(to, kName);
}

static int pathOf(int fd, char* path) {
  char link[40];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, PATH_MAX - 1);
  path[n < 0 ? 0 : n] = 0;
  return n > 0 && path[0] == '/';
}

/* ---- the calls ------------------------------------------------------------------------------------ */

int open(const char* path, int flags, ...) {
  REAL(int, "open", (const char*, int, ...));
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_CREAT) == 0 || !isWefts(__builtin_return_address(0), path))
    return real(path, flags, mode);
  pthread_mutex_lock(&mutex);
  if (++made == linked) {
    (void)unlink(path);
    if (symlink(linkTarget, path) != 0) tell(&lacks[0], "could not be a link");
  }
  lack(path, kName);
  pthread_mutex_unlock(&mutex);
  return real(path, flags, mode);
}

int mkdir(const char* path, mode_t mode) {
  REAL(int, "mkdir", (const char*, mode_t));
  const int result = real(path, mode);
  if (result != 0 || !isWefts(__builtin_return_address(0), path)) return result;
  pthread_mutex_lock(&mutex);
  lack(path, kName);
  pthread_mutex_unlock(&mutex);
  return result;
}

int rename(const char* from, const char* to) {
  REAL(int, "rename", (const char*, const char*));
  const int result = real(from, to);
  if (result != 0 || !isWefts(__builtin_return_address(0), to)) return result;
  pthread_mutex_lock(&mutex);
  renamed(from, to);
  pthread_mutex_unlock(&mutex);
  return result;
}

ssize_t write(int fd, const void* bytes, size_t size) {
  REAL(ssize_t, "write", (int, const void*, size_t));
  char path[PATH_MAX];
  if (watched != NULL && pathOf(fd, path) && isWefts(__builtin_return_address(0), path)) {
    pthread_mutex_lock(&mutex);
    lack(path, kBytes);
    pthread_mutex_unlock(&mutex);
  }
  return real(fd, bytes, size);
}

int fsync(int fd) {
  REAL(int, "fsync", (int));
  const int result = real(fd);
  char path[PATH_MAX];
  if (result != 0 || watched == NULL || !pathOf(fd, path)) return result;
  pthread_mutex_lock(&mutex);
  synced(path);
  pthread_mutex_unlock(&mutex);
  return result;
}

/* ---- for tests ------------------------------------------------------------------------------------ */

void watchFiles(const char* folder, int n, const char* target) {
  pthread_mutex_lock(&mutex);
  lacking = made = 0;
  told[0] = 0;
  linked = n;
  linkTarget = target;
  watched = folder;
  pthread_mutex_unlock(&mutex);
}

int filesMade(void) { return made; }

const char* whatIsNotDurable(void) {
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < lacking; ++i)
    if (access(lacks[i].path, F_OK) == 0) tell(&lacks[i], "is not on the disk");
  pthread_mutex_unlock(&mutex);
  return told[0] != 0 ? told : NULL;
}
