// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/tokenizer.h"

#include <random>

#include "vocabulary.h"

namespace weft::tokens {
namespace {

using Tokens = std::vector<int32_t>;

Tokens encode(const Tokenizer& tokenizer, const std::string& text) {
  Tokens tokens;
  Encoder(tokenizer).encode(text, tokens);
  return tokens;
}

std::string decode(const Tokenizer& tokenizer, const Tokens& tokens) {
  std::string text;
  for (const int32_t token : tokens) text += *tokenizer.bytesOfToken(token);
  return text;
}

const std::vector<std::string> kWords{"the",  " the", " there", " then", "ing",   " thing",
                                      "\n\n", "  ",   " café",  "aaaa",  " 2024", "日本",
                                      "'ll",  "é",    "😀",      "\t"};

std::string randomText(std::mt19937& random, size_t pieces) {
  std::string text;
  for (size_t i = 0; i < pieces; ++i) {
    if (random() % 2 == 0)
      text += kWords[random() % kWords.size()];
    else
      text += static_cast<char>(random() % 128);
  }
  return text;
}

TEST(ByteLetters, AreGpt2s) {
  EXPECT_EQ(letterOf(' '), "Ġ");
  EXPECT_EQ(letterOf('\n'), "Ċ");
  EXPECT_EQ(letterOf('!'), "!");
  EXPECT_EQ(letterOf(0xad), "\u0143") << "the last of the 68";
  std::string letters, bytes;
  for (int byte = 0; byte < 256; ++byte) {
    letters += letterOf(static_cast<uint8_t>(byte));
    bytes += static_cast<char>(byte);
  }
  EXPECT_EQ(bytesOf(letters), bytes);
  EXPECT_FALSE(bytesOf("a b")) << "a space is no letter";
  EXPECT_FALSE(bytesOf("日"));
  EXPECT_FALSE(bytesOf("\xff"));
}

TEST(Tokenizer, SplitsAsGpt2) {
  const Tokenizer tokenizer(filesOf({}));
  using Pieces = std::vector<std::string_view>;
  EXPECT_EQ(tokenizer.piecesOf("I'll be   there\n\n in 2024! naïve café 日本"),
            (Pieces{"I", "'ll", " be", "  ", " there", "\n\n", " in", " 2024", "!", " naïve",
                    " café", " 日本"}));
  EXPECT_EQ(tokenizer.piecesOf("don't DON'T\u00a0x  "),
            (Pieces{"don", "'t", " DON", "'", "T", "\u00a0", "x", "  "}));
  EXPECT_EQ(tokenizer.piecesOf("a\u180e b"), (Pieces{"a", "\u180e", " b"}))
      << "no space since Unicode 6.3";
}

// The words of the paper: of the pairs of the line the one of the lowest rank, all its occurrences from left to right.
Tokens joinedSlowly(const Tokenizer& tokenizer, const Pairs& merges, std::string_view piece) {
  std::vector<std::string> line;
  for (const char c : piece) line.push_back(letterOf(static_cast<uint8_t>(c)));
  while (true) {
    size_t best = merges.size();
    for (size_t i = 1; i < line.size(); ++i)
      for (size_t rank = 0; rank < best; ++rank)
        if (merges[rank] == std::pair(line[i - 1], line[i])) best = rank;
    if (best == merges.size()) break;
    for (size_t i = 1; i < line.size(); ++i) {
      if (std::pair(line[i - 1], line[i]) != merges[best]) continue;
      line[i - 1] += line[i];
      line.erase(line.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  Tokens tokens;
  for (const std::string& token : line) tokens.push_back(*tokenizer.idOf(token));
  return tokens;
}

TEST(Tokenizer, JoinsWhatThePaperJoins) {
  const Pairs merges = learnMerges(kWords, 40);
  const Tokenizer tokenizer(filesOf(merges));
  EXPECT_EQ(tokenizer.size(), static_cast<int64_t>(vocabularyOf(merges).size()));
  std::mt19937 random(1);
  Encoder encoder(tokenizer);
  for (int i = 0; i < 60; ++i) {
    const std::string text = randomText(random, random() % 30);
    Tokens wanted, tokens;
    for (const std::string_view piece : tokenizer.piecesOf(text)) {
      const Tokens joined = joinedSlowly(tokenizer, merges, piece);
      wanted.insert(wanted.end(), joined.begin(), joined.end());
    }
    encoder.encode(text, tokens);
    ASSERT_EQ(tokens, wanted) << text;
    ASSERT_EQ(decode(tokenizer, tokens), text);
  }
}

TEST(Tokenizer, DoesNotTakeTheSquareOfAPiece) {
  const Tokenizer tokenizer(filesOf({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}}));
  const std::string text(8'003, 'a');
  const Tokens tokens = encode(tokenizer, text);
  EXPECT_EQ(tokens.size(), 1'002u);
  EXPECT_EQ(decode(tokenizer, tokens), text);
}

TEST(Tokenizer, TakesTheEndOfATextForText) {
  const Tokenizer tokenizer(filesOf({}));
  EXPECT_EQ(encode(tokenizer, kEnd).size(), 13u);
  EXPECT_EQ(decode(tokenizer, {*tokenizer.idOf(kEnd)}), kEnd);
  EXPECT_EQ(tokenizer.bytesOfToken(257), nullptr);
}

nlohmann::json tokenizerJson() {
  const auto added = [](int id, const char* content, bool special, bool normalized) {
    return nlohmann::json{
        {"id", id},        {"content", content},   {"special", special},      {"lstrip", special},
        {"rstrip", false}, {"single_word", false}, {"normalized", normalized}};
  };
  return {{"added_tokens",
           {added(257, kEnd, true, false), added(300, "  ", false, true),
            added(301, "   ", false, true), added(302, "é", false, true),
            added(303, "e\u0301!", false, false)}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabularyOf({{"a", "b"}})}, {"merges", {"a b"}}}}};
}

class TokenizerFile : public testing::Test {
 protected:
  VocabularyFiles read(const nlohmann::json& json) const {
    return readTokenizerFile(folder_.write("t.json", json.dump()));
  }
  std::string refusal(const nlohmann::json& json) const {
    const std::string text = refusalOf([&] { Tokenizer{read(json)}; });
    const std::string file = folder_ / "t.json: ";
    return text.starts_with(file) ? text.substr(file.size()) : text;
  }
  TemporaryFolder folder_;
};

TEST_F(TokenizerFile, HasTokensThatNoMergeMakes) {
  const Tokenizer tokenizer(read(tokenizerJson()));
  EXPECT_EQ(tokenizer.size(), 304);
  EXPECT_EQ(encode(tokenizer, "ab      x"), (Tokens{256, 301, 301, 'x'})) << "the longest first";
  EXPECT_EQ(encode(tokenizer, "e\u0301"), (Tokens{302})) << "composed";
  EXPECT_EQ(encode(tokenizer, "e\u0301!"), (Tokens{303})) << "looked for before that";
  EXPECT_EQ(encode(tokenizer, kEnd).size(), 13u);
  EXPECT_TRUE(tokenizer.splitsAtLines());

  nlohmann::json pairs = tokenizerJson();
  pairs["model"]["merges"] = nlohmann::json::parse(R"([["a", "b"]])");
  pairs["added_tokens"][1]["content"] = "\n\n";
  EXPECT_FALSE(Tokenizer(read(pairs)).splitsAtLines());
}

TEST_F(TokenizerFile, IsOfAKnownKind) {
  nlohmann::json other = tokenizerJson();
  other["model"]["type"] = "Unigram";
  EXPECT_EQ(refusal(other),
            "its model is \"Unigram\", and the byte-level \"BPE\" of GPT-2 and NeoX is known");
  other = tokenizerJson();
  other["pre_tokenizer"] = {{"type", "Metaspace"}};
  EXPECT_EQ(refusal(other),
            "its pre_tokenizer is {\"type\":\"Metaspace\"}, and GPT-2's and NeoX's "
            "ByteLevel without add_prefix_space is known");
  other = tokenizerJson();
  other["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_EQ(refusal(other), "its normalizer is {\"type\":\"Lowercase\"}, and none or NFC is known");
  other = tokenizerJson();
  other["added_tokens"][1]["rstrip"] = true;
  EXPECT_EQ(refusal(other), "added token \"  \" has rstrip, which is not known here");
  other["added_tokens"] = {{{"id", -1}, {"content", "x"}}};
  EXPECT_EQ(refusal(other),
            "{\"content\":\"x\",\"id\":-1} in added_tokens has no content or no id");
  other = tokenizerJson();
  other["model"]["merges"] = {1};
  EXPECT_EQ(refusal(other), folder_ / "t.json, merge 0: 1 is no pair of tokens");
  other["model"].erase("merges");
  EXPECT_EQ(refusal(other),
            "its merges are null, no list of them: it is cut off or of another kind; name the "
            "tokenizer.json that was published with the model");
  EXPECT_EQ(refusal({1, 2}),
            "its model is null, and the byte-level \"BPE\" of GPT-2 and NeoX is known");
}

TEST_F(TokenizerFile, HasNoMergesWhereAllTokensAreBytesAndMarks) {
  nlohmann::json bytes = tokenizerJson();
  bytes["model"]["merges"] = nlohmann::json::array();
  EXPECT_EQ(refusal(bytes),
            "it has no merges, and the token \"ab\" of " + folder_ / "t.json" +
                " needs one: it is empty or cut off; name the file that was published with that "
                "vocabulary");
  bytes["added_tokens"][1]["content"] = "ab";
  EXPECT_EQ(refusal(bytes), "accepted") << "no merge makes what is added";
  bytes["model"]["vocab"] = vocabularyOf({});
  EXPECT_EQ(refusal(bytes), "accepted");
}

class TwoFiles : public testing::Test {
 protected:
  std::string refusal(const std::string& vocabulary, const std::string& merges) const {
    return refusalOf([&] {
      Tokenizer{readVocabularyAndMerges(folder_.write("vocab.json", vocabulary),
                                        folder_.write("merges.txt", merges))};
    });
  }
  std::string refusalOfVocabulary(const std::string& vocabulary) const {
    return refusal(vocabulary, mergesText(merges_));
  }
  std::string refusalOfMerges(const std::string& merges) const {
    return refusal(vocabularyOf(merges_).dump(), merges);
  }
  const Pairs merges_ = {{"a", "b"}, {"ab", "c"}};
  const TemporaryFolder folder_;
  const std::string vocabulary_ = folder_ / "vocab.json", mergesFile_ = folder_ / "merges.txt";
};

TEST_F(TwoFiles, SayWhereTheVocabularyIsWrong) {
  const std::string whole = vocabularyOf(merges_).dump(1);
  EXPECT_EQ(refusalOfVocabulary(whole), "accepted");
  EXPECT_EQ(refusalOfVocabulary(whole.substr(0, 40)),
            vocabulary_ + ", line 5, byte 40: it is no JSON, or cut off");
  EXPECT_EQ(refusalOfVocabulary("[]"),
            vocabulary_ + ": it is no vocabulary: an object that gives each token its id");
  EXPECT_EQ(refusalOfVocabulary("{\"a\": -1}"),
            vocabulary_ + ": the id of \"a\" is -1, no number from 0 on");
  EXPECT_EQ(refusalOfVocabulary("{\"a\": 1, \"b\": 1}"),
            vocabulary_ + ": \"a\" and \"b\" have one id, 1");
  EXPECT_EQ(refusalOfVocabulary("{\"a\": 1}"),
            vocabulary_ +
                ": it has no token \"Ā\" for the byte 0: it is cut off, or not of a "
                "byte-level BPE");
  EXPECT_EQ(refusal("{}", ""),
            vocabulary_ + ": it is no vocabulary: an object that gives each token its id");
}

TEST_F(TwoFiles, SayWhereTheMergesAreWrong) {
  EXPECT_EQ(refusalOfMerges("#version: 0.2\r\na b\r\nab c\r\n"), "accepted");
  EXPECT_EQ(refusalOfMerges("a b\nab c"), "accepted") << "no version, and no end of the last line";
  EXPECT_EQ(refusalOfMerges("#version: 0.2\na b\nab"),
            mergesFile_ + ", line 3: \"ab\" is no pair of tokens with a space between them");
  EXPECT_EQ(refusalOfMerges("#version: 0.2\n\na b\n"),
            mergesFile_ + ", line 2: \"\" is no pair of tokens with a space between them");
  EXPECT_EQ(refusalOfMerges("a b c\n"),
            mergesFile_ + ", line 1: \"a b c\" is no pair of tokens with a space between them");
  EXPECT_EQ(refusalOfMerges("a b\nb a\n"),
            mergesFile_ + ", line 2: \"b a\" needs the token \"ba\", which " + vocabulary_ +
                " does not have: they are not of each other");
  EXPECT_EQ(refusalOfMerges("a b\na b\n"),
            mergesFile_ + ", line 2: \"a b\" is there a second time");
}

TEST_F(TwoFiles, HaveNoMergesWhereAllTokensAreBytesAndMarks) {
  for (const char* none : {"", "#version: 0.2\n"}) {
    EXPECT_EQ(refusalOfMerges(none),
              mergesFile_ + ": it has no merges, and the token \"ab\" of " + vocabulary_ +
                  " needs one: it is empty or cut off; name the file that was published with that "
                  "vocabulary");
    EXPECT_EQ(refusal(vocabularyOf({}).dump(), none), "accepted");
  }
}

TEST_F(TwoFiles, AreOfEachOther) {
  nlohmann::json large = vocabularyOf({});
  for (int i = 0; i < 1000; ++i) large["more" + std::to_string(i)] = 1000 + i;
  EXPECT_EQ(refusal(large.dump(), "#version: 0.2\n"),
            vocabulary_ +
                ": it has 1257 tokens, and bytes and merges make 256: the merges are cut "
                "off, or of another vocabulary");
  EXPECT_EQ(refusalOf([&] { static_cast<void>(readVocabularyAndMerges(folder_ / "none", "")); }),
            "cannot read " + folder_ / "none" + ": No such file or directory");
}

}  // namespace
}  // namespace weft::tokens
