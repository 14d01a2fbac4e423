// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "tools/doctor/environment.h"

namespace weft::doctor {

// Sets variables for one test. Those of launchers that started the tests are hidden meanwhile.
class WithVariables : public ::testing::Test {
 protected:
  WithVariables() : before_(variablesOfProcess()) {
    for (const auto& [name, value] : before_) {
      for (const char* prefix : {"WEFT_", "SLURM_", "PMI", "OMPI_", "AWS_BATCH_"}) {
        if (name.starts_with(prefix)) ::unsetenv(name.c_str());
      }
    }
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
  }
  ~WithVariables() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }

 private:
  const Variables before_;
  std::vector<std::string> set_;
};

}  // namespace weft::doctor
