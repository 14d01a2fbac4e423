// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/invalid.h"
#include "base/number.h"
#include "base/text.h"
#include "checkpoint/saved_offsets.h"

namespace weft::checkpoint {
namespace {

struct ArrayRun {
  std::string parameter, array;
  std::uint64_t from = 0, elements = 0;
};

bool parseName(std::string_view name, ArrayRun* out) {
  const std::size_t slash = name.rfind('/');
  if (slash == name.npos) return false;
  out->parameter = name.substr(0, slash);
  out->array = name.substr(slash + 1);
  return true;
}

// In files of format 1, which have no offsets, a name ends with "@from".
bool parseRun(const Tensor& tensor, const std::optional<SavedOffsets>& offsets, ArrayRun* out) {
  if (tensor.shape.size() != 1) return false;
  out->elements = tensor.shape[0];
  const std::string_view name = tensor.name;
  const std::size_t at = offsets ? name.npos : name.rfind('@');
  if (!parseName(name.substr(0, at), out)) return false;
  if (!offsets) return at != name.npos && parseNumber(name.substr(at + 1), &out->from);
  const auto found = offsets->find(tensor.name);
  if (found == offsets->end()) return false;
  out->from = found->second;
  return true;
}

// The index is of this model: if its files are not, the disk is to blame.
Status damage(const Status& found) {
  return found.ok() ? found : Status::error(Code::SystemError, found.text());
}

}  // namespace

std::string tensorName(const std::string& parameter, const std::string& array) {
  return text(parameter, "/", array);
}

Status CheckpointSource::open(const std::string& checkpoint, const CheckpointIndex& wanted,
                              CheckpointSource* out) {
  CheckpointSource made;
  made.path_ = checkpoint;
  const std::string index = text(checkpoint, "/", kIndexFile);
  WEFT_TRY(readIndex(index, &made.index_));
  WEFT_TRY(compareIndex(index, made.index_, wanted));
  WEFT_TRY(damage(made.openFiles()));
  WEFT_TRY(damage(made.collect()));
  *out = std::move(made);
  return {};
}

Status CheckpointSource::openFiles() {
  for (const CheckpointIndex::File& f : index_.files) {
    const std::string path = text(path_, "/", f.name);
    InputFile file;
    WEFT_TRY(InputFile::open(path, &file));
    if (file.bytes() != f.bytes)
      return invalid("'", path, "' has ", file.bytes(), " bytes and should have ", f.bytes,
                     ": it is truncated, or of another checkpoint");
    files_.emplace_back();
    WEFT_TRY(SafetensorsFile::open(path, &files_.back()));
  }
  return {};
}

Status CheckpointSource::collect() {
  for (const auto& p : index_.parameters) runs_[p.name].resize(index_.arrays.size());
  for (std::size_t f = 0; f < files_.size(); ++f) WEFT_TRY(collect(f));
  for (const auto& p : index_.parameters)
    for (std::size_t a = 0; a < index_.arrays.size(); ++a) WEFT_TRY(checkCover(p, a));
  return {};
}

Status CheckpointSource::collect(std::size_t file) {
  const SafetensorsFile& f = files_[file];
  const std::optional<SavedOffsets> offsets = parseOffsets(f.metadata());
  for (std::size_t t = 0; t < f.tensors().size(); ++t) {
    ArrayRun run;
    const Tensor& tensor = f.tensors()[t];
    const bool parsed = parseRun(tensor, offsets, &run);
    const auto runs = runs_.find(run.parameter);
    const auto array = std::ranges::find(index_.arrays, run.array);
    if (!parsed || runs == runs_.end() || array == index_.arrays.end())
      return invalid("'", f.file().path(), "' has a tensor '", tensor.name,
                     "', which is no part of this model");
    const auto a = static_cast<std::size_t>(array - index_.arrays.begin());
    runs->second[a].push_back({run.from, run.elements, file, t});
  }
  return {};
}

// Each element once, or none of what needs no state.
Status CheckpointSource::checkCover(const CheckpointIndex::Parameter& parameter,
                                    std::size_t array) {
  const bool kept = array == 0 || !parameter.frozen;
  std::uint64_t at = 0;
  Runs& runs = runs_[parameter.name][array];
  std::ranges::sort(runs, {}, &Run::from);
  for (const Run& run : runs) {
    if (run.from != at || run.elements > parameter.elements - at || !kept)
      return invalid("'", files_[run.file].file().path(), "' has ", run.elements, " elements of '",
                     index_.arrays[array], "' of parameter '", parameter.name, "' from ", run.from,
                     " on, where those from ", at, " on come next");
    at += run.elements;
  }
  if (!kept || at == parameter.elements) return {};
  return invalid("'", path_, "' has ", at, " of ", parameter.elements, " elements of '",
                 index_.arrays[array], "' of parameter '", parameter.name, "'");
}

Status CheckpointSource::verify(std::size_t which, std::size_t of) const {
  for (std::size_t f = which; f < files_.size(); f += of) {
    std::string sum;
    WEFT_TRY(files_[f].file().sha256(&sum));
    if (sum != index_.files[f].sha256)
      return damage(invalid("'", files_[f].file().path(),
                            "' is damaged: its SHA-256 is not that of the index; fix: load another "
                            "checkpoint"));
  }
  return {};
}

Status CheckpointSource::read(const std::string& parameter, std::size_t array, std::uint64_t from,
                              std::uint64_t count, reduce::DType type, void* to) const {
  const Runs& runs = runs_.at(parameter)[array];
  auto run = std::ranges::upper_bound(runs, from, {}, &Run::from);
  auto* at = static_cast<std::byte*>(to);
  while (count > 0) {
    const Run& r = *(run - 1);
    const std::uint64_t n = std::min(count, r.from + r.elements - from);
    const SafetensorsFile& file = files_[r.file];
    WEFT_TRY(file.read(file.tensors()[r.tensor], from - r.from, n, type, at));
    at += n * reduce::sizeOf(type);
    from += n;
    count -= n;
    ++run;
  }
  return {};
}

}  // namespace weft::checkpoint
