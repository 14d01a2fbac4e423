// SPDX-License-Identifier: Apache-2.0
#include "tools/train/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "tools/train/failure.h"
#include "tools/train/utf8.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> filesBelow(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

constexpr std::string_view kIndexMagic{"MMIDIDX\0\0", 9};

bool isIndex(const fs::path& file) {
  char head[kIndexMagic.size()] = {};
  std::ifstream(file, std::ios::binary).read(head, sizeof head);
  return std::string_view(head, sizeof head) == kIndexMagic;
}

// The tokens of a Megatron dataset are no text, and the file of tokens alone does not say so.
void refuseTokens(const fs::path& file) {
  const fs::path index = fs::path(file).replace_extension(".idx");
  if (!isIndex(file) && !(file.extension() == ".bin" && isIndex(index))) return;
  throw Failure(
      Exit::kData,
      fmt::format("{} holds tokens of a Megatron dataset ({} is its index), not text, and "
                  "would be learned as bytes; name it by --megatron {}",
                  file.string(), index.string(), fs::path(file).replace_extension().string()));
}

void refuseSamples(const fs::path& file) {
  if (file.extension() != ".hdf5" && file.extension() != ".h5") return;
  throw Failure(Exit::kData, fmt::format("{} holds samples for BERT, not text, and would be "
                                         "learned as bytes; name its folder, --data {}",
                                         file.string(), file.parent_path().string()));
}

void append(const fs::path& file, TextIs text, std::vector<uint8_t>& bytes) {
  refuseTokens(file);
  refuseSamples(file);
  errno = 0;
  const size_t before = bytes.size();
  std::ifstream stream(file, std::ios::binary);
  bytes.insert(bytes.end(), std::istreambuf_iterator<char>(stream), {});
  if (!stream.is_open() || stream.bad()) {
    throw Failure(Exit::kData,
                  fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)));
  }
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text == TextIs::kUtf8) requireUtf8(all.substr(before), file.string());
}

}  // namespace

void requireFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_regular_file(status)) return;
  throw Failure(Exit::kData, fmt::format("cannot read {}: {}", path,
                                         error ? error.message() : "it is no regular file"));
}

std::vector<uint8_t> readCorpus(const std::string& path, TextIs text) {
  std::vector<uint8_t> bytes;
  try {
    if (!fs::is_directory(path)) {
      requireFile(path);
      append(path, text, bytes);
    } else {
      for (const fs::path& file : filesBelow(path)) append(file, text, bytes);
    }
  } catch (const fs::filesystem_error& error) {
    throw Failure(Exit::kData, fmt::format("cannot read the training text: {}", error.what()));
  }
  return bytes;
}

}  // namespace weft::train
