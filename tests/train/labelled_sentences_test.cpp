// SPDX-License-Identifier: Apache-2.0
#include "tools/train/labelled_sentences.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/temporary_folder.h"
#include "tools/train/failure.h"
#include "tools/train/model_shape.h"

namespace weft::train {
namespace {

using test::TemporaryFolder;

const std::string kHead = "sentence\tlabel\n";

std::string refusalOfFile(const std::string& content) {
  const TemporaryFolder folder;
  const std::string file = folder.write("train.tsv", content);
  try {
    readLabelledSentences(file, 2);
    return "accepted";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), 65);
    const std::string what = failure.what();
    EXPECT_EQ(what.find(file), 0u) << what;
    return what.substr(file.size());
  }
}

TEST(LabelledSentences, AreReadAsSst2HasThem) {
  const TemporaryFolder folder;
  const auto read = readLabelledSentences(
      folder.write("f", kHead + "a fine film \t1\r\n\t0\nno \"quotes\" matter\t1"), 2);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].text, "a fine film ");
  EXPECT_EQ(read[0].label, 1);
  EXPECT_EQ(read[1].text, "");
  EXPECT_EQ(read[1].label, 0);
  EXPECT_EQ(read[2].text, "no \"quotes\" matter");
  auto other = read;
  EXPECT_EQ(fingerprintOf(read), fingerprintOf(other));
  other[2].label = 0;
  EXPECT_NE(fingerprintOf(read), fingerprintOf(other));
}

TEST(LabelledSentences, AreRefusedByFileAndLine) {
  EXPECT_EQ(refusalOfFile(""),
            ": line 1 is not the head of SST-2's files, 'sentence<TAB>label', as --task "
            "classification learns: ''");
  EXPECT_EQ(refusalOfFile("index\tsentence\n1\tgood\n").find(": line 1 is not the head of "), 0u);
  EXPECT_EQ(refusalOfFile(kHead), " has a head and no sentence");
  EXPECT_EQ(refusalOfFile(kHead + "good\t1\nbad 0\n"),
            ": line 3 is not a sentence, one tab and a label: 'bad 0'");
  EXPECT_EQ(refusalOfFile(kHead + "good\t1\t1\n"),
            ": line 2 is not a sentence, one tab and a label: 'good\t1\t1'");
  for (const char* label : {"", "2", "-1", "1 ", "x", "99999999999999999999"})
    EXPECT_EQ(refusalOfFile(kHead + "good\t" + label + "\n"),
              std::string(": line 2 has no label of 0 to 1 after its tab (--classes says how many "
                          "there are): 'good\t") +
                  label + "'");
  EXPECT_EQ(refusalOfFile(kHead + "bad\xff\t1\n").find(", line 2"), 0u)
      << refusalOfFile(kHead + "bad\xff\t1\n");
  const std::string shown = refusalOfFile(kHead + std::string(500, 'x') + "\n");
  EXPECT_TRUE(shown.ends_with("xxx...'")) << shown;
  EXPECT_LT(shown.size(), 150u);
  EXPECT_THROW(readLabelledSentences("/nowhere", 2), Failure);
}

std::vector<LabelledSentence> someSentences(size_t count) {
  std::vector<LabelledSentence> all;
  for (size_t i = 0; i < count; ++i)
    all.push_back({std::string(i, 'a'), static_cast<int64_t>(i % 2)});
  return all;
}

TEST(LabelledSentences, BecomeSamplesWithPadding) {
  const auto sentences = someSentences(10);
  const LabelledSamples samples(byteVocabulary(), sentences, 6, 4, 1,
                                LabelledSamples::Order::kAsTheyAre);
  const Batch batch = samples.batch(0, 2, 2);
  const int64_t pad = kBytes, start = kBytes + 1, separator = kBytes + 2;
  EXPECT_EQ(batch.tokens, (std::vector<int64_t>{start, 'a', 'a', separator, pad, pad,  //
                                                start, 'a', 'a', 'a', separator, pad}));
  EXPECT_EQ(batch.used, (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(batch.labels, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(batch.segments, std::vector<int64_t>(12, 0));
  EXPECT_EQ(samples.batch(2, 1, 1).tokens[5], separator) << "what is too long is cut";
  EXPECT_EQ(samples.stepsOfAll(), 3u);
  EXPECT_EQ(samples.batch(2, 0, 4).labels,
            (std::vector<int64_t>{0, 1, Batch::kNoTarget, Batch::kNoTarget}));
}

TEST(LabelledSentences, AreEachLearnedOnceAnEpoch) {
  const auto sentences = someSentences(11);
  const LabelledSamples samples(byteVocabulary(), sentences, 16, 11, 7,
                                LabelledSamples::Order::kShuffled);
  const Batch first = samples.batch(0, 0, 11), second = samples.batch(1, 0, 11);
  EXPECT_EQ(std::set(first.used.begin(), first.used.end()).size(), 11u);
  EXPECT_EQ(std::set(second.used.begin(), second.used.end()).size(), 11u);
  EXPECT_NE(first.used, second.used) << "in another order";
  EXPECT_EQ(samples.batch(1, 4, 2).used, (std::vector<int64_t>{second.used[4], second.used[5]}));
}

}  // namespace
}  // namespace weft::train
