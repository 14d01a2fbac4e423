// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/event_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/temporary_folder.h"

namespace weft::train {
namespace {

std::string fromHex(const std::string& text) {
  std::string bytes, digits;
  for (const char digit : text)
    if (digit != ' ') digits += digit;
  for (size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

TEST(EventFile, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau) << "RFC 3720, B.4";
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(EventFile, RecordsAreThoseOfTensorflow) {
  EXPECT_EQ(eventRecord(versionEvent(1700000000)),
            fromHex("18 00 00 00 00 00 00 00 a3 7f 4b 22 09 00 00 00 40 fc 54 d9 41 1a 0d") +
                "brain.Event:2" + fromHex("ec ed 8f 9d"));
  EXPECT_EQ(eventRecord(scalarsEvent(1700000001, 7, {{"loss", 2.5}})),
            fromHex("1a 00 00 00 00 00 00 00 12 9b d8 2d 09 00 00 40 40 fc 54 d9 41 10 07 2a 0d 0a "
                    "0b 0a 04 6c 6f 73 73 15 00 00 20 40 37 ef ed 96"));
}

TEST(EventFile, LongFieldsAndLargeStepsTakeMoreThanAByte) {
  const std::string tag(300, 't');
  const std::string event = scalarsEvent(0, int64_t{1} << 40, {{tag, 1}});
  EXPECT_EQ(event.substr(9, 7), fromHex("10 80 80 80 80 80 20"));
  EXPECT_NE(event.find(fromHex("0a ac 02") + tag), std::string::npos);
}

TEST(EventFile, EachRunHasAFileOfItsOwnWhichIsThereAtOnce) {
  const test::TemporaryFolder folder;
  const EventFile file(folder / "new/runs", 0);
  file.write(3, {{"a/b", 1}});
  const std::filesystem::directory_iterator all(folder / "new/runs"), end;
  ASSERT_EQ(std::distance(all, end), 1);
  const auto path = std::filesystem::directory_iterator(folder / "new/runs")->path();
  EXPECT_EQ(path.filename().string().find("events.out.tfevents."), 0u) << path;
  EXPECT_EQ(std::filesystem::file_size(path), 16 + 24u + 16 + 13u + 16 + 9 + 2 + 2 + 12u)
      << "version, start and a scalar";
}

TEST(EventFile, AFolderThatCannotBeIsNamed) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  try {
    checkEventFolder(file + "/below");
    FAIL() << "made";
  } catch (const tools::CannotWrite& failure) {
    EXPECT_NE(std::string(failure.what()).find("--tensorboard " + file + "/below: Not a directory"),
              std::string::npos)
        << failure.what();
  }
  EXPECT_NO_THROW(checkEventFolder(folder / "other"));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "other")) << "nothing is left of the trial";
}

}  // namespace
}  // namespace weft::train
