// SPDX-License-Identifier: Apache-2.0
// The files that weights come in, and what is wrong with them.
#include <bit>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "files.h"
#include "tools/train/weights/file_formats.h"
#include "tools/train/weights/weights_writer.h"

namespace weft::train {
using namespace test;
namespace {

std::string at(size_t byte, const std::string& why) {
  return "X, byte " + std::to_string(byte) + ": " + why;
}

std::string contentOf(const std::string& file) {
  std::ostringstream content;
  content << std::ifstream(file, std::ios::binary).rdbuf();
  return content.str();
}

class Formats : public testing::Test {
 protected:
  // A state dict of two tensors and a third name of the first.
  std::string torchFile(uint64_t narrow = 0xffffffff) const {
    const auto writer =
        torchWriter(folder_ / "x.pt", {{"a", {2, 3}}, {"b", {}}}, {{"c", 0}}, narrow);
    writer->append(values_);
    writer->append(std::vector{7.0f});
    writer->finish();
    return contentOf(folder_ / "x.pt");
  }

  TemporaryFolder folder_;
  std::vector<float> values_{1, 2, 3, 4, 5, std::bit_cast<float>(0x7fa12345u)};
};

template <class T>
T numberAt(const std::string& file, size_t at) {
  T number;
  std::memcpy(&number, file.data() + at, sizeof number);
  return number;
}

// A tensor of one dimension in one of the types that a file may have.
template <class T>
std::vector<float> readAs(const std::string& type, const std::vector<T>& values) {
  const std::string file =
      safetensors(R"({"x":{"dtype":")" + type + R"(","shape":[)" + std::to_string(values.size()) +
                      R"(],"data_offsets":[0,)" + std::to_string(values.size() * sizeof(T)) + "]}}",
                  rawBytes(values));
  return floatsOf(safetensorsOf(bytesOf(file), "X").at(0));
}

TEST_F(Formats, EveryNumberOfSixteenBitsIsReadExactly) {
  std::vector<uint16_t> all(0x10000);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const std::vector<float> halves = readAs("F16", all), brains = readAs("BF16", all);
  for (const uint16_t bits : all) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double magnitude = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                             : exponent == 0 ? std::ldexp(fraction, -24)
                                             : std::ldexp(1024 + fraction, exponent - 25);
    if (std::isnan(magnitude))
      ASSERT_TRUE(std::isnan(halves[bits]));
    else
      ASSERT_EQ(halves[bits], static_cast<float>(bits >> 15 ? -magnitude : magnitude)) << bits;
    ASSERT_EQ(std::signbit(halves[bits]), bits >> 15 == 1) << bits;
    ASSERT_EQ(std::bit_cast<uint32_t>(brains[bits]), uint32_t{bits} << 16);
  }
  EXPECT_EQ(readAs<double>("F64", {1 + 0x1p-24, 1 + 0x1.8p-23}), (std::vector{1.0f, 1 + 0x1p-22f}));
}

TEST_F(Formats, WhatTorchsWriterWritesIsRead) {
  for (const uint64_t narrow : {uint64_t{0xffffffff}, uint64_t{300}}) {  // with zip64 fields
    const std::string file = torchFile(narrow);
    const std::vector<StoredTensor> tensors = tensorsOf(bytesOf(file), "X");
    ASSERT_EQ(tensors.size(), 3u);
    EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(rawBytes(floatsOf(tensors[0])), rawBytes(values_)) << "to the bit";
    EXPECT_EQ(floatsOf(tensors[1]), std::vector{7.0f});
    EXPECT_EQ(tensors[2].data, tensors[0].data);
    EXPECT_EQ((tensors[0].data - bytesOf(file).data()) % 64, 0);
    const std::vector<float> turned = floatsOf(transposed(tensors[0]));
    EXPECT_EQ(turned[1], 4);
    EXPECT_EQ(turned[2], 2);
  }
}

TEST_F(Formats, NoBeginningOfAFileIsTaken) {
  for (const std::string& whole : {torchFile(), torchFile(300)})
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
      const std::string begun = whole.substr(0, bytes);
      ASSERT_NE(refusalOf([&] { tensorsOf(bytesOf(begun), "X"); }), "accepted") << bytes;
    }
}

TEST_F(Formats, NoDamageToAFileLeavesIt) {
  const std::string whole = torchFile(300);
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 2; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    refusalOf([&] {
      for (const StoredTensor& tensor : tensorsOf(bytesOf(damaged), "X"))
        if (tensor.shape.size() < 3) floatsOf(tensor);
    });
  }
}

