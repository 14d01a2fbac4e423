// SPDX-License-Identifier: Apache-2.0
// weft-preprocess: texts into the tokens of a Megatron dataset, and back.
#include <fmt/format.h>

#include "perf/common/program.h"
#include "tools/tokens/options.h"
#include "tools/tokens/preprocess.h"
#include "tools/tokens/tokenizer.h"
#include "tools/train/failure.h"

namespace weft::tokens {
namespace {

VocabularyFiles readFiles(const Options& options) {
  return options.tokenizer.empty() ? readVocabularyAndMerges(options.vocabulary, options.merges)
                                   : readTokenizerFile(options.tokenizer);
}

int main(int argc, char** argv) {
  try {
    const Options options = parseOptions(argc, argv);
    const Tokenizer tokenizer(readFiles(options));
    if (options.decode.empty())
      encodeTexts(options, tokenizer);
    else
      decodeDataset(options, tokenizer);
    return 0;
  } catch (const train::Failure& failure) {
    fmt::print(stderr, "weft-preprocess: {}\n", failure.what());
    return failure.code();
  }
}

}  // namespace
}  // namespace weft::tokens

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-preprocess",
                                 [&]() { return weft::tokens::main(argc, argv); });
}
