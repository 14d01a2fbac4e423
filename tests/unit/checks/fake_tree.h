// SPDX-License-Identifier: Apache-2.0
// A folder that stands for the root of a machine: tests write its /proc and /sys.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace weft::checks {

class FakeTree : public ::testing::Test {
 protected:
  FakeTree()
      : root_(std::filesystem::path(::testing::TempDir()) /
              ("weft_tree_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~FakeTree() override { std::filesystem::remove_all(root_); }

  std::string root() const { return root_; }
  void write(const std::string& path, const std::string& content) const {
    const std::filesystem::path file = root_.string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content << '\n';
  }

 private:
  const std::filesystem::path root_;
};

}  // namespace weft::checks
