// SPDX-License-Identifier: Apache-2.0
// Published training jobs as command lines of weft-train, with what their authors have told and no
// more. docs/recipes.md says for each what was published, what runs here and what is predicted.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft::train {

struct Recipe {
  static constexpr const char* kFlag = "true";  // the value of an option that has none

  std::string name;
  std::vector<std::pair<std::string, std::string>>
      settings;       // options and their values, each overridable
  std::string lacks;  // what of the job weft-train does otherwise, or its authors have not told
};

std::vector<std::string> recipeNames();

// Throws Failure, which lists the names. `scaledDown`: a tiny model of the same family, few steps
// of few sequences with the same shares of warm-up and hold, everything else as it is.
Recipe recipe(const std::string& name, bool scaledDown);

}  // namespace weft::train
