// SPDX-License-Identifier: Apache-2.0
// Megatron's indexed datasets: PREFIX.bin holds tokens, PREFIX.idx says which of them are a sequence.
//
//   "MMIDIDX\0\0" | u64 version 1 | u8 type | u64 sequences n | u64 document entries d
//   i32 length[n] | i64 offset in PREFIX.bin[n] | i64 document[d], 0 ... n | optional i8 mode[n]
//
// little endian, as megatron-core's indexed_dataset.py writes it. Types: 1 u8, 2 i8, 3 i16, 4 i32,
// 5 i64, 8 u16; 6 and 7 are floating point and hold no tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/train/mapped_file.h"

namespace weft::train {

struct MegatronIndex {
  size_t tokenBytes = 2;
  bool isSigned = false;
  std::vector<int32_t> lengths;  // tokens
  std::vector<int64_t> offsets;  // bytes
  uint64_t fingerprint = 0;      // of the file
};

// `file` is what errors call it. Throws Failure, with the offset of what is wrong.
MegatronIndex parseMegatronIndex(std::span<const uint8_t> bytes, const std::string& file);

// Throws Failure unless `tokens`, of so many bytes, is what the index is of.
void checkTokensOf(const MegatronIndex& index, const std::string& indexFile,
                   const std::string& tokens, uint64_t bytes);

// Both files; the tokens are mapped, not read.
class MegatronData {
 public:
  // `prefix` may also be the name of one of the two. Throws Failure.
  explicit MegatronData(const std::string& prefix);

  const MegatronIndex& index() const { return index_; }
  const std::string& file() const { return file_; }
  uint64_t tokens() const;
  // Tells datasets apart: of the index, which is small.
  uint64_t fingerprint() const { return index_.fingerprint; }

  // Appends tokens [from, from + count) of a sequence. Throws Failure for one that is not below
  // `vocabulary`.
  void append(size_t sequence, size_t from, size_t count, int64_t vocabulary,
              std::vector<int64_t>& to) const;

 private:
  int64_t tokenAt(const uint8_t* at) const;

  std::string file_;
  MegatronIndex index_;
  MappedFile tokens_;
};

}  // namespace weft::train
