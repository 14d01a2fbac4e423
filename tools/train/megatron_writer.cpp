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

}  // namespace

MegatronWriter::MegatronWriter(const std::string& prefix, int64_t vocabulary)
    : indexName_(prefix + ".idx"),
      file_(prefix + ".bin"),
      tokenBytes_(vocabulary < kNarrow ? sizeof(uint16_t) : sizeof(int32_t)) {}

void MegatronWriter::append(std::span<const int32_t> tokens) {
  if (tokenBytes_ == sizeof(uint16_t)) {
    narrow_.assign(tokens.begin(), tokens.end());
    file_.write(narrow_.data(), narrow_.size() * sizeof(uint16_t));
  } else {
    file_.write(tokens.data(), tokens.size_bytes());
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

void MegatronWriter::writeIndex(OutputFile& file) const {
  const uint8_t type = tokenBytes_ == sizeof(uint16_t) ? kUint16 : kInt32;
  const uint64_t counts[2] = {lengths_.size(), documents_.size()};
  std::vector<int64_t> offsets;
  int64_t end = 0;
  for (const int32_t length : lengths_) {
    offsets.push_back(end);
    end += static_cast<int64_t>(tokenBytes_) * length;
  }
  file.write(kMagicAndVersion);
  file.write(&type, sizeof type);
  file.write(counts, sizeof counts);
  file.write(lengths_.data(), lengths_.size() * sizeof(int32_t));
  file.write(offsets.data(), offsets.size() * sizeof(int64_t));
  file.write(documents_.data(), documents_.size() * sizeof(int64_t));
}

// An index of before is of other tokens, so it goes before they are there.
void MegatronWriter::finish() {
  OutputFile index(indexName_);
  writeIndex(index);
  index.sync();
  file_.sync();
  if (::unlink(indexName_.c_str()) != 0 && errno != ENOENT)
    throw Failure(Exit::kCannotWrite,
                  fmt::format("cannot write {}: {}", indexName_, std::strerror(errno)));
  file_.finish();
  index.finish();
}

}  // namespace weft::train
