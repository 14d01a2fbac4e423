// SPDX-License-Identifier: Apache-2.0
#include "tools/train/weights/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/train/weights/stored_tensor.h"

namespace weft::train {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                 kLocatorBytes = 20, kLongestComment = 0xffff;
constexpr uint32_t kIn64Bits = 0xffffffff;  // the field is in the entry's zip64 part
constexpr uint16_t kEncrypted = 1;

class ZipArchive {
 public:
  ZipArchive(std::span<const uint8_t> file, const std::string& name) : file_(file), name_(name) {}

  ZipEntries read() {
    const uint64_t end = findEnd();
    uint64_t count = number<uint16_t>(end + 10), at = number<uint32_t>(end + 16);
    if (count == 0xffff || at == kIn64Bits) {
      const uint64_t end64 = findEnd64(end);
      count = number<uint64_t>(end64 + 32);
      at = number<uint64_t>(end64 + 48);
    }
    ZipEntries entries;
    for (uint64_t i = 0; i < count; ++i) at = readEntry(at, entries);
    return entries;
  }

 private:
  // A directory's line of a file.
  struct Entry {
    uint64_t bytes, storedBytes, at;
  };

  [[noreturn]] void wrong(uint64_t at, const std::string& why) const { refuse(name_, at, why); }

  void need(uint64_t at, uint64_t bytes) const {
    if (at > file_.size() || bytes > file_.size() - at)
      wrong(file_.size(), "the zip archive ends early; is the file truncated?");
  }

  template <class T>
  T number(uint64_t at) const {
    need(at, sizeof(T));
    T value;
    std::memcpy(&value, file_.data() + at, sizeof value);
    return value;
  }

  // The end of the directory is before a comment, at the end of the file.
  uint64_t findEnd() const {
    const uint64_t size = file_.size();
    const uint64_t first = size - std::min<uint64_t>(size, kEndBytes + kLongestComment);
    for (uint64_t at = size; at-- > first;)
      if (size - at >= kEndBytes && number<uint32_t>(at) == kEnd) return at;
    wrong(size, "the zip archive has no directory at its end; is the file truncated?");
  }

  uint64_t findEnd64(uint64_t end) const {
    if (end < kLocatorBytes || number<uint32_t>(end - kLocatorBytes) != kLocator64)
      wrong(end, "the directory of the zip archive lacks its 64-bit part");
    const uint64_t at = number<uint64_t>(end - kLocatorBytes + 8);
    need(at, kEnd64Bytes);
    if (number<uint32_t>(at) != kEnd64) wrong(at, "here should be the zip archive's 64-bit end");
    return at;
  }

  // Returns where the next one is.
  uint64_t readEntry(uint64_t at, ZipEntries& entries) const {
    need(at, kCentralBytes);
    if (number<uint32_t>(at) != kCentral) wrong(at, "here should be a line of the zip's directory");
    const uint64_t nameBytes = number<uint16_t>(at + 28), extraBytes = number<uint16_t>(at + 30),
                   next = at + kCentralBytes + nameBytes + extraBytes + number<uint16_t>(at + 32);
    need(at, next - at);
    const std::string entryName(reinterpret_cast<const char*>(&file_[at]) + kCentralBytes,
                                nameBytes);
    if ((number<uint16_t>(at + 8) & kEncrypted) != 0 || number<uint16_t>(at + 10) != 0)
      wrong(at,
            fmt::format("{} is compressed or encrypted, which torch.save does not do", entryName));
    Entry entry{number<uint32_t>(at + 24), number<uint32_t>(at + 20), number<uint32_t>(at + 42)};
    widen(at + kCentralBytes + nameBytes, extraBytes, entry);
    if (entry.bytes != entry.storedBytes)
      wrong(at, fmt::format("{} is stored in {} bytes but has {}", entryName, entry.storedBytes,
                            entry.bytes));
    if (!entries.emplace(entryName, contentOf(entry)).second)
      wrong(at, fmt::format("{} is there twice", entryName));
    return next;
  }

  // Takes what has 64 bits from the entry's extra fields.
  void widen(uint64_t at, uint64_t bytes, Entry& entry) const {
    const uint64_t end = at + bytes;
    while (end - at >= 4) {
      const uint64_t length = number<uint16_t>(at + 2);
      uint64_t from = at + 4;
      if (length > end - from) return;
      if (number<uint16_t>(at) == 1) {
        for (uint64_t* const field : {&entry.bytes, &entry.storedBytes, &entry.at}) {
          if (*field != kIn64Bits || from + 8 > at + 4 + length) continue;
          *field = number<uint64_t>(from);
          from += 8;
        }
      }
      at += 4 + length;
    }
  }

  std::span<const uint8_t> contentOf(const Entry& entry) const {
    need(entry.at, kLocalBytes);
    if (number<uint32_t>(entry.at) != kLocal) wrong(entry.at, "here should be an entry of the zip");
    const uint64_t start =
        entry.at + kLocalBytes + number<uint16_t>(entry.at + 26) + number<uint16_t>(entry.at + 28);
    need(start, entry.bytes);
    return file_.subspan(start, entry.bytes);
  }

  std::span<const uint8_t> file_;
  const std::string& name_;
};

}  // namespace

ZipEntries zipEntriesOf(std::span<const uint8_t> file, const std::string& name) {
  return ZipArchive(file, name).read();
}

}  // namespace weft::train
