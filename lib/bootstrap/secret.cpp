// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/invalid.h"
#include "base/knobs.h"
#include "base/text.h"

namespace weft::bootstrap {
namespace {

Status badFile(const std::string& path, std::string_view why) {
  return invalidVariable("WEFT_SECRET_FILE", "WEFT_SECRET_FILE=", path, ": ", why);
}

Status checkFile(const std::string& path, int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return badFile(path, "not a regular file");
  if (info.st_uid != geteuid()) return badFile(path, "belongs to another user. fix: chown it");
  if ((info.st_mode & 077) != 0) return badFile(path, "is open to other users. fix: chmod 600 it");
  return {};
}

Status readFile(const std::string& path, std::string* content) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return badFile(path, std::strerror(errno));
  WEFT_TRY(checkFile(path, file.get()));
  std::array<char, 4097> buffer;
  const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
  if (size < 0) return badFile(path, std::strerror(errno));
  if (static_cast<std::size_t>(size) == buffer.size()) return badFile(path, "is longer than 4 KiB");
  content->assign(buffer.data(), static_cast<std::size_t>(size));
  while (!content->empty() && (content->back() == '\n' || content->back() == '\r'))
    content->pop_back();
  return content->empty() ? badFile(path, "is empty. fix: head -c 32 /dev/urandom | base64 > it")
                          : Status();
}

}  // namespace

Status readSecret(std::string* secret) {
  WEFT_TRY(readText(Knob::Secret, secret));
  if (!secret->empty() || !isSet(Knob::SecretFile)) return {};
  std::string path;
  WEFT_TRY(readText(Knob::SecretFile, &path));
  return readFile(path, secret);
}

Status secretForJob(std::string_view jobId, std::string* secret, bool* worthAWarning) {
  *worthAWarning = false;
  WEFT_TRY(readSecret(secret));
  if (!secret->empty()) return {};
  std::string policy;
  WEFT_TRY(readText(Knob::Auth, &policy));
  if (policy == "require")
    return invalidVariable(
        "WEFT_AUTH",
        "WEFT_AUTH=require, but there is no secret. fix: set WEFT_SECRET or WEFT_SECRET_FILE "
        "to the same value on all ranks");
  *worthAWarning = policy == "auto";
  *secret = text("job ", jobId);
  return {};
}

}  // namespace weft::bootstrap
