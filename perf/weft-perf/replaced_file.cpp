// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/replaced_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace weft::perf {
namespace {

[[noreturn]] void fail(const std::string& path, const char* why) {
  throw CannotWrite("cannot write '" + path + "': " + why +
                    "; name a file in a folder that exists and that you may write to");
}

}  // namespace

ReplacedFile::ReplacedFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".partial") {
  if (std::filesystem::is_directory(path_)) fail(path_, "it is a folder");
  if (!std::ofstream(temporary_)) fail(path_, std::strerror(errno));
}

ReplacedFile::~ReplacedFile() { std::remove(temporary_.c_str()); }

void ReplacedFile::replace(const std::string& content) {
  std::ofstream file(temporary_);
  file << content;
  file.close();
  if (!file || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail(path_, std::strerror(errno));
  }
}

}  // namespace weft::perf
