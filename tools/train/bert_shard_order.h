// SPDX-License-Identifier: Apache-2.0
// Who reads which file of BERT's shards when: the order of the loaders that NVIDIA's, DeepSpeed's and Habana's BERT
// recipes share (run_pretraining.py). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::train {

// What Python's random.Random(seed).shuffle does to a list: MT19937 seeded by an array, and Fisher and Yates with draws of
// as few bits as are needed, rejected until one is small enough.
void shuffleAsPython(std::span<size_t> values, uint64_t seed);

// In epoch e the sorted files are shuffled by Python's Random(seed + e); in its round f, of as many as there are files but
// the last (which those loaders open and do not learn), reader r of W has file f W + r, modulo the files F; with more
// readers than files f (W + W mod F) + r. A single file has one round. One thread at a time.
class BertShardOrder {
 public:
  // Of files that give so many batches each, none of them none. At least one file and one reader.
  BertShardOrder(std::vector<uint64_t> batchesOfFiles, uint64_t readers, uint64_t seed);

  struct Place {
    size_t file;
    uint64_t batch;  // of the file
    uint64_t visit;  // tells this reading of the file from all others, by this reader and by others
    size_t next;     // the file that this reader has after it
  };
  // Of a reader's k-th batch. Quick for ones that follow each other.
  Place place(uint64_t reader, uint64_t k);

  // The files of a reader in an epoch, by round.
  std::vector<size_t> filesOf(uint64_t reader, uint64_t epoch) const;

 private:
  // Where a reader was last.
  struct Cursor {
    uint64_t epoch = 0;
    size_t round = 0;
    uint64_t first = 0;  // the number of the round's first batch
    std::vector<size_t> files = {};
  };
  void enter(Cursor& cursor, uint64_t reader, uint64_t epoch) const;
  void advance(Cursor& cursor, uint64_t reader) const;

  std::vector<uint64_t> batches_;
  uint64_t readers_, seed_;
  std::vector<Cursor> cursors_;
};

}  // namespace weft::train
