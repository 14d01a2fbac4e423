// SPDX-License-Identifier: Apache-2.0
#include "perf/common/report_file.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/temporary_folder.h"

namespace weft::tools {
namespace {

namespace fs = std::filesystem;

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool isDevice(const std::string& path) {
  return fs::symlink_status(path).type() == fs::file_type::character;
}

// What stops `action`, or nothing.
template <class Action>
std::string complaintOf(Action action) {
  try {
    action();
  } catch (const CannotWrite& error) {
    return error.what();
  }
  return {};
}

class Report : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_ / name; }
  long files() const { return std::distance(fs::directory_iterator(folder_.path()), {}); }
  // A device of our own, as those of the machine are everybody's: 1:3 is the null device, 1:7 the
  // full one.
  bool makeDevice(const std::string& name, unsigned minor) const {
    if (::mknod(at(name).c_str(), S_IFCHR | 0666, ::makedev(1, minor)) != 0) return false;
    return std::ofstream(at(name)).is_open();  // some folders have no devices
  }

  test::TemporaryFolder folder_;
};

TEST_F(Report, AppearsWholeOrNotAtAll) {
  const ReportFile file(at("report"));
  EXPECT_EQ(files(), 0);
  file.write("one");
  EXPECT_EQ(contentOf(at("report")), "one");
  file.write("two");
  EXPECT_EQ(contentOf(at("report")), "two");
  EXPECT_EQ(files(), 1);
}

TEST_F(Report, KeepsThePermissionsOfTheOneBefore) {
  std::ofstream(at("report")) << "old";
  fs::permissions(at("report"), fs::perms::owner_read | fs::perms::owner_write);
  ReportFile(at("report")).write("new");
  EXPECT_EQ(contentOf(at("report")), "new");
  EXPECT_EQ(fs::status(at("report")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Report, ThatCannotBeIsSeenAtOnce) {
  for (const std::string& path : {at("nowhere/report"), folder_.path()}) {
    EXPECT_NE(complaintOf([&] { ReportFile tried(path); }), "") << path;
    EXPECT_NE(complaintOf([&] { ReportStream tried(path); }), "") << path;
  }
  EXPECT_EQ(complaintOf([&] {
              ReportFile tried(folder_.path());
            }).find("cannot write '" + folder_.path() + "'"),
            0u);
  EXPECT_EQ(files(), 0);
}

TEST_F(Report, LinksAreFollowed) {
  fs::create_directory(at("else"));
  std::ofstream(at("else/old")) << "old";
  fs::create_symlink("else/old", at("link"));
  fs::create_symlink("link", at("link-to-link"));
  fs::create_symlink("else/new", at("link-to-nothing"));
  ReportFile(at("link-to-link")).write("1");
  ReportFile(at("link-to-nothing")).write("2");
  EXPECT_EQ(contentOf(at("else/old")), "1");
  EXPECT_EQ(contentOf(at("else/new")), "2");
  for (const char* link : {"link", "link-to-link", "link-to-nothing"})
    EXPECT_TRUE(fs::is_symlink(at(link))) << link;
}

TEST_F(Report, ALinkAmongItsNamesIsNoDraft) {
  std::ofstream(at("precious")) << "precious";
  for (const char* trap : {"report.partial", "report.tmp", "report.new"})
    fs::create_symlink("precious", at(trap));
  ReportFile(at("report")).write("new");
  EXPECT_EQ(contentOf(at("precious")), "precious");
}

TEST_F(Report, ADeviceStaysADevice) {
  if (!makeDevice("null", 3)) GTEST_SKIP() << "only root makes devices";
  fs::create_symlink("null", at("link"));
  for (const char* name : {"null", "link"}) {
    const ReportFile file(at(name));
    EXPECT_FALSE(file.isReplaced());
    file.write("gone");
    ReportStream(at(name)).write("gone");
  }
  EXPECT_TRUE(isDevice(at("null")));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(files(), 2);
}

TEST_F(Report, AFullDeviceIsTold) {
  if (!makeDevice("full", 7)) GTEST_SKIP() << "only root makes devices";
  EXPECT_NE(complaintOf([&] { ReportFile(at("full")).write("x"); }).find("No space left"),
            std::string::npos);
  EXPECT_NE(complaintOf([&] { ReportStream(at("full")).write("x"); }).find("No space left"),
            std::string::npos);
}

TEST_F(Report, AFullDiskIsSeenAtOnce) {
  fs::create_directory(at("disk"));
  if (::mount("none", at("disk").c_str(), "tmpfs", 0, "size=16k") != 0)
    GTEST_SKIP() << "only root mounts";
  ReportFile(at("disk/report")).write("before");
  std::ofstream(at("disk/filler")) << std::string(64 << 10, 'x');
  const std::string complaint = complaintOf([&] { ReportFile tried(at("disk/report")); });
  const std::string kept = contentOf(at("disk/report"));
  ::umount(at("disk").c_str());
  EXPECT_NE(complaint.find("No space left"), std::string::npos) << complaint;
  EXPECT_EQ(kept, "before");
}

TEST_F(Report, AFileThatIsMountedIsWrittenInPlace) {
  std::ofstream(at("real")) << "longer than what follows";
  std::ofstream(at("mounted")) << "";
  if (::mount(at("real").c_str(), at("mounted").c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "only root mounts";
  const std::string complaint = complaintOf([&] { ReportFile(at("mounted")).write("new"); });
  ::umount(at("mounted").c_str());
  EXPECT_EQ(complaint, "");
  EXPECT_EQ(contentOf(at("real")), "new");
  EXPECT_EQ(files(), 2);
}

TEST_F(Report, AFifoIsWrittenToItsReader) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  const ReportFile file(at("fifo"));
  std::string read;
  std::thread reader([&] { read = contentOf(at("fifo")); });
  const std::string large(1 << 20, 'x');  // more than a pipe holds
  file.write(large);
  reader.join();
  EXPECT_EQ(read, large);
  EXPECT_TRUE(fs::is_fifo(at("fifo")));
}

TEST_F(Report, AFileWithoutANameIsWrittenTo) {
  std::ofstream(at("gone")) << "longer than what follows";
  std::FILE* const open = std::fopen(at("gone").c_str(), "r+");
  fs::remove(at("gone"));
  const std::string path = "/proc/self/fd/" + std::to_string(::fileno(open));
  const ReportFile file(path);
  EXPECT_FALSE(file.isReplaced());
  file.write("new");
  EXPECT_EQ(contentOf(path), "new");
  EXPECT_EQ(files(), 0);
  std::fclose(open);
}

TEST_F(Report, MinusIsStandardOutput) {
  fs::current_path(folder_.path());
  testing::internal::CaptureStdout();
  ReportFile("-").write("one ");
  ReportStream("-").write("two");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "one two");
  EXPECT_EQ(files(), 0);
  EXPECT_EQ(besides({"", "-"}), stderr);
  EXPECT_EQ(besides({"", "file"}), stdout);
  fs::current_path("/");
}

TEST_F(Report, AStreamIsReadWhileItGrows) {
  std::ofstream(at("stream")) << "old";
  const ReportStream stream(at("stream"));
  EXPECT_EQ(contentOf(at("stream")), "");
  stream.write("one\n");
  EXPECT_EQ(contentOf(at("stream")), "one\n");
  stream.write("two\n");
  EXPECT_EQ(contentOf(at("stream")), "one\ntwo\n");
}

}  // namespace
}  // namespace weft::tools
