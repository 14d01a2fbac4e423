// SPDX-License-Identifier: Apache-2.0
#include "tools/train/hdf5_file.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

static_assert(sizeof(hid_t) == sizeof(int64_t));

// Not every libhdf5 is built for threads.
std::mutex& theLibrary() {
  static std::mutex mutex;
  return mutex;
}

// What libhdf5 says of its last failure: the innermost of its sentences, which knows most. They are this thread's, and
// not freed with it.
std::string lastSentence() {
  std::string sentence = "no reason given";
  const auto take = [](unsigned depth, const H5E_error2_t* error, void* to) -> herr_t {
    if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(to) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &sentence);
  H5Eclear2(H5E_DEFAULT);
  return sentence;
}

using Close = herr_t (*)(hid_t);

// A handle of libhdf5.
class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }
  bool isNone() const { return id_ < 0; }

 private:
  hid_t id_;
  Close close_;
};

[[noreturn]] void refuseDataset(const std::string& path, const std::string& dataset,
                                const std::string& why) {
  throw Failure(Exit::kData, fmt::format("{}, dataset {}: {}", path, dataset, why));
}

Hdf5Handle openDataset(hid_t file, const std::string& path, const std::string& dataset) {
  if (H5Lexists(file, dataset.c_str(), H5P_DEFAULT) <= 0)
    refuseDataset(path, dataset, "the file has none of that name");
  const hid_t id = H5Dopen2(file, dataset.c_str(), H5P_DEFAULT);
  if (id < 0) refuseDataset(path, dataset, fmt::format("cannot be opened: {}", lastSentence()));
  return {id, H5Dclose};
}

std::vector<uint64_t> extentOf(hid_t space) {
  std::vector<hsize_t> extent(static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  H5Sget_simple_extent_dims(space, extent.data(), nullptr);
  return {extent.begin(), extent.end()};
}

// Elements of `rows` rows.
size_t elementsOf(const std::vector<uint64_t>& extent, uint64_t rows, size_t elementBytes) {
  uint64_t elements = rows;
  for (size_t i = 1; i < extent.size(); ++i)
    if (__builtin_mul_overflow(elements, extent[i], &elements)) return SIZE_MAX;
  return elements > std::numeric_limits<int64_t>::max() / elementBytes ? SIZE_MAX : elements;
}

}  // namespace

Hdf5File::Hdf5File(std::string path) : path_(std::move(path)) {
  const std::lock_guard lock(theLibrary());
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are told by us
  file_ = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file_ < 0)
    throw Failure(Exit::kData,
                  fmt::format("cannot read {} as HDF5: {}; it is cut off, or no such file", path_,
                              lastSentence()));
}

Hdf5File::~Hdf5File() {
  const std::lock_guard lock(theLibrary());
  H5Fclose(file_);
}

std::vector<uint64_t> Hdf5File::dimensions(const std::string& dataset) const {
  const std::lock_guard lock(theLibrary());
  const Hdf5Handle set = openDataset(file_, path_, dataset);
  const Hdf5Handle type(H5Dget_type(set), H5Tclose), space(H5Dget_space(set), H5Sclose);
  if (H5Tget_class(type) != H5T_INTEGER)
    refuseDataset(path_, dataset, "is not of integers, which it is to be");
  return extentOf(space);
}

template <class T>
std::vector<T> Hdf5File::rows(const std::string& dataset, int64_t type, uint64_t first,
                              uint64_t count) const {
  const Hdf5Handle set = openDataset(file_, path_, dataset);
  const Hdf5Handle space(H5Dget_space(set), H5Sclose);
  const std::vector<uint64_t> extent = extentOf(space);
  std::vector<hsize_t> start(extent.size()), counts(extent.begin(), extent.end());
  start.at(0) = first;
  counts.at(0) = count;
  std::vector<T> values;
  const size_t elements = elementsOf(extent, count, sizeof(T));
  try {
    values.resize(std::min(elements, values.max_size()));
  } catch (const std::bad_alloc&) {
    refuseDataset(path_, dataset,
                  fmt::format("{} samples of it do not fit into this host's memory", count));
  }
  const Hdf5Handle memory(H5Screate_simple(static_cast<int>(counts.size()), counts.data(), nullptr),
                          H5Sclose);
  if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, counts.data(), nullptr) <
          0 ||
      H5Dread(set, type, memory, space, H5P_DEFAULT, values.data()) < 0)
    refuseDataset(path_, dataset, fmt::format("cannot be read: {}", lastSentence()));
  return values;
}

std::vector<int32_t> Hdf5File::rowsOfInt32(const std::string& dataset, uint64_t first,
                                           uint64_t count) const {
  const std::lock_guard lock(theLibrary());
  return rows<int32_t>(dataset, H5T_NATIVE_INT32, first, count);
}

std::vector<int8_t> Hdf5File::rowsOfInt8(const std::string& dataset, uint64_t first,
                                         uint64_t count) const {
  const std::lock_guard lock(theLibrary());
  return rows<int8_t>(dataset, H5T_NATIVE_INT8, first, count);
}

}  // namespace weft::train
