// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include "folders.h"

namespace weft::test {
using namespace checkpoint;
namespace {

std::string fileOf(const std::string& header, const std::string& data = "") {
  std::string file;
  for (int byte = 0; byte < 8; ++byte)
    file += static_cast<char>(std::uint64_t{header.size()} >> (8 * byte) & 0xff);
  return file + header + data;
}

class Safetensors : public testing::Test {
 protected:
  Status open(const std::string& content) {
    fs::remove(dir_ / "x.safetensors");  // written over, it would be flushed
    fillFile(dir_ / "x.safetensors", content);
    return SafetensorsFile::open(dir_ / "x.safetensors", &file_);
  }
  TemporaryFolder dir_;
  SafetensorsFile file_;
};

TEST_F(Safetensors, ComeBackAsWritten) {
  std::string header;
  const std::vector<Tensor> tensors = {{"a \"quoted\" \\ name", reduce::DType::F32, {2, 3}},
                                       {"none", reduce::DType::F16, {4, 0}},
                                       {"scalar", reduce::DType::BF16, {}}};
  ASSERT_TRUE(safetensorsHeader(tensors, {{"format", "pt"}}, &header).ok());
  EXPECT_EQ(header.size() % 8, 0u);
  const float values[6] = {1, 2, 3, 4, 5, 6};
  std::string data(reinterpret_cast<const char*>(values), sizeof(values));
  data += std::string("\x40\x40", 2);  // 3 in bfloat16
  const Status opened = open(header + data);
  ASSERT_TRUE(opened.ok()) << opened.text();
  ASSERT_EQ(file_.tensors().size(), 3u);
  EXPECT_EQ(file_.metadata().at("format"), "pt");
  EXPECT_EQ(file_.tensors()[0].name, tensors[0].name);
  EXPECT_EQ(file_.tensors()[0].shape, tensors[0].shape);
  float read[2] = {}, three = 0;
  ASSERT_TRUE(file_.read(file_.tensors()[0], 4, 2, reduce::DType::F32, read).ok());
  EXPECT_EQ(read[1], 6);
  ASSERT_TRUE(file_.read(file_.tensors()[2], 0, 1, reduce::DType::F32, &three).ok());
  EXPECT_EQ(three, 3);
}

TEST_F(Safetensors, OfOthersAreReadInAnyOrderAndSpacing) {
  const Status opened = open(fileOf(
      R"({"b":{"data_offsets":[4,8],"dtype":"F32","shape":[1]}, "a":{"dtype":"F16","shape":[2,1],)"
      R"("data_offsets":[0,4]}}   )",
      "01234567"));
  ASSERT_TRUE(opened.ok()) << opened.text();
  EXPECT_EQ(file_.tensors()[0].name, "a");
}

TEST_F(Safetensors, WhatIsWrongIsSaid) {
  for (const auto& [header, wrong] :
       {std::pair(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})",
                  "tensor 'a' has no shape"),
        std::pair(R"({"__metadata__":["format"]})", "its metadata are no object")}) {
    const Status opened = open(fileOf(header, "01234567"));
    EXPECT_EQ(opened.code(), Code::InvalidArgument);
    EXPECT_NE(opened.text().find(wrong), std::string::npos) << opened.text();
  }
}

TEST_F(Safetensors, NothingWrongIsTaken) {
  const auto one = [](const std::string& entry) {
    return fileOf("{\"a\":" + entry + "}", "01234567");
  };
  const std::string deep = "{\"a\":" + std::string(100000, '[');
  for (const std::string& content :
       {std::string(),
        std::string("1234567"),
        std::string(8, '\xff'),
        fileOf("{"),
        fileOf("[]"),
        std::string("\x10\0\0\0\0\0\0\0{}", 10),
        fileOf("null"),
        fileOf(deep),
        one("3"),
        one(R"({"dtype":"F32","shape":[2]})"),
        one(R"({"dtype":"I64","shape":[1],"data_offsets":[0,8]})"),
        one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"),
        one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
        one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
        one(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})"),
        one(R"({"dtype":"F32","shape":[9223372036854775808,2,0],"data_offsets":[0,0]})"),
        one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
        one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
        one(R"({"dtype":"F32","shape":[1],"data_offsets":[8,4]})"),
        one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8.0]})"),
        one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})"),
        one(R"({"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]})"),
        fileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
               R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
               "01234567"),
        fileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
               R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
               "01234567"),
        fileOf(R"({"__metadata__":{"x":1}})")}) {
    const Status opened = open(content);
    EXPECT_EQ(opened.code(), Code::InvalidArgument) << content.substr(0, 200);
    EXPECT_NE(opened.text().find("x.safetensors"), std::string::npos) << opened.text();
  }
}

// Whatever bytes are changed in a header: an error or a valid file, never more.
TEST_F(Safetensors, SurviveAnyByte) {
  const std::string good = fileOf(
      R"({"a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"b":{"dtype":"F16","shape":[2],)"
      R"("data_offsets":[4,8]}})",
      "01234567");
  int refused = 0;
  for (std::size_t at = 0; at + 8 < good.size(); ++at) {
    for (const char other : {'\0', '9', '"', '}', '\xff'}) {
      std::string bad = good;
      bad[at] = other;
      const Status opened = open(bad);
      refused += opened.ok() ? 0 : 1;
      for (const Tensor& t : opened.ok() ? file_.tensors() : std::vector<Tensor>()) {
        std::vector<float> values(t.elements());
        EXPECT_TRUE(file_.read(t, 0, values.size(), reduce::DType::F32, values.data()).ok());
      }
    }
  }
  EXPECT_GT(refused, 300);
}

TEST_F(Safetensors, NamesThatCannotBeWrittenAreErrors) {
  std::string header;
  for (const char* const name : {"__metadata__", "\xff\xfe"})
    EXPECT_EQ(safetensorsHeader({{name, reduce::DType::F32, {1}}}, {}, &header).code(),
              Code::InvalidArgument);
}

}  // namespace
}  // namespace weft::test
