// SPDX-License-Identifier: Apache-2.0
#include "tools/train/offload_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

constexpr size_t kMostToWrite = 2, kPage = 4096, kAlignment = 64;
constexpr std::chrono::minutes kLongestWait{10};

// 0, or why not.
int writeAll(int file, const std::byte* bytes, size_t size, int64_t at) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = ::pwrite(file, bytes + done, size - done, at + static_cast<int64_t>(done));
    if (n < 0 && errno != EINTR) return errno;
    if (n == 0) return ENOSPC;
    if (n > 0) done += static_cast<size_t>(n);
  }
  return 0;
}

int readAll(int file, std::byte* bytes, size_t size, int64_t at) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = ::pread(file, bytes + done, size - done, at + static_cast<int64_t>(done));
    if (n < 0 && errno != EINTR) return errno;
    if (n == 0) return EIO;
    if (n > 0) done += static_cast<size_t>(n);
  }
  return 0;
}

int fileWithoutName(const std::string& folder) {
  std::string path = folder + "/weft-train-XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file >= 0) ::unlink(path.c_str());
  return file;
}

size_t roundedUp(size_t size, size_t to) { return (size + to - 1) / to * to; }

OffloadFile::Bytes allocate(size_t size) {
  auto* const bytes =
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, roundedUp(size, kAlignment)));
  if (bytes == nullptr) throw std::bad_alloc();
  return {bytes, [](const std::byte* each) { std::free(const_cast<std::byte*>(each)); }};
}

}  // namespace

// Adds the time that it lives.
class OffloadFile::Clock {
 public:
  explicit Clock(double& seconds) : seconds_(seconds) {}
  ~Clock() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

 private:
  double& seconds_;
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

OffloadFile::OffloadFile(const std::string& folder)
    : folder_(folder), file_(fileWithoutName(folder)) {
  if (file_ < 0) fail(errno);
  thread_ = std::thread([this] { run(); });
}

OffloadFile::~OffloadFile() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_one();
  thread_.join();
  ::close(file_);
}

void OffloadFile::fail(int error) const {
  throw Failure(Exit::kCannotWrite,
                fmt::format("cannot put activations away in {}: {}; name a folder with room as "
                            "--offload-dir",
                            folder_, std::strerror(error)));
}

template <class Condition>
void OffloadFile::waitUntil(std::unique_lock<std::mutex>& lock, Condition condition) {
  const bool isInTime =
      done_.wait_for(lock, kLongestWait, [&] { return error_ != 0 || condition(); });
  if (error_ != 0 || !isInTime) fail(error_ != 0 ? error_ : ETIMEDOUT);
}

OffloadFile::Id OffloadFile::put(Bytes bytes, size_t size) {
  const Clock waits(figures_.waited);
  std::vector<Bytes> letGo;
  std::unique_lock lock(mutex_);
  waitUntil(lock, [this] { return toWrite_ < kMostToWrite; });
  letGo.swap(written_);
  items_.emplace(next_, Item{State::kToWrite, std::move(bytes), size, reserve(size)});
  ++toWrite_;
  figures_.put += size;
  work_.notify_one();
  return next_++;
}

OffloadFile::Bytes OffloadFile::take(Id id) {
  const Clock waits(figures_.waited);
  std::vector<Bytes> letGo;
  std::unique_lock lock(mutex_);
  Item& item = items_.at(id);
  if (item.state == State::kStored) beginToRead(item);
  waitUntil(lock, [&] { return item.state != State::kToRead; });
  letGo.swap(written_);
  Bytes bytes = item.bytes;
  forget(id);
  const auto after = items_.lower_bound(id);
  if (after != items_.begin() && std::prev(after)->second.state == State::kStored)
    beginToRead(std::prev(after)->second);
  return bytes;
}

void OffloadFile::drop(Id id) {
  const std::lock_guard lock(mutex_);
  forget(id);
}

// What is being written has its place until then.
void OffloadFile::forget(Id id) {
  const auto found = items_.find(id);
  const auto& [state, bytes, size, at] = found->second;
  if (state == State::kToWrite) --toWrite_;
  if (state != State::kWriting) free_[size].push_back(at);
  items_.erase(found);
}

int64_t OffloadFile::reserve(size_t size) {
  std::vector<int64_t>& places = free_[size];
  if (!places.empty()) {
    const int64_t place = places.back();
    places.pop_back();
    return place;
  }
  const auto length = static_cast<int64_t>(roundedUp(std::max<size_t>(size, 1), kPage));
  if (const int error = ::posix_fallocate(file_, end_, length)) fail(error);
  return std::exchange(end_, end_ + length);
}

void OffloadFile::beginToRead(Item& item) {
  item.bytes = allocate(item.size);
  item.state = State::kToRead;
  figures_.read += item.size;
  work_.notify_one();
}

void OffloadFile::run() {
  std::unique_lock lock(mutex_);
  while (!ends_)
    if (!workOnce(lock)) work_.wait(lock);
}

// What is to be read is waited for; of several, what was put away last is taken first.
bool OffloadFile::workOnce(std::unique_lock<std::mutex>& lock) {
  const auto isOf = [](State state) {
    return [state](const Items::value_type& each) { return each.second.state == state; };
  };
  const auto last = std::find_if(items_.rbegin(), items_.rend(), isOf(State::kToRead));
  if (last != items_.rend()) return read(last->first, lock), true;
  const auto first = std::find_if(items_.begin(), items_.end(), isOf(State::kToWrite));
  if (first == items_.end()) return false;
  return write(first->first, lock), true;
}

// It may be taken meanwhile.
void OffloadFile::write(Id id, std::unique_lock<std::mutex>& lock) {
  Item& item = items_.at(id);
  item.state = State::kWriting;
  const auto [state, bytes, size, at] = item;
  lock.unlock();
  const int error = writeAll(file_, bytes.get(), size, at);
  lock.lock();
  if (error != 0) error_ = error;
  --toWrite_;
  const auto found = items_.find(id);
  if (found == items_.end()) {
    free_[size].push_back(at);
  } else {
    found->second.state = State::kStored;
    written_.push_back(std::move(found->second.bytes));
  }
  done_.notify_one();
}

void OffloadFile::read(Id id, std::unique_lock<std::mutex>& lock) {
  const auto [state, bytes, size, at] = items_.at(id);
  lock.unlock();
  const int error = readAll(file_, const_cast<std::byte*>(bytes.get()), size, at);
  lock.lock();
  if (error != 0) error_ = error;
  const auto found = items_.find(id);
  if (found != items_.end()) found->second.state = State::kHere;
  done_.notify_one();
}

}  // namespace weft::train
