// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "tools/sim/step/model.h"

namespace weft::simulator {
namespace {

constexpr const char* kGood =
    "weft-model 1\n"
    "name two\n"
    "update ns-per-element 0.5\n"
    "layer embeddings forward-us 1 backward-us 2\n"
    "parameter words 100 no-decay\n"
    "layer block forward-us 3 backward-us 4 tensor-bytes 64 repeat 2  # two of them\n"
    "parameter weight 200\n"
    "parameter bias 5 frozen\n"
    "layer head forward-us 0 backward-us 0\n"
    "parameter output 100 tied-to words\n";

TEST(ModelFile, SaysWhatIsTrained) {
  StepModel model;
  const Status read = parseModel(kGood, "two.model", &model);
  ASSERT_TRUE(read.ok()) << read.text();
  EXPECT_EQ(model.name, "two");
  EXPECT_EQ(model.updateNsPerElement, 0.5);
  ASSERT_EQ(model.layers.size(), 4u);
  EXPECT_EQ(model.layers[2].name, "block1");
  EXPECT_EQ(model.layers[2].tensorBytes, 64u);
  EXPECT_EQ(model.layers[2].first, 3u);
  ASSERT_EQ(model.parameters.size(), 6u);
  EXPECT_EQ(model.parameters[3].name, "block1.weight");
  EXPECT_TRUE(model.parameters[4].frozen);
  EXPECT_TRUE(model.parameters[0].noDecay);
  EXPECT_EQ(model.parameters[5].tiedTo, 0);
  EXPECT_EQ(model.elements(), 510u);
  EXPECT_EQ(model.forwardNs(), 7000);
  EXPECT_EQ(model.backwardNs(), 10000);
}

TEST(ModelFile, IsReadAsItIsWritten) {
  StepModel model, again;
  ASSERT_TRUE(parseModel(kGood, "two.model", &model).ok());
  const Status read = parseModel(textOf(model), "again", &again);
  ASSERT_TRUE(read.ok()) << read.text();
  EXPECT_EQ(textOf(again), textOf(model));
}

TEST(ModelFile, TheExampleIsOne) {
  StepModel model;
  const auto file =
      std::filesystem::path(__FILE__).parent_path() / "../../../examples/models/gpt.model";
  const Status read = readModel(file, &model);
  ASSERT_TRUE(read.ok()) << read.text();
  EXPECT_EQ(model.layers.size(), 6u);
}

void expectWrong(const std::string& lines, const std::string& what) {
  StepModel model;
  const Status read = parseModel(lines, "bad.model", &model);
  EXPECT_EQ(read.code(), Code::InvalidArgument);
  EXPECT_EQ(read.text().find("bad.model:"), 0u) << read.text();
  EXPECT_NE(read.text().find(what), std::string::npos) << read.text();
}

TEST(ModelFile, WhatIsWrongIsToldWithItsLine) {
  const std::string head = "weft-model 1\nlayer a forward-us 1 backward-us 1\n";
  expectWrong("", ":0: it is empty; the first line is 'weft-model 1'");
  expectWrong("weft-topology 1\n", ":1: 'weft-topology': the first line is 'weft-model 1'");
  expectWrong("weft-model 2\n", ":1: '1' is expected");
  expectWrong("weft-model 1\n", ":1: it has no layer");
  expectWrong("weft-model 1\nlayers a\n", ":2: 'layers' is none of name, update, layer, parameter");
  expectWrong("weft-model 1\nname\n", ":2: a name is expected");
  expectWrong("weft-model 1\nparameter w 1\n", ":2: 'parameter' stands before the first 'layer'");
  expectWrong("weft-model 1\nlayer a forward-us -1 backward-us 1\n",
              ":2: '-1' is no time in microseconds: a number from 0 to");
  expectWrong("weft-model 1\nlayer a forward-us nan backward-us 1\n", ":2: 'nan' is no time");
  expectWrong("weft-model 1\nlayer a forward-us 1\n", ":2: 'backward-us' is expected");
  expectWrong("weft-model 1\nlayer a forward-us 1 backward-us 1 repeat 0\n", ":2: '0' is no count");
  expectWrong("weft-model 1\nupdate ns-per-element x\n", ":2: 'x' is no time in ns");
  expectWrong(head + "parameter w 0\n", ":3: '0' is no number of elements");
  expectWrong(head + "parameter w 5 thawed\n", ":3: 'thawed' is too much");
  expectWrong(head + "parameter w 5\nparameter w 5\n", ":4: parameter 'w' stands twice");
  expectWrong(head + "parameter w 5 tied-to v\n", ":3: 'v' is no parameter above this line");
  expectWrong(head + "parameter w 5\nparameter v 6 tied-to w\n", ":4: 'w' has another length");
  expectWrong(head + "parameter w 281474976710656\nparameter v 1\n",
              ":4: it has more than 281474976710656 elements");
  expectWrong(head + "parameter w 5 frozen\n", ":3: no parameter of it is to be trained");
  expectWrong("weft-model 1\nlayer a forward-us 0 backward-us 0\nparameter w 5\n",
              ":3: its layers take no time");
  expectWrong(
      "weft-model 1\nlayer a forward-us 1 backward-us 1 repeat 2\nparameter w 1\n"
      "parameter v 1 tied-to w\n",
      ":4: a repeated parameter is tied to none");
  expectWrong(
      "weft-model 1\nlayer a forward-us 1 backward-us 1 repeat 60000\n" +
          [] {
            std::string lines;
            for (int i = 0; i < 18; ++i) lines += "parameter w" + std::to_string(i) + " 1\n";
            return lines;
          }(),
      "it has too many parameters");
}

TEST(ModelFile, AFileThatIsNotThereIsNamed) {
  StepModel model;
  const Status read = readModel("/nowhere/at.all", &model);
  EXPECT_NE(read.text().find("cannot read the model file /nowhere/at.all: No such file"),
            std::string::npos)
      << read.text();
}

}  // namespace
}  // namespace weft::simulator
