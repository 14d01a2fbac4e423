// SPDX-License-Identifier: Apache-2.0
#include "tools/train/megatron_data.h"

#include <fmt/format.h>

#include <cstring>
#include <iterator>
#include <numeric>
#include <string_view>

#include "tools/train/failure.h"
#include "tools/train/fingerprint.h"

namespace weft::train {
namespace {

constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr size_t kHead = 34;
constexpr size_t kVersionAt = 9, kTypeAt = 17, kCountAt = 18, kDocumentsAt = 26;

[[noreturn]] void refuse(const std::string& file, uint64_t offset, const std::string& why) {
  throw Failure(Exit::kData, fmt::format("{}, byte {}: {}", file, offset, why));
}

// The machine is little endian, too.
template <class T>
T read(std::span<const uint8_t> bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
std::vector<T> readMany(std::span<const uint8_t> bytes, size_t at, size_t n) {
  std::vector<T> values(n);
  if (n > 0) std::memcpy(values.data(), bytes.data() + at, n * sizeof(T));
  return values;
}

void readType(uint8_t code, const std::string& file, MegatronIndex& index) {
  constexpr size_t kBytes[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};
  if (code == 6 || code == 7)
    refuse(file, kTypeAt, fmt::format("type {} is floating point, which tokens are not", code));
  if (code >= std::size(kBytes) || kBytes[code] == 0)
    refuse(file, kTypeAt, fmt::format("type {} is none that Megatron writes (1 to 5, or 8)", code));
  index.tokenBytes = kBytes[code];
  index.isSigned = code >= 2 && code <= 5;
}

// How long the file must be for what its head says, with and without modes.
void checkLength(uint64_t bytes, uint64_t n, uint64_t d, const std::string& file) {
  constexpr uint64_t kMost = uint64_t{1} << 48;
  if (n > kMost || d > kMost)
    refuse(file, kCountAt, fmt::format("{} sequences and {} documents are too many", n, d));
  const uint64_t wanted = kHead + 12 * n + 8 * d;
  if (bytes == wanted || bytes == wanted + n) return;
  refuse(file, bytes,
         fmt::format("it ends here, and its head says that {} sequences and {} document entries "
                     "take {} bytes: it is cut off, or no index",
                     n, d, wanted));
}

void checkDocuments(const std::vector<int64_t>& documents, size_t sequences, size_t at,
                    const std::string& file) {
  int64_t before = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    if (documents[i] < before || documents[i] > static_cast<int64_t>(sequences))
      refuse(file, at + 8 * i,
             fmt::format("document entry {} is {}, after {} and with {} sequences", i, documents[i],
                         before, sequences));
    before = documents[i];
  }
}

std::string withoutEnding(const std::string& prefix) {
  const bool ends = prefix.ends_with(".bin") || prefix.ends_with(".idx");
  return ends ? prefix.substr(0, prefix.size() - 4) : prefix;
}

MegatronIndex readIndex(const std::string& file) {
  const MappedFile bytes(file);
  return parseMegatronIndex(bytes.bytes(), file);
}

}  // namespace

MegatronIndex parseMegatronIndex(std::span<const uint8_t> bytes, const std::string& file) {
  if (bytes.size() < kHead)
    refuse(file, bytes.size(), fmt::format("it ends inside of its head of {} bytes", kHead));
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    refuse(file, 0, "it does not begin with MMIDIDX: no index of Megatron's");
  if (const auto version = read<uint64_t>(bytes, kVersionAt); version != 1)
    refuse(file, kVersionAt, fmt::format("version {}; 1 is known", version));
  MegatronIndex index;
  index.fingerprint = fingerprint(bytes);
  readType(bytes[kTypeAt], file, index);
  const auto n = read<uint64_t>(bytes, kCountAt), d = read<uint64_t>(bytes, kDocumentsAt);
  checkLength(bytes.size(), n, d, file);
  index.lengths = readMany<int32_t>(bytes, kHead, n);
  index.offsets = readMany<int64_t>(bytes, kHead + 4 * n, n);
  checkDocuments(readMany<int64_t>(bytes, kHead + 12 * n, d), n, kHead + 12 * n, file);
  for (size_t i = 0; i < n; ++i)
    if (index.lengths[i] < 0)
      refuse(file, kHead + 4 * i, fmt::format("sequence {} has {} tokens", i, index.lengths[i]));
  const auto tokenBytes = static_cast<int64_t>(index.tokenBytes);
  for (size_t i = 0; i < n; ++i)
    if (index.offsets[i] % tokenBytes != 0)
      refuse(file, kHead + 4 * n + 8 * i,
             fmt::format("sequence {} begins at byte {}, inside of a token of {}", i,
                         index.offsets[i], tokenBytes));
  return index;
}

void checkTokensOf(const MegatronIndex& index, const std::string& indexFile,
                   const std::string& tokens, uint64_t bytes) {
  const size_t n = index.lengths.size();
  uint64_t end = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto from = static_cast<uint64_t>(index.offsets[i]);
    const uint64_t length = static_cast<uint64_t>(index.lengths[i]) * index.tokenBytes;
    if (index.offsets[i] < 0 || from > bytes || length > bytes - from)
      throw Failure(
          Exit::kData,
          fmt::format(
              "{} ends at byte {}, and sequence {} is bytes {} to {} of it ({}, byte {}): it "
              "is cut off, or of another index",
              tokens, bytes, i, index.offsets[i], from + length, indexFile, kHead + 4 * n + 8 * i));
    end = std::max(end, from + length);
  }
  if (end != bytes)
    throw Failure(Exit::kData,
                  fmt::format("{} has {} bytes, and the sequences of {} end at byte {}: it is of "
                              "another index",
                              tokens, bytes, indexFile, end));
}

MegatronData::MegatronData(const std::string& prefix)
    : file_(withoutEnding(prefix) + ".bin"),
      index_(readIndex(withoutEnding(prefix) + ".idx")),
      tokens_(file_) {
  checkTokensOf(index_, withoutEnding(prefix) + ".idx", file_, tokens_.bytes().size());
}

uint64_t MegatronData::tokens() const {
  return std::accumulate(index_.lengths.begin(), index_.lengths.end(), uint64_t{0},
                         [](uint64_t sum, int32_t n) { return sum + static_cast<uint64_t>(n); });
}

int64_t MegatronData::tokenAt(const uint8_t* at) const {
  const std::span<const uint8_t> bytes(at, index_.tokenBytes);
  switch (index_.tokenBytes) {
    case 1:
      return index_.isSigned ? int64_t{read<int8_t>(bytes, 0)} : int64_t{read<uint8_t>(bytes, 0)};
    case 2:
      return index_.isSigned ? int64_t{read<int16_t>(bytes, 0)} : int64_t{read<uint16_t>(bytes, 0)};
    case 4:
      return read<int32_t>(bytes, 0);
    default:
      return read<int64_t>(bytes, 0);
  }
}

void MegatronData::append(size_t sequence, size_t from, size_t count, int64_t vocabulary,
                          std::vector<int64_t>& to) const {
  const size_t start = static_cast<size_t>(index_.offsets[sequence]) + from * index_.tokenBytes;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = start + i * index_.tokenBytes;
    const int64_t token = tokenAt(tokens_.bytes().data() + at);
    if (token < 0 || token >= vocabulary)
      refuse(file_, at,
             fmt::format("token {} is not below the model's vocabulary of {}; name the tokenizer's "
                         "as --vocab-size",
                         token, vocabulary));
    to.push_back(token);
  }
}

}  // namespace weft::train
