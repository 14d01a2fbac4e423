// SPDX-License-Identifier: Apache-2.0
#include "tools/train/megatron_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

constexpr std::string_view kMagicAndVersion{"MMIDIDX\0\0\1\0\0\0\0\0\0\0",
                                            17};  // the magic, and version 1
constexpr uint8_t kInt32 = 4, kUint16 = 8;
constexpr int64_t kNarrow = 65500;  // Megatron's bound for two bytes
constexpr const char* kPart = ".part";

[[noreturn]] void cannotWrite(const std::string& file) {
  throw Failure(Exit::kCannotWrite, fmt::format("cannot write {}: {}", file, std::strerror(errno)));
}

void rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) cannotWrite(to);
}

}  // namespace

MegatronWriter::MegatronWriter(const std::string& prefix, int64_t vocabulary)
    : tokensFile_(prefix + ".bin"),
      indexFile_(prefix + ".idx"),
      file_(create(tokensFile_ + kPart)),
      tokenBytes_(vocabulary < kNarrow ? sizeof(uint16_t) : sizeof(int32_t)) {}

MegatronWriter::~MegatronWriter() {
  if (!file_) return;
  ::unlink((tokensFile_ + kPart).c_str());
  ::unlink((indexFile_ + kPart).c_str());
}

MegatronWriter::File MegatronWriter::create(const std::string& file) {
  File made(std::fopen(file.c_str(), "wbe"));
  if (!made) cannotWrite(file);
  return made;
}

void MegatronWriter::write(std::FILE* file, const void* bytes, size_t count,
                           const std::string& name) {
  if (count > 0 && std::fwrite(bytes, 1, count, file) != count) cannotWrite(name);
}

void MegatronWriter::close(File file, const std::string& name) {
  const bool kept = std::fflush(file.get()) == 0 && ::fsync(::fileno(file.get())) == 0;
  if (!kept || std::fclose(file.release()) != 0) cannotWrite(name);
}

void MegatronWriter::append(std::span<const int32_t> tokens) {
  if (tokenBytes_ == sizeof(uint16_t)) {
    narrow_.assign(tokens.begin(), tokens.end());
    write(file_.get(), narrow_.data(), narrow_.size() * sizeof(uint16_t), tokensFile_);
  } else {
    write(file_.get(), tokens.data(), tokens.size_bytes(), tokensFile_);
  }
  tokens_ += tokens.size();
  open_ += static_cast<int64_t>(tokens.size());
}

void MegatronWriter::endDocument() {
  if (open_ > std::numeric_limits<int32_t>::max())
    throw Failure(Exit::kData,
                  fmt::format("document {} has {} tokens, and an index counts at most {}; cut it",
                              documents(), open_, std::numeric_limits<int32_t>::max()));
  if (open_ > 0) lengths_.push_back(static_cast<int32_t>(open_));
  documents_.push_back(static_cast<int64_t>(lengths_.size()));
  open_ = 0;
}

void MegatronWriter::writeIndex() const {
  const std::string name = indexFile_ + kPart;
  File file = create(name);
  const auto put = [&](const void* bytes, size_t count) { write(file.get(), bytes, count, name); };
  const uint8_t type = tokenBytes_ == sizeof(uint16_t) ? kUint16 : kInt32;
  const uint64_t counts[2] = {lengths_.size(), documents_.size()};
  std::vector<int64_t> offsets;
  int64_t end = 0;
  for (const int32_t length : lengths_) {
    offsets.push_back(end);
    end += static_cast<int64_t>(tokenBytes_) * length;
  }
  put(kMagicAndVersion.data(), kMagicAndVersion.size());
  put(&type, sizeof type);
  put(counts, sizeof counts);
  put(lengths_.data(), lengths_.size() * sizeof(int32_t));
  put(offsets.data(), offsets.size() * sizeof(int64_t));
  put(documents_.data(), documents_.size() * sizeof(int64_t));
  close(std::move(file), name);
}

// An index of before is of other tokens, so it goes first.
void MegatronWriter::finish() {
  writeIndex();
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0)
    cannotWrite(tokensFile_);
  if (::unlink(indexFile_.c_str()) != 0 && errno != ENOENT) cannotWrite(indexFile_);
  rename(tokensFile_ + kPart, tokensFile_);
  rename(indexFile_ + kPart, indexFile_);
  file_.reset();
}

}  // namespace weft::train
