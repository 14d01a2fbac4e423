// SPDX-License-Identifier: Apache-2.0
// Writes the elements of a BERT shard to standard output, as weft-train has read them. usage: print_bert_shard FILE LENGTH
#include <cstdio>
#include <cstdlib>

#include "tools/train/bert_shards.h"

int main(int, char** argv) {
  using namespace weft::train;
  const BertShards shards(argv[1], static_cast<size_t>(std::atoi(argv[2])));
  const ShardSamples s = shards.read({0, 0, shards.samples(), true});
  const auto print = [](const char* name, const auto& values) {
    std::printf("%s", name);
    for (const int value : values) std::printf(" %d", value);
    std::printf("\n");
  };
  print("input_ids", s.inputIds);
  print("input_mask", s.inputMask);
  print("segment_ids", s.segmentIds);
  print("masked_lm_positions", s.maskedPositions);
  print("masked_lm_ids", s.maskedIds);
  print("next_sentence_labels", s.nextSentenceLabels);
  return 0;
}
