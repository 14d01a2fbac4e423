// SPDX-License-Identifier: Apache-2.0
// The machine that a run was made on, for the reader of its figures.
#pragma once

#include <string>

namespace weft::tools {

// What /proc/cpuinfo says; empty where it does not.
struct Processor {
  std::string vendor;  // "GenuineIntel"
  std::string family;  // a number
  std::string model;   // a number
  std::string name;    // "Intel(R) Xeon(R) Processor"
};
Processor parseProcessor(const std::string& cpuinfo);

// For a file of figures of this kind of processor: "intel-family-6-model-143". By numbers, because
// cloud providers write the same name on many kinds.
std::string kindOf(const Processor& processor);

std::string processorKind();  // of this machine
std::string processorName();  // of this machine; "unknown processor" without one
// "AMD EPYC (amd-family-26-model-2), 2 cores, L2 1024K, L3 32768K"
std::string machineText();

}  // namespace weft::tools
