// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/folder.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/folder.h"
#include "base/mark.h"
#include "base/text.h"
#include "checkpoint/durable_file.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kAside = ".tmp";

std::string stepName(std::int64_t steps) {
  char name[32];
  std::snprintf(name, sizeof(name), "step-%08lld", static_cast<long long>(steps));
  return name;
}

bool isOurs(const std::string& name) {
  constexpr std::string_view kLetters = "0123456789.";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         name.find_first_not_of(kLetters, kPrefix.size()) == std::string::npos;
}

bool liesAside(const std::string& name) {
  return name.ends_with(kAside) && isOurs(name.substr(0, name.size() - kAside.size()));
}

std::vector<std::string> namesIn(const std::string& path) {
  std::vector<std::string> names;
  (void)listFolder(path, &names);  // what cannot be read has none of ours
  return names;
}

}  // namespace

std::string CheckpointFolder::aside(std::int64_t steps) const {
  return text(path_, "/", stepName(steps), kAside);
}

Status CheckpointFolder::prepare(std::int64_t steps) const {
  std::error_code error;
  WEFT_TRY(makeFolders(path_));
  for (const std::string& name : namesIn(path_))
    if (liesAside(name) && WEFT_MARK("a leftover is removed"))
      fs::remove_all(text(path_, "/", name), error);
  CheckpointIndex last;
  const std::string name = nameOfLatest();
  // Where the last one is not to be read any other may be the one to keep.
  if (!name.empty() && readIndex(text(path_, "/", name, "/", kIndexFile), &last).ok())
    prune(name, last.previous);
  fs::create_directory(aside(steps), error);
  return error ? systemError("cannot make folder", aside(steps), error.value()) : Status();
}

void CheckpointFolder::drop(std::int64_t steps) const {
  std::error_code none;
  fs::remove_all(aside(steps), none);
}

// A step that has been saved before gets a second name: nothing that is good is touched.
std::string CheckpointFolder::freeName(std::int64_t steps) const {
  std::string name = stepName(steps);
  std::error_code none;
  for (int again = 2; fs::exists(text(path_, "/", name), none); ++again)
    name = text(stepName(steps), ".", again);
  return name;
}

std::string CheckpointFolder::nameOfLatest() const {
  std::string name;
  if (!readFile(path_ + "/latest", 100, &name).ok()) return {};
  while (name.ends_with('\n')) name.pop_back();
  std::error_code none;
  if (isOurs(name) && fs::exists(text(path_, "/", name), none)) return name;
  const std::string newest = nameOfNewest();
  return newest.empty() && isOurs(name) ? name : newest;
}

// Numbers of as many digits as all that are less, and of one step the second name after the first.
std::string CheckpointFolder::nameOfNewest() const {
  std::string newest;
  for (const std::string& name : namesIn(path_)) {
    std::error_code none;
    if (isOurs(name) && fs::exists(text(path_, "/", name, "/", kIndexFile), none))
      newest = std::max(newest, name);
  }
  return newest;
}

Status CheckpointFolder::commit(CheckpointIndex index) const {
  index.previous = nameOfLatest();
  const std::string from = aside(index.steps), name = freeName(index.steps),
                    to = path_ + "/" + name;
  std::string json;
  WEFT_TRY(printIndex(index, &json));
  WEFT_TRY(writeFile(text(from, "/", kIndexFile), json));
  WEFT_TRY(syncFolder(from));
  if (std::rename(from.c_str(), to.c_str()) != 0) return systemError("cannot rename", from);
  WEFT_TRY(syncFolder(path_));
  if (const Status named = replaceFile(path_ + "/latest", name + "\n"); !named.ok()) {
    (void)WEFT_MARK("a checkpoint is taken back");
    (void)std::rename(to.c_str(), from.c_str());  // aside again, to be dropped
    return named;
  }
  WEFT_TRY(syncFolder(path_));
  prune(name, index.previous);
  return {};
}

// A checkpoint is renamed before it is removed, so that there is never half of one.
void CheckpointFolder::prune(const std::string& last, const std::string& previous) const {
  for (const std::string& name : namesIn(path_)) {
    std::error_code error;
    const std::string old = text(path_, "/", name);
    if (!isOurs(name) || name == last || name == previous) continue;
    if (!fs::exists(text(old, "/", kIndexFile), error)) continue;
    fs::rename(old, old + std::string(kAside), error);
    if (!error) fs::remove_all(old + std::string(kAside), error);
  }
}

Status CheckpointFolder::latest(std::string* checkpoint) const {
  std::error_code none;
  if (const std::string name = nameOfLatest(); !name.empty()) {
    *checkpoint = text(path_, "/", name);
  } else if (fs::exists(text(path_, "/", kIndexFile), none)) {
    *checkpoint = path_;
  } else {
    return Status::error(Code::InvalidArgument, "there is no checkpoint in '", path_,
                         "': no latest, and no ", kIndexFile,
                         "; fix: name the folder that "
                         "checkpoints were saved to");
  }
  return {};
}

}  // namespace weft::checkpoint
