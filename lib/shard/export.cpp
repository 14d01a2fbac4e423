// SPDX-License-Identifier: Apache-2.0
#include "shard/export.h"

#include <cstdio>
#include <vector>

#include "base/text.h"
#include "base/threads.h"
#include "reduce/rounding.h"
#include "shard/agree.h"
#include "shard/gather_array.h"
#include "shard/safetensors.h"

namespace weft {
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
  DType paramType() const { return shard_.state().config().paramType; }
  bool writes() const { return shard_.mesh().rank() == 0; }
  std::string aside() const { return path_ + ".tmp"; }

  // All know how it went: they go on together or not at all.
  template <class Body>
  Status together(Body&& body) {
    const Status mine = writes() ? withoutExceptions(body) : Status();
    return agreeOn(shard_.mesh().world(), mine,
                   diskTimeoutMs(shard_.timeoutMs(), shard_.state().checkpointBytes()));
  }

  Status open() {
    std::vector<Tensor> tensors;
    TensorMetadata metadata = {{"format", "pt"}};
    const auto add = [&](std::uint32_t p) {
      const std::vector<std::uint64_t> flat = {spec(p).elements};
      tensors.push_back({spec(p).name, full_ ? DType::F32 : paramType(),
                         spec(p).shape.empty() ? flat : spec(p).shape});
    };
    for (std::size_t b = layout().buckets().size(); b-- > 0;) {
      const auto& parameters = layout().buckets()[b].parameters;
      for (std::size_t i = parameters.size(); i-- > 0;) add(parameters[i]);
    }
    for (std::uint32_t p = 0; p < layout().parameters().size(); ++p) {
      if (spec(p).tiedTo >= 0)
        metadata[spec(p).name] = spec(static_cast<std::uint32_t>(spec(p).tiedTo)).name;
      else if (spec(p).frozen)
        add(p);
    }
    std::string header;
    WEFT_TRY(safetensorsHeader(tensors, metadata, &header));
    WEFT_TRY(OutputFile::create(aside(), &file_));
    return file_.append(header.data(), header.size());
  }

  Status writeBucket(std::uint32_t b) {
    WEFT_TRY(full_ ? gatherArray(shard_, b, 0, &weights_) : shard_.acquire(b));
    const Status written = together([&]() -> Status {
      const Layout::Bucket& bucket = layout().buckets()[b];
      for (std::size_t i = bucket.parameters.size(); i-- > 0;) {
        const std::uint32_t p = bucket.parameters[i];
        const void* const data =
            full_ ? static_cast<const void*>(&weights_[layout().slot(p).offset - bucket.offset])
                  : shard_.state().parameter(p);
        WEFT_TRY(file_.append(data, spec(p).elements * sizeOf(full_ ? DType::F32 : paramType())));
      }
      return {};
    });
    return full_ || !written.ok() ? written : shard_.release(b);
  }

  Status close() {
    for (std::uint32_t p = 0; p < layout().parameters().size(); ++p) {
      if (!spec(p).frozen || spec(p).tiedTo >= 0) continue;
      const std::byte* const data = shard_.state().parameter(p);
      weights_.resize(spec(p).elements);
      if (full_) widen(paramType(), weights_.data(), data, spec(p).elements);
      WEFT_TRY(full_ ? file_.append(weights_.data(), spec(p).elements * sizeof(float))
                     : file_.append(data, spec(p).elements * sizeOf(paramType())));
    }
    WEFT_TRY(file_.finish());
    if (std::rename(aside().c_str(), path_.c_str()) != 0)
      return systemError("cannot replace", path_);
    const std::size_t slash = path_.rfind('/');
    return syncFolder(slash == path_.npos ? "." : path_.substr(0, slash + 1));
  }

  ShardedOptimizer& shard_;
  const std::string path_;
  const bool full_;
  OutputFile file_;
  std::vector<float> weights_;  // of a bucket
};

}  // namespace

Status exportModel(ShardedOptimizer& shard, const std::string& file, bool fullPrecision) {
  return withoutExceptions([&]() -> Status {
    WEFT_TRY(agreeOn(shard.mesh().world(), shard.atRest("exporting the model"), shard.timeoutMs()));
    return Export(shard, file, fullPrecision).run();
  });
}

}  // namespace weft
