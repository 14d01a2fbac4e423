// SPDX-License-Identifier: Apache-2.0
#include "tools/train/offload_file.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tools/train/failure.h"

namespace weft::train {
namespace {

using test::TemporaryFolder;
using Floats = std::vector<float>;

Floats valuesOf(uint64_t number, size_t size) {
  Floats values(size);
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(number * 1000 + i % 997);
  return values;
}

OffloadFile::Id put(OffloadFile& file, uint64_t number, size_t size) {
  const auto values = std::make_shared<Floats>(valuesOf(number, size));
  return file.put({values, reinterpret_cast<const std::byte*>(values->data())},
                  size * sizeof(float));
}

void expectBack(OffloadFile& file, OffloadFile::Id id, uint64_t number, size_t size) {
  const OffloadFile::Bytes bytes = file.take(id);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.get()) % 16, 0u);
  EXPECT_EQ(std::memcmp(bytes.get(), valuesOf(number, size).data(), size * sizeof(float)), 0)
      << number;
}

// As forward and backward of several batches do: their blocks in order, and back in reverse.
TEST(OffloadOfActivations, ComesBackAsItWas) {
  const TemporaryFolder folder;
  OffloadFile file(folder.path());
  constexpr size_t kBlocks = 12;
  const auto sizeOf = [](size_t block) { return 5000 + 3 * (block % 2); };
  uint64_t number = 0;
  std::vector<std::vector<std::pair<OffloadFile::Id, uint64_t>>> batches;
  const auto forward = [&] {
    batches.emplace_back();
    for (size_t block = 0; block < kBlocks; ++block, ++number)
      batches.back().emplace_back(put(file, number, sizeOf(block)), number);
  };
  const auto backward = [&] {
    for (size_t block = kBlocks; block-- > 0;)
      expectBack(file, batches.front()[block].first, batches.front()[block].second, sizeOf(block));
    batches.erase(batches.begin());
  };
  forward();
  for (int turn = 0; turn < 8; ++turn) {
    forward();
    backward();
  }
  EXPECT_EQ(file.figures().put, 9 * 6 * (5000 + 5003) * sizeof(float));
  EXPECT_GT(file.figures().read, file.figures().put / 2) << "most was let go meanwhile";
}

TEST(OffloadOfActivations, LetsGoOfWhatIsWritten) {
  const TemporaryFolder folder;
  OffloadFile file(folder.path());
  std::vector<std::weak_ptr<Floats>> all;
  for (uint64_t i = 0; i < 20; ++i) {
    const auto values = std::make_shared<Floats>(valuesOf(i, 100));
    all.push_back(values);
    file.put({values, reinterpret_cast<const std::byte*>(values->data())}, 400);
  }
  const auto kept = std::ranges::count_if(all, [](const auto& each) { return !each.expired(); });
  EXPECT_LE(kept, 5);
  EXPECT_TRUE(all[0].expired());
}

TEST(OffloadOfActivations, TakesThePlacesOfWhatNobodyWants) {
  const TemporaryFolder folder;
  OffloadFile file(folder.path());
  for (uint64_t i = 0; i < 50; ++i) {
    const OffloadFile::Id dropped = put(file, i, 3000), taken = put(file, i + 1, 3000);
    if (i % 2 == 0) expectBack(file, taken, i + 1, 3000);
    file.drop(dropped);
    if (i % 2 == 1) expectBack(file, taken, i + 1, 3000);
  }
}

TEST(OffloadOfActivations, LeavesNothingBehind) {
  const TemporaryFolder folder;
  const std::string inside = folder / "store";
  std::filesystem::create_directory(inside);
  OffloadFile file(inside);
  put(file, 1, 1000);
  EXPECT_TRUE(std::filesystem::is_empty(inside)) << "even a killed process's is gone";
}

std::string refusalOf(const std::string& folder) {
  try {
    OffloadFile file(folder);
    for (uint64_t i = 0; i < 100; ++i) put(file, i, 25000);
    return "accepted";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), 73);
    return failure.what();
  }
}

TEST(OffloadOfActivations, SaysWhereThereIsNoRoom) {
  EXPECT_EQ(refusalOf("/nowhere"),
            "cannot put activations away in /nowhere: No such file or directory; name a folder "
            "with room as --offload-dir");
  const TemporaryFolder folder;
  const std::string disk = folder / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "only root mounts";
  const std::string refusal = refusalOf(disk);
  ::umount(disk.c_str());
  EXPECT_EQ(refusal, "cannot put activations away in " + disk +
                         ": No space left on device; name a folder with room as --offload-dir");
}

}  // namespace
}  // namespace weft::train
