// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::simulator {

// weft-sim step: the command line without "step". The program's exit code.
int runStep(int argc, char** argv);

}  // namespace weft::simulator
