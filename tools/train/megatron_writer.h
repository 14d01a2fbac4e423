// SPDX-License-Identifier: Apache-2.0
// Writes Megatron's indexed datasets, as megatron_data.h reads them and Megatron's preprocess_data.py writes them: a
// document is one sequence, and one without tokens has none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/train/output_file.h"

namespace weft::train {

class MegatronWriter {
 public:
  // Tokens are below `vocabulary`: they take two bytes below 65,500, and four above. Throws Failure if
  // PREFIX.bin cannot be written.
  MegatronWriter(const std::string& prefix, int64_t vocabulary);
  void append(std::span<const int32_t> tokens);
  void endDocument();
  // Both files are there under their names, and whole. Until then those of before are, and what was begun
  // is removed if this is not called.
  void finish();

  uint64_t tokens() const { return tokens_; }
  uint64_t documents() const { return documents_.size() - 1; }
  int64_t openTokens() const { return open_; }  // of the document that has not ended
  size_t tokenBytes() const { return tokenBytes_; }

 private:
  void writeIndex(OutputFile& file) const;

  const std::string indexName_;
  OutputFile file_;  // of tokens
  size_t tokenBytes_;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> documents_{0};
  std::vector<uint16_t> narrow_;
  uint64_t tokens_ = 0;
  int64_t open_ = 0;
};

}  // namespace weft::train