TEST_F(Formats, AZipThatTorchDoesNotWriteIsRefused) {
  const std::string file = torchFile();
  const auto with = [&](const std::string& what, size_t from, const std::string& bytes) {
    std::string changed = file;
    changed.replace(changed.find(what) + from, bytes.size(), bytes);
    return refusalOf([&] { tensorsOf(bytesOf(changed), "X"); });
  };
  const size_t line = file.find("PK\1\2");
  EXPECT_EQ(with("PK\1\2", 10, "\x08"),
            at(line, "archive/data.pkl is compressed or encrypted, which torch.save does not do"));
  EXPECT_EQ(with("PK\1\2", 20, std::string("\1\0\0\0", 4)),
            at(line, "archive/data.pkl is stored in 1 bytes but has " +
                         std::to_string(numberAt<uint32_t>(file, line + 24))));
  EXPECT_EQ(with("PK\1\2", 0, "XX"), at(line, "here should be a line of the zip's directory"));
  EXPECT_EQ(with("PK\3\4", 2, "XX"), "X, byte 0: here should be an entry of the zip");
  EXPECT_EQ(with("PK\5\6", 10, "\xff\xff"),
            at(file.find("PK\5\6"), "the directory of the zip archive lacks its 64-bit part"));
  EXPECT_EQ(with("PK\5\6", 0, "XX"), at(file.size(),
                                        "the zip archive has no directory at its end; "
                                        "is the file truncated?"));
}

TEST_F(Formats, AnArchiveOfSomethingElseIsRefused) {
  const std::string file = torchFile();
  // Both in the entry and in the directory.
  const auto with = [&](const std::string& what, const std::string& bytes) {
    std::string changed = file;
    for (size_t at = 0; (at = changed.find(what, at)) != std::string::npos; ++at)
      changed.replace(at, bytes.size(), bytes);
    return refusalOf([&] { tensorsOf(bytesOf(changed), "X"); });
  };
  EXPECT_EQ(with("data.pkl", "DATA.PKL"),
            "X, byte 0: the zip archive has no data.pkl: it is none of torch.save");
  EXPECT_EQ(with("archive/data/1", "archive/data/0"),
            at(file.rfind("PK\1\2", file.rfind("PK\1\2") - 1), "archive/data/0 is there twice"));
  EXPECT_EQ(with("archive/data/1", "archive/data/7").substr(0, 7), "X, byte");
  EXPECT_NE(with("archive/data/1", "archive/data/7").find("tensor b has no entry data/1"),
            std::string::npos);
  EXPECT_EQ(with("little", "BIGEND"),
            at(file.find("little"), "it was written on a big-endian machine"));
  const std::string extents("J\2\0\0\0J\3\0\0\0", 10), more("J\2\0\0\0J\4\0\0\0", 10);
  EXPECT_NE(with(extents, more).find("tensor a does not lie in its entry data/0"),
            std::string::npos);
  EXPECT_EQ(refusalOf([] { tensorsOf(bytesOf("\x80\x02\x8a\x0al"), "X"); }),
            "X, byte 0: it is of a torch before 1.6; load it there and save it again");
}

TEST_F(Formats, SafetensorsThatAreNoneAreRefused) {
  const auto refusal = [](const std::string& file) {
    return refusalOf([&] { tensorsOf(bytesOf(file), "X"); });
  };
  const auto ofEntry = [&](const std::string& entry) {
    return refusal(safetensors("{\"t\":" + entry + "}", "12345678"));
  };
  EXPECT_EQ(ofEntry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "accepted");
  EXPECT_EQ(refusal("short"), "X, byte 0: it is truncated, or no safetensors file");
  EXPECT_EQ(refusal(safetensors("{}", "") + "x"),
            "X, byte 10: the tensors overlap, or leave holes");
  const std::string noJson = "X, byte 8: the header is no valid JSON of safetensors";
  EXPECT_EQ(refusal(safetensors("[]", "")), noJson);
  EXPECT_EQ(refusal(safetensors("{\"t\":[[[[[]]]]]}", "")), noJson);
  EXPECT_EQ(refusal(safetensors(R"({"t":{},"t":{}})", "")), noJson);
  const std::string tensor = "X, byte 8: tensor t ";
  EXPECT_EQ(ofEntry("{}"), tensor + "is not {dtype, shape, data_offsets}");
  EXPECT_EQ(ofEntry(R"({"dtype":"F4","shape":[2],"data_offsets":[0,8]})"),
            tensor + "has a type that is not known here");
  EXPECT_EQ(ofEntry(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
            tensor + "has no shape");
  EXPECT_EQ(ofEntry(R"({"dtype":"F32","shape":[2],"data_offsets":[8]})"),
            tensor + "has no offsets");
  EXPECT_EQ(ofEntry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})"),
            tensor + "does not lie in the file (is it truncated?)");
  EXPECT_EQ(ofEntry(R"({"dtype":"F32","shape":[1073741824,1073741824,16],"data_offsets":[0,8]})"),
            tensor + "has not the length of its shape");
}

}  // namespace
}  // namespace weft::train
