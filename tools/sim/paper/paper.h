// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::simulator {

// weft-sim --paper NAME: published tables beside what is predicted of them. The program's exit code.
int runPaper(int argc, char** argv);

}  // namespace weft::simulator
