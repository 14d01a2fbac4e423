// SPDX-License-Identifier: Apache-2.0
#include "tools/train/sentence_pairs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

std::span<const uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::vector<std::string> sentencesOf(const std::string& text) {
  std::vector<std::string> sentences;
  for (const auto sentence : splitSentences(bytes(text))) {
    sentences.emplace_back(sentence.begin(), sentence.end());
  }
  return sentences;
}

// No two places of it are alike, so that what follows what can be told.
std::string someText() {
  std::string text;
  for (size_t i = 0; i < 1000; ++i)
    text += fmt::format("<{}> is {} long. ", i, std::string(i % 23, 'x'));
  return text;
}

constexpr size_t kLength = 64;

SentencePairs pairsOf(const std::string& text, size_t samplesPerStep = 8, uint64_t seed = 3) {
  return {byteVocabulary(), bytes(text), kLength, samplesPerStep, seed};
}

struct Sample {
  std::vector<int64_t> tokens;  // as they were before masking, without padding
  std::vector<int64_t> masked, targets, segments;
  int64_t label;

  std::string run(size_t from, size_t to) const {
    return {tokens.begin() + static_cast<ptrdiff_t>(from),
            tokens.begin() + static_cast<ptrdiff_t>(to)};
  }
  size_t separator() const {
    return static_cast<size_t>(std::find(tokens.begin(), tokens.end(), 258) - tokens.begin());
  }
  std::string first() const { return run(1, separator()); }
  std::string second() const { return run(separator() + 1, tokens.size() - 1); }
};

Sample sampleOf(const Batch& batch, size_t index) {
  const auto row = [&](const std::vector<int64_t>& all) {
    return std::vector<int64_t>(all.begin() + static_cast<ptrdiff_t>(index * batch.length),
                                all.begin() + static_cast<ptrdiff_t>((index + 1) * batch.length));
  };
  Sample sample{
      {}, row(batch.tokens), row(batch.targets), row(batch.segments), batch.labels[index]};
  const auto used = static_cast<size_t>(batch.used[index]);
  for (size_t i = 0; i < used; ++i) {
    const bool hidden = sample.targets[i] != Batch::kNoTarget;
    sample.tokens.push_back(hidden ? sample.targets[i] : sample.masked[i]);
  }
  for (size_t i = used; i < batch.length; ++i) {
    EXPECT_EQ(sample.masked[i], 256);
    EXPECT_EQ(sample.targets[i], Batch::kNoTarget);
    EXPECT_EQ(sample.segments[i], 0);
  }
  return sample;
}

std::vector<Sample> manySamples(const SentencePairs& pairs) {
  std::vector<Sample> samples;
  for (uint64_t step = 0; step < 500; ++step) {
    const Batch batch = pairs.batch(step, 0, 8);
    for (size_t i = 0; i < 8; ++i) samples.push_back(sampleOf(batch, i));
  }
  return samples;
}

TEST(SplitSentences, AtStopsBeforeSpacesAndAtEmptyLines) {
  EXPECT_EQ(
      sentencesOf("  One.  Two is 2.5!\nThree\nfour?\n\n\nA title\n\nthe end"),
      (std::vector<std::string>{"One.", "Two is 2.5!", "Three\nfour?", "A title", "the end"}));
  EXPECT_EQ(sentencesOf(" \n\n "), std::vector<std::string>{});
}

TEST(SentencePairs, AreTwoRunsBetweenMarks) {
  const std::string text = someText();
  // Spaces between sentences are no tokens.
  std::string dense;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ' ' || text[i - 1] != '.') dense += text[i];
  }
  for (const Sample& sample : manySamples(pairsOf(text))) {
    ASSERT_EQ(sample.tokens.front(), 257);
    ASSERT_EQ(sample.tokens.back(), 258);
    const std::string first = sample.first(), second = sample.second();
    EXPECT_FALSE(first.empty());
    EXPECT_FALSE(second.empty());
    EXPECT_EQ(first.size() + second.size() + 3, sample.tokens.size());
    for (size_t i = 0; i < sample.tokens.size(); ++i) {
      EXPECT_EQ(sample.segments[i], i > sample.separator() ? 1 : 0);
    }
    ASSERT_NE(dense.find(first), std::string::npos);
    ASSERT_NE(dense.find(second), std::string::npos);
    const bool unique = first.find('<') != std::string::npos && second.size() > 8;
    if (sample.label == 0 || unique) {
      EXPECT_EQ(dense.find(first + second) != std::string::npos, sample.label == 0)
          << first << " / " << second;
    }
    if (HasFailure()) return;
  }
}

