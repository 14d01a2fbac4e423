// SPDX-License-Identifier: Apache-2.0
#include "base/knobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "scoped_env.h"

namespace weft::inline base {
namespace {

using test::ScopedEnv;

std::int64_t integerOf(Knob knob) {
  std::int64_t value = -77;
  const Status status = readInteger(knob, &value);
  EXPECT_TRUE(status.ok()) << status.text();
  return value;
}

TEST(Knobs, DefaultsParse) {
  for (const KnobInfo& info : knobTable()) {
    ScopedEnv unset(info.name, nullptr);
    EXPECT_FALSE(isSet(info.knob));
    if (*info.fallback == '\0') continue;
    std::int64_t number;
    bool flag;
    std::string words;
    const bool numeric = info.type == KnobType::Integer || info.type == KnobType::ByteSize;
    const Status status = numeric                       ? readInteger(info.knob, &number)
                          : info.type == KnobType::Flag ? readFlag(info.knob, &flag)
                                                        : readText(info.knob, &words);
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

TEST(Knobs, NamesAreUniqueAndDocumented) {
  std::set<std::string> names;
  for (const KnobInfo& info : knobTable()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(std::string(info.name).starts_with("WEFT_"));
    EXPECT_TRUE(std::string(info.doc).ends_with(".")) << info.name;
  }
  EXPECT_LE(names.size(), 32u);
}

TEST(Knobs, IntegerFromEnvironment) {
  ScopedEnv set("WEFT_TIMEOUT_MS", "2500");
  EXPECT_EQ(integerOf(Knob::TimeoutMs), 2500);
}

TEST(Knobs, EmptyCountsAsUnset) {
  ScopedEnv set("WEFT_TIMEOUT_MS", "");
  EXPECT_FALSE(isSet(Knob::TimeoutMs));
  EXPECT_EQ(integerOf(Knob::TimeoutMs), 600000);
}

TEST(Knobs, AutoOnlyWhereItIsTheDefault) {
  ScopedEnv segment("WEFT_SEGMENT_KB", "AUTO");
  EXPECT_EQ(integerOf(Knob::SegmentKb), kKnobAuto);
  ScopedEnv timeout("WEFT_TIMEOUT_MS", "auto");
  std::int64_t value;
  EXPECT_EQ(readInteger(Knob::TimeoutMs, &value).code(), Code::InvalidArgument);
}

TEST(Knobs, BytesTakeSuffixes) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"0", 0},        {"17", 17},      {"4K", 4096},
      {"2m", 2 << 20}, {"1G", 1 << 30}, {"1024G", std::int64_t{1} << 40}};
  for (const auto& [written, bytes] : cases) {
    ScopedEnv set("WEFT_ONE_SHOT_MAX", written);
    EXPECT_EQ(integerOf(Knob::OneShotMax), bytes) << written;
  }
}

TEST(Knobs, BadNumbersAreNamed) {
  for (const char* written : {"x", "12x", "4KK", "-1", "-1K", "1025G", "9999999999999999999", "1.5",
                              " 1", "9223372036854775807G"}) {
    ScopedEnv set("WEFT_ONE_SHOT_MAX", written);
    std::int64_t value;
    const Status status = readInteger(Knob::OneShotMax, &value);
    ASSERT_EQ(status.code(), Code::InvalidArgument) << written;
    EXPECT_NE(status.text().find(std::string("WEFT_ONE_SHOT_MAX=") + written), std::string::npos);
    EXPECT_NE(status.text().find("fix:"), std::string::npos);
    EXPECT_EQ(status.data().variable, "WEFT_ONE_SHOT_MAX");
  }
}

TEST(Knobs, Flags) {
  const std::pair<const char*, bool> cases[] = {
      {"1", true}, {"0", false}, {"On", true}, {"false", false}};
  for (const auto& [written, expected] : cases) {
    ScopedEnv set("WEFT_REPRODUCIBLE", written);
    bool value = !expected;
    ASSERT_TRUE(readFlag(Knob::Reproducible, &value).ok());
    EXPECT_EQ(value, expected) << written;
  }
  ScopedEnv set("WEFT_REPRODUCIBLE", "2");
  bool value;
  EXPECT_EQ(readFlag(Knob::Reproducible, &value).code(), Code::InvalidArgument);
}

TEST(Knobs, ChoicesComeBackAsSpelledInTheTable) {
  std::string value;
  ScopedEnv set("WEFT_AUTH", "Require");
  ASSERT_TRUE(readText(Knob::Auth, &value).ok());
  EXPECT_EQ(value, "require");
  ScopedEnv wrong("WEFT_AUTH", "requir");
  const Status status = readText(Knob::Auth, &value);
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  EXPECT_NE(status.text().find("auto, require, off"), std::string::npos) << status.text();
}

TEST(Knobs, UnknownNameGetsTheNearest) {
  ScopedEnv typo("WEFT_TIMEOUT_SM", "5");
  ScopedEnv foreign("WEFT_SOMETHING_ELSE_ENTIRELY", "5");
  const std::vector<std::string> lines = unknownKnobs();
  const auto has = [&](const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  EXPECT_TRUE(has("unknown variable WEFT_TIMEOUT_SM is ignored; did you mean WEFT_TIMEOUT_MS?"));
  EXPECT_TRUE(has("unknown variable WEFT_SOMETHING_ELSE_ENTIRELY is ignored"));
}

TEST(Knobs, KnownNamesAreNotComplainedAbout) {
  const std::size_t before = unknownKnobs().size();
  ScopedEnv set("WEFT_TIMEOUT_MS", "5");
  EXPECT_EQ(unknownKnobs().size(), before);
}

}  // namespace
}  // namespace weft::inline base
