// SPDX-License-Identifier: Apache-2.0
// Prints docs/knobs.md from the table in lib/base/knobs.cpp.
#include <iostream>

#include "knobs_as_markdown.h"

int main() {
  std::cout
      << "# Environment variables\n\n"
         "Written by `print_knobs > docs/knobs.md` from the table in `lib/base/knobs.cpp`; a test "
         "compares the two.\n\n"
      << weft::docs::knobsAsMarkdown();
}
