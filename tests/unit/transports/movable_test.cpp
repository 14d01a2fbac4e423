// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/movable.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <sstream>

#include "base/text.h"

namespace weft::shm {
namespace {

constexpr PageRange kPages{0x7f0000002000, 0x7f0000006000};
constexpr const char* kHeader = "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n";
constexpr std::uintptr_t kStack = 0x7ffc00000000;

std::string smapsOf(const std::string& header, const std::string& flags) {
  return text("00400000-00401000 r-xp 00000000 08:01 5 /bin/x\nRss: 4 kB\nVmFlags: rd ex mr\n",
              header, "Size: 64 kB\nAnonHugePages:  0 kB\nVmFlags: rd wr mr mw me ", flags,
              " \nffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n");
}

Status check(const std::string& smaps, PageAdvice* advice, std::uintptr_t stack = kStack) {
  std::istringstream stream(smaps);
  return checkMovable(stream, kPages, stack, advice);
}

void expectRefused(const std::string& smaps, const char* why, std::uintptr_t stack = kStack) {
  PageAdvice advice;
  const Status status = check(smaps, &advice, stack);
  EXPECT_EQ(status.code(), Code::InvalidUsage) << smaps;
  for (const char* part : {"the mapping at 0x7f0000000000 is ", why, "fix: register what malloc"})
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
}

TEST(Movable, IsWhatMallocGives) {
  PageAdvice advice;
  EXPECT_TRUE(check(smapsOf(kHeader, "ac sd"), &advice).ok());
  EXPECT_TRUE(advice.dumped && !advice.huge && !advice.small);
  EXPECT_TRUE(check(smapsOf("7f0000000000-7f0000010000 rw-p 00000000 00:00 0 [heap]\n", "ac hg dd"),
                    &advice)
                  .ok());
  EXPECT_TRUE(!advice.dumped && advice.huge);
}

TEST(Movable, IsNotWhatIsSpecialAndSaysWhy) {
  const auto header = [](const char* permissions, const char* rest) {
    return text("7f0000000000-7f0000010000 ", permissions, " 00000000 ", rest, "\n");
  };
  expectRefused(smapsOf(header("rw-p", "08:01 77 /a/file"), "ac"), "of a file, /a/file");
  expectRefused(smapsOf(header("r--p", "00:00 0"), "ac"), "not both readable and writable");
  expectRefused(smapsOf(kHeader, "ac"), "the calling thread's stack", kPages.from - 1);
  for (const auto& [flag, why] : {std::pair("sh", "shared with other processes"),
                                  {"ht", "of huge pages"},
                                  {"ex", "executable"},
                                  {"gd", "a stack"},
                                  {"lo", "locked (mlock)"},
                                  {"dc", "withheld from children"},
                                  {"wf", "wiped in children"},
                                  {"um", "watched by userfaultfd"},
                                  {"sl", "sealed"},
                                  {"io", "a device's"}})
    expectRefused(smapsOf(kHeader, text("ac ", flag)), why);
}

TEST(Movable, IsNotWhatIsNotThere) {
  const std::string flags = "VmFlags: rd wr mr mw me ac \n";
  for (const std::string& smaps :
       {std::string(), "7f0000000000-7f0000005000 rw-p 00000000 00:00 0 \n" + flags,
        "7f0000003000-7f0000010000 rw-p 00000000 00:00 0 \n" + flags,
        "7f0000000000-7f0000003000 rw-p 00000000 00:00 0 \n" + flags +
            "7f0000004000-7f0000010000 rw-p 00000000 00:00 0 \n" + flags}) {
    PageAdvice advice;
    const Status status = check(smaps, &advice);
    EXPECT_EQ(status.code(), Code::InvalidArgument) << smaps;
    EXPECT_NE(status.text().find("no memory is mapped at 0x7f00000"), std::string::npos);
  }
}

TEST(Movable, IsNotWhatIsPinned) {
  std::istringstream none("VmLck:\t 8 kB\nVmPin:\t       0 kB\n"), some("VmPin:\t      12 kB\n");
  EXPECT_TRUE(checkUnpinned(none).ok());
  const Status status = checkUnpinned(some);
  EXPECT_EQ(status.code(), Code::InvalidUsage);
  EXPECT_NE(status.text().find("pinned 12 KiB of this process"), std::string::npos);
}

TEST(Movable, AsThisProcessHasIt) {
  constexpr std::size_t kMapped = 1 << 16;
  const auto map = [](int protection, int kind) {
    return ::mmap(nullptr, kMapped, protection, kind | MAP_ANONYMOUS, -1, 0);
  };
  const auto checkThere = [](void* memory) {
    PageAdvice advice;
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    const Status status = checkMovable({at, at + kMapped}, &advice);
    return status.text();
  };
  void* const good = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
  EXPECT_EQ(checkThere(good), "");
  void* const shared = map(PROT_READ | PROT_WRITE, MAP_SHARED);
  EXPECT_NE(checkThere(shared).find("of a file, /dev/zero"), std::string::npos);
  void* const fixed = map(PROT_READ, MAP_PRIVATE);
  EXPECT_NE(checkThere(fixed).find("not both readable"), std::string::npos);
  ASSERT_EQ(::munmap(static_cast<std::byte*>(good) + 8192, 4096), 0);
  EXPECT_NE(checkThere(good).find("no memory is mapped"), std::string::npos);
  ::munmap(good, kMapped);
  ::munmap(shared, kMapped);
  ::munmap(fixed, kMapped);
}

TEST(Movable, ShownFilesAreRecognised) {
  const auto shows = [](const std::string& maps, std::uint64_t inode, std::uint64_t offset) {
    std::istringstream stream(maps);
    return showsFile(stream, kPages, inode, offset);
  };
  const std::string two =
      "7f0000002000-7f0000004000 rw-s 00010000 00:01 9 /memfd:weft (deleted)\n"
      "7f0000004000-7f0000008000 rw-s 00012000 00:01 9 /memfd:weft (deleted)\n";
  EXPECT_TRUE(shows(two, 9, 0x10000));
  EXPECT_FALSE(shows(two, 8, 0x10000));
  EXPECT_FALSE(shows(two, 9, 0x11000));
  EXPECT_FALSE(shows("7f0000002000-7f0000004000 rw-s 00010000 00:01 9 /memfd:weft\n", 9, 0x10000));
  EXPECT_FALSE(shows("", 9, 0x10000));
}

}  // namespace
}  // namespace weft::shm
