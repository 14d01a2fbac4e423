// SPDX-License-Identifier: Apache-2.0
// Part of lib/base in the build asan: adds each text to the file that TEST_MARKS names, once a process.
#include "base/mark.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace weft::inline base {
namespace {

constexpr std::size_t kLongest = 4000;

// Hashes of texts that are written. When it is full the rest is written again and again.
constinit std::array<std::atomic<std::uint64_t>, 1 << 14> known{};

bool isNew(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  hash |= 1;  // 0 is a free place
  for (std::size_t i = 0; i < 64; ++i) {
    std::atomic<std::uint64_t>& place = known[(hash + i) % known.size()];
    std::uint64_t there = 0;
    if (place.compare_exchange_strong(there, hash)) return true;
    if (there == hash) return false;
  }
  return true;
}

// A test that may open or write no files writes this one.
class Unlimited {
 public:
  explicit Unlimited(__rlimit_resource what) : what_(what) {
    ::getrlimit(what_, &before_);
    const rlimit most{before_.rlim_max, before_.rlim_max};
    ::setrlimit(what_, &most);
  }
  ~Unlimited() { ::setrlimit(what_, &before_); }
  Unlimited(const Unlimited&) = delete;
  Unlimited& operator=(const Unlimited&) = delete;

 private:
  const __rlimit_resource what_;
  rlimit before_{};
};

// One write(2): lines of several processes do not mix.
void writeLine(const char* file, std::string_view text) {
  std::array<char, kLongest + 1> line;
  const auto isControl = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  char* end = std::replace_copy_if(text.begin(), text.end(), line.begin(), isControl, ' ');
  *end++ = '\n';
  const Unlimited files(RLIMIT_NOFILE), bytes(RLIMIT_FSIZE);
  const int fd = ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  (void)!::write(fd, line.data(), static_cast<std::size_t>(end - line.data()));
  ::close(fd);
}

}  // namespace

bool mark(std::string_view text) noexcept {
  const int error = errno;
  text = text.substr(0, kLongest);
  const char* const file = std::getenv("TEST_MARKS");
  if (file != nullptr && isNew(text)) writeLine(file, text);
  errno = error;
  return true;
}

}  // namespace weft::inline base
