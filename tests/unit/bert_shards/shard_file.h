// SPDX-License-Identifier: Apache-2.0
// BERT's shards, made up and written.
#pragma once

#include <hdf5.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace weft::test {

struct Dataset {
  std::vector<hsize_t> shape;
  std::vector<int32_t> values;
  hid_t type = H5T_STD_I32LE;
};

using Datasets = std::map<std::string, Dataset>;

// As the published programs write them, with gzip and in their types.
inline void writeShard(const std::string& path, const Datasets& datasets) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  for (const auto& [name, set] : datasets) {
    const hid_t space =
        H5Screate_simple(static_cast<int>(set.shape.size()), set.shape.data(), nullptr);
    const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    std::vector<hsize_t> chunk = set.shape;
    chunk[0] = std::max<hsize_t>(chunk[0] / 2, 1);
    H5Pset_chunk(layout, static_cast<int>(chunk.size()), chunk.data());
    H5Pset_deflate(layout, 4);
    const hid_t id =
        H5Dcreate2(file, name.c_str(), set.type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    H5Dwrite(id, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, set.values.data());
    H5Dclose(id);
    H5Pclose(layout);
    H5Sclose(space);
  }
  H5Fclose(file);
}

// Samples of `length` tokens below `vocabulary`, some of them masked.
inline Datasets someSamples(hsize_t samples, hsize_t length, hsize_t mostMasked, uint32_t seed,
                            int32_t vocabulary = 100) {
  std::mt19937 random(seed);
  const auto below = [&](hsize_t n) { return static_cast<hsize_t>(random() % n); };
  const std::vector<hsize_t> tokens{samples, length}, masked{samples, mostMasked};
  Datasets sets{{"input_ids", {tokens, {}}},
                {"input_mask", {tokens, {}, H5T_STD_I8LE}},
                {"segment_ids", {tokens, {}, H5T_STD_I8LE}},
                {"masked_lm_positions", {masked, {}}},
                {"masked_lm_ids", {masked, {}}},
                {"next_sentence_labels", {{samples}, {}, H5T_STD_I8LE}}};
  const auto put = [&](const char* set, hsize_t value) {
    sets.at(set).values.push_back(static_cast<int32_t>(value));
  };
  for (hsize_t i = 0; i < samples; ++i) {
    const hsize_t used = length / 2 + below(length / 2 + 1);
    const hsize_t many = 1 + below(std::min(mostMasked, used - 1));
    for (hsize_t t = 0; t < length; ++t) {
      put("input_ids", t < used ? 1 + below(static_cast<hsize_t>(vocabulary) - 1) : 0);
      put("input_mask", t < used);
      put("segment_ids", t < used && t > used / 2);
    }
    for (hsize_t m = 0; m < mostMasked; ++m) {
      put("masked_lm_positions", m < many ? m + 1 : 0);
      put("masked_lm_ids", m < many ? below(static_cast<hsize_t>(vocabulary)) : 0);
    }
    put("next_sentence_labels", below(2));
  }
  return sets;
}

}  // namespace weft::test
