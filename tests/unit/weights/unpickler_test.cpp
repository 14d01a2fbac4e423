// SPDX-License-Identifier: Apache-2.0
#include "tools/train/weights/unpickler.h"

#include "files.h"

namespace weft::train {
using namespace test;
namespace {

const std::string kStart = "\x80\x02", kDict = "ccollections\nOrderedDict\n)R";

std::string textOf(const std::string& text) {
  return "X" + rawBytes<uint32_t>({static_cast<uint32_t>(text.size())}) + text;
}

// A tensor of `elements` in entry 0.
std::string tensorOf(const std::string& shape, const std::string& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + textOf("storage") + "ctorch\nHalfStorage\n" +
         textOf("0") + textOf("cpu") + "K\x06tQK\1" + shape + strides + "\x89" + kDict + "tR";
}

const std::string kVector = tensorOf("K\x02\x85", "K\x03\x85");

std::vector<PickledTensor> read(const std::string& pickle) {
  return tensorsOfPickle(bytesOf(pickle), "X", 1000);
}
std::string refusalOfPickle(const std::string& pickle) {
  return refusalOf([&] { read(pickle); });
}

TEST(Unpickler, ReadsTheTensorsOfADict) {
  const auto tensors =
      read(kStart + kDict + "(" + textOf("w") + kVector + textOf("n") + "\x8a\x02\xff\xff" +
           textOf("p") + "ctorch._utils\n_rebuild_parameter\n" + kVector + "\x88" + kDict +
           "\x87Ru}" + textOf("_metadata") + kDict + "sb.");
  ASSERT_EQ(tensors.size(), 2u) << "a number is none";
  EXPECT_EQ(tensors[0].name, "w");
  EXPECT_EQ(tensors[0].storageType, "HalfStorage");
  EXPECT_EQ(tensors[0].storage, "0");
  EXPECT_EQ(tensors[0].storageElements, 6);
  EXPECT_EQ(tensors[0].offset, 1);
  EXPECT_EQ(tensors[0].shape, std::vector<int64_t>{2});
  EXPECT_EQ(tensors[0].strides, std::vector<int64_t>{3});
  EXPECT_EQ(tensors[1].name, "p");
}

TEST(Unpickler, FindsAStateDictAmongWhatElseIsSaved) {
  const std::string inner = kDict + textOf("w") + kVector + "s";
  for (const char* key : {"model", "module", "state_dict"}) {
    const auto tensors = read(kStart + "}(" + textOf("epoch") + "K\x05" + textOf(key) + inner +
                              textOf("args") + "](K\1K\2e" + "u.");
    ASSERT_EQ(tensors.size(), 1u);
    EXPECT_EQ(tensors[0].name, "w");
  }
  EXPECT_EQ(refusalOfPickle(kStart + "}" + textOf("optimizer") + inner + "s."),
            "X, byte 1174: the pickle is no dict of tensors, as state_dict() gives");
}

TEST(Unpickler, CallsNothing) {
  const std::string says = "which no state dict of tensors has; it was not called";
  EXPECT_EQ(refusalOfPickle(kStart + "cos\nsystem\n(" + textOf("touch /tmp/here") + "tR."),
            "X, byte 1002: the pickle names os.system, " + says);
  EXPECT_EQ(
      refusalOfPickle(kStart + kDict + textOf("w") + "cbuiltins\neval\n(" + textOf("1") + "tRs."),
      "X, byte 1035: the pickle names builtins.eval, " + says);
  EXPECT_EQ(refusalOfPickle(kStart + "ctorch\nload\n."),
            "X, byte 1002: the pickle names torch.load, " + says);
  for (const char opcode : {'i', 'o', '\x81', '\x82', '\x92', '\x93', 'P', '\x97'})
    EXPECT_NE(refusalOfPickle(kStart + "(" + opcode + "os\nsystem\n.").find("was executed"),
              std::string::npos)
        << opcode;
}

TEST(Unpickler, SaysWhereAPickleIsWrong) {
  const struct {
    std::string pickle, refusal;
  } cases[] = {
      {"", "0: the pickle ends early; is the file truncated?"},
      {"\x80\x04.", "0: pickle protocol 4; torch.save writes 2 unless it is told otherwise"},
      {"X\xff\xff\xff\xff", "5: the pickle ends early; is the file truncated?"},
      {"cno end", "7: the pickle ends early; is the file truncated?"},
      {".", "0: the pickle takes what is not there"},
      {"(.", "1: the pickle takes what is not there"},
      {"t.", "0: the pickle takes what is not there"},
      {"h\x05.", "0: the pickle recalls what it has not kept"},
      {"N.", "1: the pickle is no dict of tensors, as state_dict() gives"},
      {"NNa.", "2: here should be a list"},
      {"}(Nu.", "3: a dict's key has no value"},
      {"NN"
       "b.",
       "2: here should be a dict that is given attributes"},
      {"\x8a\x09", "2: the pickle ends early; is the file truncated?"},
      {"\x8a\x09"
       "123456789.",
       "0: a number of more than 64 bits"},
      {")Q.", "1: this is no storage of a tensor"},
      {"NQ.", "1: here should be a storage's tuple"},
      {"NNR.", "2: here should be a call's arguments"},
      {"N)R.", "2: here should be the name that is called"},
      {"ccollections\nOrderedDict\nN\x85R.",
       "27: a call of collections.OrderedDict with other arguments than torch.save's"},
      {"ctorch._utils\n_rebuild_tensor_v2\n)R.",
       "34: a call of torch._utils._rebuild_tensor_v2 with other arguments than torch.save's"},
      {"}(" + textOf("w") + kVector + textOf("w") + kVector + "u.", ": tensor w is there twice"},
  };
  for (const auto& [pickle, refusal] : cases) {
    const std::string said = refusalOfPickle(pickle);
    EXPECT_EQ(said.find("X, byte 1"), 0u) << said;
    EXPECT_TRUE(said.ends_with(refusal)) << said << "\nis not " << refusal;
  }
}

// Each list holds the one before, and the first the last: no stack grows, and all is freed.
TEST(Unpickler, DeepAndCyclicValuesAreNoTrouble) {
  std::string deep = "]q\x01";
  for (int i = 0; i < 200000; ++i) deep += "\x85";
  EXPECT_NE(refusalOfPickle(deep + "."), "accepted");
  std::string cycle = "]q\x01";
  for (int i = 0; i < 1000; ++i)
    cycle +=
        "]h\x01"
        "a";
  EXPECT_NE(refusalOfPickle(cycle + "h\x01"
                                    "a."),
            "accepted");
}

}  // namespace
}  // namespace weft::train
