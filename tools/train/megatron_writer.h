// SPDX-License-Identifier: Apache-2.0
// Writes Megatron's indexed datasets, as megatron_data.h reads them and Megatron's preprocess_data.py writes them: a
// document is one sequence, and one without tokens has none.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::train {

class MegatronWriter {
 public:
  // Tokens are below `vocabulary`: they take two bytes below 65,500, and four above. Throws Failure if
  // PREFIX.bin cannot be written.
  MegatronWriter(const std::string& prefix, int64_t vocabulary);
  // What was begun and not finished is removed.
  ~MegatronWriter();
  MegatronWriter(const MegatronWriter&) = delete;
  MegatronWriter& operator=(const MegatronWriter&) = delete;

  void append(std::span<const int32_t> tokens);
  void endDocument();
  // Both files are there under their names, and whole. Until then those of before are.
  void finish();

  uint64_t tokens() const { return tokens_; }
  uint64_t documents() const { return documents_.size() - 1; }
  int64_t openTokens() const { return open_; }  // of the document that has not ended
  size_t tokenBytes() const { return tokenBytes_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  static File create(const std::string& file);
  static void close(File file, const std::string& name);
  static void write(std::FILE* file, const void* bytes, size_t count, const std::string& name);
  void writeIndex() const;

  std::string tokensFile_, indexFile_;
  File file_;
  size_t tokenBytes_;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> documents_{0};
  std::vector<uint16_t> narrow_;
  uint64_t tokens_ = 0;
  int64_t open_ = 0;
};

}  // namespace weft::train