TEST(SentencePairs, HalfAreRandomAndATenthIsShort) {
  const std::vector<Sample> samples = manySamples(pairsOf(someText()));
  double random = 0, shorter = 0;
  for (const Sample& sample : samples) {
    random += static_cast<double>(sample.label);
    if (sample.tokens.size() < kLength) ++shorter;
  }
  const auto count = static_cast<double>(samples.size());
  EXPECT_NEAR(random / count, 0.5, 0.03);
  EXPECT_NEAR(shorter / count, 0.1, 0.03);
}

TEST(SentencePairs, MaskFifteenOfAHundredEightyOfThemByTheMark) {
  double marks = 0, kept = 0, others = 0;
  for (const Sample& sample : manySamples(pairsOf(someText()))) {
    double hidden = 0;
    for (size_t i = 0; i < sample.tokens.size(); ++i) {
      if (sample.targets[i] == Batch::kNoTarget) continue;
      ASSERT_LT(sample.targets[i], 256);  // [CLS] and [SEP] are never masked
      ++hidden;
      const int64_t shown = sample.masked[i];
      ++(shown == 259 ? marks : shown == sample.targets[i] ? kept : others);
    }
    EXPECT_EQ(hidden, std::max(1.0, std::round(0.15 * static_cast<double>(sample.tokens.size()))));
  }
  const double all = marks + kept + others;
  EXPECT_NEAR(marks / all, 0.8, 0.01);
  EXPECT_NEAR(kept / all, 0.1, 0.01);
  EXPECT_NEAR(others / all, 0.1, 0.01);
}

TEST(SentencePairs, ASampleDependsOnStepAndGlobalIndexOnly) {
  const std::string text = someText();
  const SentencePairs wide = pairsOf(text, 12), narrow = pairsOf(text, 4),
                      other = pairsOf(text, 12, 4);
  size_t differ = 0;
  for (uint64_t step = 0; step < 50; ++step) {
    for (uint64_t g = 0; g < 12; ++g) {
      const Batch sample = wide.batch(step, g, 1), same = narrow.batch(step * 3 + g / 4, g % 4, 1);
      EXPECT_EQ(sample.tokens, same.tokens);
      EXPECT_EQ(sample.targets, same.targets);
      EXPECT_EQ(sample.segments, same.segments);
      EXPECT_EQ(sample.labels, same.labels);
      if (sample.tokens != other.batch(step, g, 1).tokens) ++differ;
    }
  }
  EXPECT_GT(differ, 590u);
}

TEST(SentencePairs, ABatchIsItsSamples) {
  const std::string text = someText();
  const SentencePairs pairs = pairsOf(text);
  const Batch all = pairs.batch(7, 2, 4);
  for (size_t i = 0; i < 4; ++i) {
    const Sample one = sampleOf(pairs.batch(7, 2 + i, 1), 0), same = sampleOf(all, i);
    EXPECT_EQ(one.masked, same.masked);
    EXPECT_EQ(one.targets, same.targets);
    EXPECT_EQ(one.label, same.label);
  }
}

TEST(SentencePairs, LongSentencesCountAsSeveral) {
  const std::string text(10000, 'a');
  const SentencePairs pairs = pairsOf(text);
  EXPECT_EQ(pairs.sentences(), (10000 + 29) / 30);  // (64 - 3) / 2 = 30
}

TEST(SentencePairs, TooLittleTextIsRefused) {
  EXPECT_THROW(pairsOf("One. Two. Three."), Failure);
  EXPECT_NO_THROW(pairsOf("One. Two. Three. Four."));
  EXPECT_THROW(SentencePairs(byteVocabulary(), bytes(someText()), 7, 1, 1), Failure);
}

TEST(SentencePairs, TheShortestTextsWork) {
  const std::string text = "A. B. C. D.";
  for (const Sample& sample : manySamples(pairsOf(text))) {
    EXPECT_FALSE(sample.first().empty());
    EXPECT_FALSE(sample.second().empty());
  }
}

TEST(SentencePairs, WithoutNextSentencesEachFollowsInOneSegment) {
  const SentencePairs pairs(byteVocabulary(), bytes(someText()), kLength, 8, 3, false);
  const Batch batch = pairs.batch(0, 0, 64), both = pairsOf(someText()).batch(0, 0, 64);
  EXPECT_EQ(std::ranges::count(batch.labels, 1), 0);
  EXPECT_GT(std::ranges::count(both.labels, 1), 10);
  EXPECT_EQ(std::ranges::count(batch.segments, 1), 0);
}

}  // namespace
}  // namespace weft::train
