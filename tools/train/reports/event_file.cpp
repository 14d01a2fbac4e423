// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <filesystem>

#include "tools/train/reports/host_name.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

constexpr std::array<uint32_t, 256> makeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    table[byte] = crc;
  }
  return table;
}

uint32_t maskedCrc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8; }

// Little endian, which is this machine's order as well.
template <class Number>
std::string bytesOf(Number number) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// Fields of protobuf's wire format: a key, the number of the field and its wire type, then a value.
enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(uint64_t field, WireType type) { return varint(field << 3 | type); }

std::string numberField(uint64_t field, uint64_t value) {
  return key(field, kVarint) + varint(value);
}

std::string bytesField(uint64_t field, std::string_view value) {
  return key(field, kLengthDelimited) + varint(value.size()).append(value);
}

std::string headOfEvent(double seconds, int64_t step) {
  constexpr uint64_t kWallTime = 1, kStep = 2;
  std::string head = key(kWallTime, kFixed64) + bytesOf(seconds);
  return step == 0 ? head : head + numberField(kStep, static_cast<uint64_t>(step));
}

std::string valueOf(const Scalar& scalar) {
  constexpr uint64_t kTag = 1, kSimpleValue = 2;
  return bytesField(kTag, scalar.tag) + key(kSimpleValue, kFixed32) +
         bytesOf(static_cast<float>(scalar.value));
}

double now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// TensorBoard reads the files of a folder in the order of their names, hence the time in front.
std::string nameOfFile() {
  return fmt::format("events.out.tfevents.{:010}.{}.{}.0", static_cast<int64_t>(now()), hostName(),
                     ::getpid());
}

fs::path made(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw tools::CannotWrite(
        fmt::format("cannot make the folder --tensorboard {}: {}; name one "
                    "that you may write to",
                    folder, error.message()));
  return folder;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = makeCrcTable();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ crc >> 8;
  return ~crc;
}

std::string eventRecord(std::string_view event) {
  const std::string length = bytesOf(static_cast<uint64_t>(event.size()));
  std::string record = length + bytesOf(maskedCrc(length));
  return record.append(event) + bytesOf(maskedCrc(event));
}

std::string versionEvent(double seconds) {
  constexpr uint64_t kFileVersion = 3;
  return headOfEvent(seconds, 0) + bytesField(kFileVersion, "brain.Event:2");
}

std::string sessionStartEvent(double seconds, int64_t step) {
  constexpr uint64_t kSessionLog = 7, kStatus = 1, kStart = 1;
  return headOfEvent(seconds, step) + bytesField(kSessionLog, numberField(kStatus, kStart));
}

std::string scalarsEvent(double seconds, int64_t step, const std::vector<Scalar>& scalars) {
  constexpr uint64_t kSummary = 5, kValue = 1;
  std::string summary;
  for (const Scalar& scalar : scalars) summary += bytesField(kValue, valueOf(scalar));
  return headOfEvent(seconds, step) + bytesField(kSummary, summary);
}

EventFile::EventFile(const std::string& folder, int64_t firstStep)
    : file_((made(folder) / nameOfFile()).string()) {
  file_.write(eventRecord(versionEvent(now())));
  file_.write(eventRecord(sessionStartEvent(now(), firstStep)));
}

void EventFile::write(int64_t step, const std::vector<Scalar>& scalars) const {
  file_.write(eventRecord(scalarsEvent(now(), step, scalars)));
}

void checkEventFolder(const std::string& folder) {
  tools::ReportFile tried((made(folder) / nameOfFile()).string());
}

}  // namespace weft::train
