// SPDX-License-Identifier: Apache-2.0
#include "shard/export.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "base/text.h"
#include "base/threads.h"
#include "checkpoint/safetensors.h"
#include "comm/agree.h"
#include "reduce/rounding.h"

namespace weft::shard {
namespace {

class Export {
 public:
  Export(ShardedOptimizer& shard, std::string path, bool full)
      : shard_(shard), path_(std::move(path)), full_(full) {}

  Status run() {
    WEFT_TRY(together([&] { return open(); }));
    Status status;
    for (std::uint32_t b = shard_.state().buckets(); b-- > 0 && status.ok();)
      status = writeBucket(b);
    if (status.ok()) status = together([&] { return close(); });
    if (!status.ok() && writes()) std::remove(aside().c_str());
    return status;
  }

 private:
  const Layout& layout() const { return shard_.layout(); }
  const ParameterSpec& spec(std::uint32_t p) const { return layout().parameters()[p]; }
  reduce::DType paramType() const { return shard_.state().config().paramType; }
  reduce::DType type() const { return full_ ? reduce::DType::F32 : paramType(); }
  bool writes() const { return shard_.mesh().rank() == 0; }
  std::string aside() const { return path_ + ".tmp"; }

  // All know how it went: they go on together or not at all.
  template <class Body>
  Status together(Body&& body) {
    const Status mine = writes() ? withoutExceptions(body) : Status();
    return comm::agreeOn(
        shard_.mesh().world(), mine,
        checkpoint::diskTimeoutMs(shard_.timeoutMs(), shard_.state().checkpointBytes()), "export");
  }

  // A rename would put a file in the place of a device, /dev/null say.
  Status mayReplace() const {
    struct stat there {};
    if (::stat(path_.c_str(), &there) != 0 || S_ISREG(there.st_mode)) return {};
    return invalid("'", path_, "' is no regular file, and the model is written beside it first; ",
                   "fix: name a file in a folder");
  }

  Status open() {
    WEFT_TRY(mayReplace());
    std::vector<checkpoint::Tensor> tensors;
    checkpoint::TensorMetadata metadata = {{"format", "pt"}};
    const auto add = [&](std::uint32_t p) {
      const std::vector<std::uint64_t> flat = {spec(p).elements};
      tensors.push_back({spec(p).name, type(), spec(p).shape.empty() ? flat : spec(p).shape});
    };
    const std::span<const Layout::Bucket> buckets = layout().buckets();
    for (auto b = buckets.rbegin(); b != buckets.rend(); ++b)
      std::for_each(b->parameters.rbegin(), b->parameters.rend(), add);
    for (const std::uint32_t p : layout().frozen()) add(p);
    for (const ParameterSpec& p : layout().parameters())
      if (p.isTied()) metadata[p.name] = spec(static_cast<std::uint32_t>(p.tiedTo)).name;
    std::string header;
    WEFT_TRY(checkpoint::safetensorsHeader(tensors, metadata, &header));
    WEFT_TRY(checkpoint::OutputFile::create(aside(), &file_));
    return file_.append(header.data(), header.size());
  }

  Status writeBucket(std::uint32_t b) {
    WEFT_TRY(full_ ? gatherArray(shard_.mesh(), shard_.state(), b, 0, &weights_, shard_.timeoutMs())
                   : shard_.acquire(b));
    const Status written = together([&]() -> Status {
      const Layout::Bucket& bucket = layout().buckets()[b];
      for (auto p = bucket.parameters.rbegin(); p != bucket.parameters.rend(); ++p) {
        const void* const data =
            full_ ? static_cast<const void*>(&weights_[layout().slot(*p).offset - bucket.offset])
                  : shard_.state().parameter(*p);
        WEFT_TRY(file_.append(data, spec(*p).elements * reduce::sizeOf(type())));
      }
      return {};
    });
    return full_ || !written.ok() ? written : shard_.release(b);
  }

  Status close() {
    for (const std::uint32_t p : layout().frozen()) {
      const void* data = shard_.state().parameter(p);
      weights_.resize(spec(p).elements);
      if (full_) reduce::widen(paramType(), weights_.data(), data, spec(p).elements);
      if (full_) data = weights_.data();
      WEFT_TRY(file_.append(data, spec(p).elements * reduce::sizeOf(type())));
    }
    WEFT_TRY(file_.finish());
    if (std::rename(aside().c_str(), path_.c_str()) != 0)
      return checkpoint::systemError("cannot replace", path_);
    const std::size_t slash = path_.rfind('/');
    return checkpoint::syncFolder(slash == path_.npos ? "." : path_.substr(0, slash + 1));
  }

  ShardedOptimizer& shard_;
  const std::string path_;
  const bool full_;
  checkpoint::OutputFile file_;
  std::vector<float> weights_;  // of a bucket
};

}  // namespace

Status exportModel(ShardedOptimizer& shard, const std::string& file, bool fullPrecision) {
  return withoutExceptions([&]() -> Status {
    WEFT_TRY(comm::agreeOn(shard.mesh().world(), shard.atRest("exporting the model"),
                           shard.timeoutMs(), "export"));
    return Export(shard, file, fullPrecision).run();
  });
}

}  // namespace weft::shard
