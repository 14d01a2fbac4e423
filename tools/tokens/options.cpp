// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

#include "perf/common/command_line.h"
#include "tools/train/failure.h"

namespace weft::tokens {
namespace {

using train::Exit;
using train::Failure;

constexpr const char* kAbout =
    "Turns texts into tokens, by the byte-level BPE of GPT-2 and NeoX, and writes them as "
    "Megatron's indexed\n"
    "dataset: PREFIX_text_document.bin and .idx, named as Megatron's preprocess_data.py names "
    "them, which\n"
    "weft-train reads (--megatron PREFIX_text_document). The files are the same for any number of "
    "threads.\n"
    "With --decode it turns such a dataset into text again.";

void addTexts(CLI::App& app, Options& options) {
  app.add_option("--input", options.inputs,
                 "Texts in UTF-8: files, or folders with all files below them")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("");
  const std::map<std::string, Documents> kinds{{"by-name", Documents::kByName},
                                               {"json", Documents::kJson},
                                               {"line", Documents::kLines},
                                               {"file", Documents::kFiles}};
  app.add_option(
         "--documents", options.documents,
         "A document is a line of JSON, a line that is not empty, or a file; by-name: a line "
         "of JSON in .json and .jsonl, and else a file")
      ->transform(CLI::CheckedTransformer(kinds).description(""))
      ->type_name("{by-name,json,line,file}")
      ->default_str("by-name");
  app.add_option("--json-key,--json-keys", options.jsonKey,
                 "The key of the text in a line of JSON");
  app.add_option("--output-prefix", options.outputPrefix,
                 "PREFIX of the two files, _KEY_document is put behind it");
  app.add_option("--decode", options.decode,
                 "PREFIX of a dataset (.bin and .idx): print its documents as lines of JSON");
}

void addVocabulary(CLI::App& app, Options& options) {
  app.add_option("--vocab-file", options.vocabulary,
                 "vocab.json of GPT-2's kind, with --merge-file");
  app.add_option("--merge-file", options.merges, "merges.txt of that vocabulary");
  app.add_option("--tokenizer-file", options.tokenizer,
                 "tokenizer.json of NeoX's or GPT-2's kind, in place of these two");
  app.add_flag("--append-eod", options.appendEnd,
               "End each document with the token of --eod; --decode leaves it out again");
  app.add_option("--eod", options.endToken, "The token that ends a document");
}

void validate(const Options& o) {
  if (o.inputs.empty() == o.decode.empty())
    throw Failure(Exit::kUsage,
                  "what is to be done? Name texts, --input FILE, or a dataset, --decode PREFIX, "
                  "and not both (--help lists the options)");
  if (!o.inputs.empty() && o.outputPrefix.empty())
    throw Failure(Exit::kUsage, "where shall the tokens go? Name it, --output-prefix PREFIX");
  const bool two = !o.vocabulary.empty() && !o.merges.empty(), one = !o.tokenizer.empty();
  const bool some = !o.vocabulary.empty() || !o.merges.empty();
  if (one ? some : !two)
    throw Failure(Exit::kUsage,
                  "which tokens? Name --vocab-file vocab.json and --merge-file merges.txt, or "
                  "--tokenizer-file tokenizer.json alone");
}

}  // namespace

Options parseOptions(int argc, const char* const* argv) {
  Options options;
  CLI::App app(kAbout, "weft-preprocess");
  app.option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  addTexts(app, options);
  addVocabulary(app, options);
  app.add_option("--threads,--workers", options.threads, "Threads that encode; 0 = cores")
      ->check(CLI::Range(0, 4096));
  app.add_flag("--quiet", options.quiet, "Print nothing but errors");
  tools::addVersion(app, "weft-preprocess");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::exit(tools::runProgram("weft-preprocess", [&]() { return app.exit(help); }));
  } catch (const CLI::ParseError& error) {
    throw Failure(Exit::kUsage, fmt::format("{} (--help lists the options)", error.what()));
  }
  validate(options);
  return options;
}

}  // namespace weft::tokens
