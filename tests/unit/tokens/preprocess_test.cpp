// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/preprocess.h"

#include <fmt/format.h>

#include <iterator>

#include "tests/command.h"
#include "tests/unit/megatron/dataset.h"
#include "tools/tokens/documents.h"
#include "tools/tokens/progress.h"
#include "tools/train/megatron_data.h"
#include "vocabulary.h"

namespace weft::tokens {
namespace {

class Preprocess : public testing::Test {
 protected:
  Options optionsFor(const std::vector<std::string>& inputs) const {
    Options options;
    options.inputs = inputs;
    options.outputPrefix = folder_ / "out";
    options.quiet = true;
    options.threads = 1;
    return options;
  }
  std::string contentOf(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string written() const {
    return contentOf("out_text_document.idx") + contentOf("out_text_document.bin");
  }
  std::string refusal(const Options& options) const {
    return refusalOf([&] { encodeTexts(options, tokenizer_); });
  }

  const Pairs merges_ = {{"a", "b"}, {"Ġ", "ab"}};
  const Tokenizer tokenizer_{filesOf(merges_)};
  TemporaryFolder folder_;
};

// A byte is its own id.
constexpr uint16_t kSpaceAb = 257, kEndId = 258;

TEST_F(Preprocess, WritesWhatMegatronWrites) {
  folder_.write("x.jsonl",
                "{\"text\": \"b ab\", \"n\": 1}\n{\"text\": \"\"}\n\n{\"text\":\"a\"}\n");
  Options options = optionsFor({folder_ / "x.jsonl"});
  options.appendEnd = true;
  encodeTexts(options, tokenizer_);
  const train::MegatronData data(folder_ / "out_text_document");
  EXPECT_EQ(data.index().lengths, (std::vector<int32_t>{3, 2})) << "no tokens, no sequence";
  EXPECT_EQ(contentOf("out_text_document.bin"),
            test::tokensOf({'b', kSpaceAb, kEndId, 'a', kEndId}));
  std::string index = test::indexOf({3, 2});
  const uint64_t entries = 4, documents[4] = {0, 1, 1, 2};
  index.resize(34 + 2 * 12);
  std::memcpy(index.data() + 26, &entries, sizeof entries);
  index.append(reinterpret_cast<const char*>(documents), sizeof documents);
  EXPECT_EQ(contentOf("out_text_document.idx"), index) << "but a document";
}

TEST_F(Preprocess, TakesFilesLinesAndFolders) {
  folder_.write("in/b.txt", "ab\r\n\nb\n");
  folder_.write("in/a/x.txt", "b");
  Options options = optionsFor({folder_ / "in"});
  encodeTexts(options, tokenizer_);
  EXPECT_EQ(contentOf("out_text_document.bin"),
            test::tokensOf({'b', 256, '\r', '\n', '\n', 'b', '\n'}));
  options.documents = Documents::kLines;
  encodeTexts(options, tokenizer_);
  EXPECT_EQ(contentOf("out_text_document.bin"), test::tokensOf({'b', 256, 'b'}));
  EXPECT_EQ(train::MegatronData(folder_ / "out_text_document").index().lengths.size(), 3u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out_text_document.bin.part"));
}

// Lines with all that a cut could do wrong: spaces around line ends, lines of one letter, letters that are not ASCII.
std::string longText() {
  const char* const kLines[] = {"ab ab", " ab", "ab ", "", "é", "'ll", "don't", "\t", "x"};
  std::string text;
  for (uint32_t i = 0; text.size() < 40'000; i = i * 1664525 + 1013904223)
    text += std::string(kLines[(i >> 16) % std::size(kLines)]) + "\n";
  return text;
}

TEST_F(Preprocess, GivesTheSameFilesWithAnyThreads) {
  const std::string text = longText();
  folder_.write("a.txt", text);
  folder_.write("b.txt", text.substr(0, 3'001));
  Options options = optionsFor({folder_ / "a.txt", folder_ / "b.txt"});
  options.bundle = 500;
  encodeTexts(options, tokenizer_);
  const std::string alone = written();
  options.threads = 3;
  encodeTexts(options, tokenizer_);
  EXPECT_TRUE(written() == alone);

  std::vector<int32_t> whole;
  Encoder(tokenizer_).encode(text, whole);
  std::vector<int64_t> first;
  const train::MegatronData data(folder_ / "out_text_document");
  ASSERT_EQ(static_cast<size_t>(data.index().lengths.at(0)), whole.size());
  data.append(0, 0, whole.size(), tokenizer_.size(), first);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), whole.begin()))
      << "cut where it does not matter";
}

TEST_F(Preprocess, SaysWhereATextIsWrong) {
  folder_.write("good.txt", "ab");
  folder_.write("bad.txt", "ab\n\xe9 la carte");
  Options options = optionsFor({folder_ / "good.txt", folder_ / "bad.txt"});
  options.threads = 2;
  EXPECT_EQ(refusal(options), folder_ /
                                  "bad.txt, line 2, byte 3: 0xe9 is not UTF-8 there; iconv -t "
                                  "UTF-8 converts other encodings");
  EXPECT_EQ(written(), "") << "nothing is left of it";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out_text_document.bin.part"));

  folder_.write("bad.jsonl", "{\"text\": \"a\"}\n{\"text\": \"a}\n");
  options.inputs = {folder_ / "bad.jsonl"};
  EXPECT_EQ(refusal(options), folder_ /
                                  "bad.jsonl, line 2: it is no object of JSON; --documents says "
                                  "what a text is");
  options.jsonKey = "body";
  EXPECT_EQ(refusal(options), folder_ /
                                  "bad.jsonl, line 1: it has no text \"body\"; name its key as "
                                  "--json-key");
  options.inputs = {folder_ / "none"};
  EXPECT_EQ(refusal(options), "cannot read " + folder_ / "none" + ": No such file or directory");
  options.inputs = {"/dev/null"};
  EXPECT_EQ(refusal(options), "cannot read /dev/null: it is no regular file");
}

TEST(ProgressLine, SaysHowLongItTakes) {
  EXPECT_EQ(progressLine(31'400'000, 125'600'000, 1024, 9'876'543, 3.14),
            "31.4 of 125.6 MB (25 %), 1,024 documents, 9,876,543 tokens, 10.0 MB/s, 0:09 left");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999'999), "999,999");
  EXPECT_EQ(grouped(1'000'000), "1,000,000");
}

class PreprocessCommand : public testing::Test {
 protected:
  PreprocessCommand() {
    folder_.write("vocab.json", vocabularyOf(merges_).dump());
    folder_.write("merges.txt", mergesText(merges_));
  }
  test::Outcome run(const std::string& flags) const {
    return test::runCommand(fmt::format("cd {} && {} {} 2>&1", folder_.path(),
                                        test::toolBeside("weft-preprocess"), flags));
  }
  static constexpr const char* kVocabulary = "--vocab-file vocab.json --merge-file merges.txt ";
  const Pairs merges_ = {{"a", "b"}, {"Ġ", "ab"}};
  TemporaryFolder folder_;
};

TEST_F(PreprocessCommand, TurnsTextIntoTokensAndBack) {
  folder_.write("x.jsonl", "{\"text\":\"b ab é \\n\"}\n{\"text\":\"a\"}\n");
  const auto there =
      run(fmt::format("{}--input x.jsonl --output-prefix out --append-eod", kVocabulary));
  EXPECT_EQ(there.exitCode, 0);
  EXPECT_EQ(
      there.output.substr(0, there.output.find(" in ")),
      "out_text_document.bin and .idx: 2 documents, 10 tokens of 2 bytes each, of 35 bytes of "
      "text,");
  const auto back = run(fmt::format("{}--decode out_text_document.idx --append-eod", kVocabulary));
  EXPECT_EQ(back.exitCode, 0);
  EXPECT_EQ(back.output, "{\"text\":\"b ab é \\n\"}\n{\"text\":\"a\"}\n");

  folder_.write("merges.txt", mergesText({}));
  folder_.write("vocab.json", vocabularyOf({}).dump());
  const auto other = run(fmt::format("{}--decode out_text_document", kVocabulary));
  EXPECT_EQ(other.exitCode, 65);
  EXPECT_EQ(other.output,
            "weft-preprocess: out_text_document.bin, byte 2: token 257 is not below the model's "
            "vocabulary of 257; name the tokenizer's as --vocab-size\n");
}

TEST_F(PreprocessCommand, RefusesWhatCannotBe) {
  const auto expect = [&](int code, const std::string& flags, const std::string& sentence) {
    const auto outcome = run(flags);
    EXPECT_EQ(outcome.exitCode, code) << flags;
    EXPECT_EQ(outcome.output, "weft-preprocess: " + sentence + "\n");
  };
  expect(
      64, kVocabulary,
      "what is to be done? Name texts, --input FILE, or a dataset, --decode PREFIX, and not both "
      "(--help lists the options)");
  expect(64, "--input merges.txt", "where shall the tokens go? Name it, --output-prefix PREFIX");
  const std::string which =
      "which tokens? Name --vocab-file vocab.json and --merge-file merges.txt, or --tokenizer-file "
      "tokenizer.json alone";
  const std::string texts = "--input merges.txt --output-prefix out ";
  expect(64, texts, which);
  expect(64, texts + kVocabulary + "--tokenizer-file x", which);
  expect(64, texts + kVocabulary + "--append-eod --eod '[SEP]'",
         "--append-eod: the vocabulary has no token [SEP]; name the one that ends a document as "
         "--eod");
  expect(65, texts + "--tokenizer-file none", "cannot read none: No such file or directory");
  expect(73, "--input merges.txt --output-prefix none/out " + std::string(kVocabulary),
         "cannot write none/out_text_document.bin: No such file or directory");
}

}  // namespace
}  // namespace weft::tokens
