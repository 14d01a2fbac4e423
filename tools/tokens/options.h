// SPDX-License-Identifier: Apache-2.0
// The command line of weft-preprocess.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::tokens {

// What is a document of an input: by its name, a line of JSON (.json, .jsonl) or the whole file.
enum class Documents { kByName, kJson, kLines, kFiles };

struct Options {
  std::vector<std::string> inputs;  // files and folders
  Documents documents = Documents::kByName;
  std::string jsonKey = "text";
  std::string outputPrefix;
  std::string decode;  // prefix of a dataset, in place of inputs

  std::string vocabulary, merges;  // GPT-2's two files
  std::string tokenizer;           // or one tokenizer.json
  bool appendEnd = false;
  std::string endToken = "<|endoftext|>";

  int threads = 0;                  // 0 = cores
  size_t bundle = size_t{1} << 18;  // bytes of text, about, that a thread encodes at a time
  bool quiet = false;
};

// Reads and checks the command line. --help prints and exits with 0. Throws train::Failure with a sentence.
Options parseOptions(int argc, const char* const* argv);

}  // namespace weft::tokens
