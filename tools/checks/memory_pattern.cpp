// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tools/checks/kinds.h"
#include "tools/checks/mapped_memory.h"
#include "tools/checks/memory.h"
#include "tools/checks/system_files.h"

namespace weft::checks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlock = std::size_t{4} << 20;  // bytes between two looks at the clock

// What stands in that word of that address in units of words.
std::uint64_t patternWord(std::uint64_t address, int pattern) {
  const std::uint64_t word =
      pattern < 2 ? (address + 1) * 0x9e3779b97f4a7c15u : std::uint64_t{1} << (address & 63);
  return pattern % 2 == 0 ? word : ~word;
}

std::uint64_t addressOf(std::span<const std::uint64_t> memory) {
  return reinterpret_cast<std::uintptr_t>(memory.data()) / sizeof(std::uint64_t);
}

// The system's number of the page frame, which only root may know, as an address; else 0.
std::uint64_t physicalAddress(const void* where) {
  constexpr std::uint64_t kFrame = (std::uint64_t{1} << 55) - 1;
  const auto address = reinterpret_cast<std::uintptr_t>(where);
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const int file = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  std::uint64_t entry = 0;
  if (file < 0) return 0;
  if (::pread(file, &entry, sizeof entry, static_cast<off_t>(address / page * sizeof entry)) !=
      static_cast<ssize_t>(sizeof entry))
    entry = 0;
  ::close(file);
  return (entry & kFrame) == 0 ? 0 : (entry & kFrame) * page + address % page;
}

std::string describe(const std::uint64_t* where, const Flip& flip) {
  const std::uint64_t wrong = flip.expected ^ flip.found;
  const std::uint64_t physical = physicalAddress(where);
  return fmt::format("{} of a word at address {}{} flipped: {:#018x} was written, {:#018x} read",
                     std::popcount(wrong) == 1 ? fmt::format("bit {}", std::countr_zero(wrong))
                                               : fmt::format("{} bits", std::popcount(wrong)),
                     fmt::ptr(where),
                     physical == 0 ? "" : fmt::format(" (physical {:#x})", physical), flip.expected,
                     flip.found);
}

// What one thread tests: blocks of its own, all with one pattern before the next.
class Tester {
 public:
  Tester(Clock::time_point end, std::size_t bytes) : end_(end), memory_(bytes) {}

  // Writing takes a third of the time or all of the memory; the rest is as much again, in turns.
  void run() {
    const auto mayWriteUntil = Clock::now() + (end_ - Clock::now()) / 3;
    const std::span<std::uint64_t> all = memory_.words();
    constexpr std::size_t kWords = kBlock / sizeof(std::uint64_t);
    for (; used_ + kWords <= all.size() && (used_ == 0 || Clock::now() < mayWriteUntil);
         used_ += kWords)
      fillPattern(all.subspan(used_, kWords), 0);
    for (int pattern = 0; flipped_.empty() && (pattern < kPatterns); ++pattern) {
      for (std::size_t at = 0; at < used_; at += kWords) turn(all.subspan(at, kWords), pattern);
      if (Clock::now() >= end_) break;
    }
  }

  double bytes() const { return static_cast<double>(used_ * sizeof(std::uint64_t)); }
  const std::string& flipped() const { return flipped_; }

 private:
  void turn(std::span<std::uint64_t> block, int pattern) {
    if (const auto flip = findFlip(block, pattern); flip && flipped_.empty())
      flipped_ = describe(&block[flip->word], *flip);
    fillPattern(block, (pattern + 1) % kPatterns);
  }

  Clock::time_point end_;
  MappedMemory memory_;
  std::size_t used_ = 0;  // words
  std::string flipped_;
};

}  // namespace

void fillPattern(std::span<std::uint64_t> memory, int pattern) {
  std::uint64_t address = addressOf(memory);
  for (std::uint64_t& word : memory) word = patternWord(address++, pattern);
}

std::optional<Flip> findFlip(std::span<const std::uint64_t> memory, int pattern) {
  const std::uint64_t start = addressOf(memory);
  std::uint64_t wrong = 0;  // without a branch a word, for the compiler's vectors
  for (std::size_t i = 0; i < memory.size(); ++i)
    wrong |= memory[i] ^ patternWord(start + i, pattern);
  if (wrong == 0) return {};
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const std::uint64_t expected = patternWord(start + i, pattern);
    if (memory[i] != expected) return Flip{i, expected, memory[i]};
  }
  return Flip{0, patternWord(start, pattern), patternWord(start, pattern) ^ wrong};  // gone again
}

void checkMemoryPattern(double seconds, unsigned threads, double mostBytes, HostReport& report) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  threads = static_cast<unsigned>(
      std::clamp(mostBytes / static_cast<double>(kBlock), 1.0, static_cast<double>(threads)));
  const auto each = std::max(kBlock, static_cast<std::size_t>(mostBytes / threads));
  std::vector<std::unique_ptr<Tester>> testers;
  for (unsigned i = 0; i < threads; ++i) testers.push_back(std::make_unique<Tester>(end, each));
  {
    std::vector<std::jthread> running;
    for (const auto& tester : testers) running.emplace_back([&tester] { tester->run(); });
  }
  double bytes = 0;
  for (const auto& tester : testers) {
    bytes += tester->bytes();
    if (!tester->flipped().empty())
      report.findings.push_back(
          makeFinding("memory-corrupt", report.culprit(), tester->flipped(), 1));
  }
  report.add("memory.tested", bytes, "bytes");
}

void checkMemoryErrors(const std::string& root, HostReport& report) {
  const std::string folder = root + "/sys/devices/system/edac/mc/";
  double corrected = 0, uncorrected = 0;
  for (const std::string& name : listFolder(folder)) {
    corrected += readNumber(folder + name + "/ce_count").value_or(0);
    uncorrected += readNumber(folder + name + "/ue_count").value_or(0);
  }
  if (!listFolder(folder).empty()) report.add("memory.corrected-errors", corrected, "");
  if (uncorrected > 0)
    report.findings.push_back(makeFinding(
        "memory-ecc", report.culprit(),
        fmt::format("{:.0f} memory errors that could not be corrected since it was booted",
                    uncorrected),
        0.9));
}

}  // namespace weft::checks
