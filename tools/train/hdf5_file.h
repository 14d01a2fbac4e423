// SPDX-License-Identifier: Apache-2.0
// Integers of HDF5 files, by libhdf5. What it is told is its own sentence; the file and the dataset are ours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::train {

// Several threads may read, each from a file of its own: libhdf5 is entered by one at a time.
class Hdf5File {
 public:
  // Throws Failure if it cannot be read or is cut off, as the calls below do.
  explicit Hdf5File(std::string path);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  const std::string& path() const { return path_; }

  // Of a dataset of integers, by dimension.
  std::vector<uint64_t> dimensions(const std::string& dataset) const;

  // Rows first to first + count - 1 of its first dimension, whole. What does not fit into the wanted type becomes
  // the nearest that does.
  std::vector<int32_t> rowsOfInt32(const std::string& dataset, uint64_t first,
                                   uint64_t count) const;
  std::vector<int8_t> rowsOfInt8(const std::string& dataset, uint64_t first, uint64_t count) const;

 private:
  template <class T>
  std::vector<T> rows(const std::string& dataset, int64_t type, uint64_t first,
                      uint64_t count) const;

  std::string path_;
  int64_t file_;  // libhdf5's handle
};

}  // namespace weft::train
