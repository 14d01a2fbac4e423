// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/status.h"
#include "shard/sharded_optimizer.h"

namespace weft::shard {

// Checkpoints in parameter space: what is stored is weights and optimizer state by parameter, not
// by shard, so that any number of ranks, degrees, bucket size and types can load what any other has
// saved. In a folder that all ranks see:
//
//   DIR/step-00000012/shard-00003-of-00008.safetensors    runs "param/array@from" of one rank
//   DIR/step-00000012/index.json                          what it is of, bytes and SHA-256 of files
//   DIR/latest                                            the name of the last good one
//
// Whoever dies while writing leaves the last good one as it was; the last two are kept. One job
// writes to a folder at a time. All calls are collective, legal between optimizer steps, and end
// alike on all ranks: an error says which rank had it, and names the file or the parameter.
// Stored are the weights in fp32, or those that are 16-bit and have no master as they are; the
// state; frozen parameters; the number of steps; and `meta`, the caller's JSON (or nothing); not
// gradients.

// Takes the last checkpoint of DIR, or DIR itself if it is one, like DIR/step-00000012. Everything
// is read and checked before anything is changed; should the disk fail after that, the shard is
// broken from then on. `meta` may be null.
// Weights alone may come from a checkpoint of any optimizer; the state is that of a beginning then.
enum class Loaded { All, Weights };
Status loadCheckpoint(ShardedOptimizer& shard, const std::string& dir, std::string* meta,
                      Loaded what = Loaded::All);

// Saves while training goes on.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(ShardedOptimizer& shard) : shard_(shard) {}
  ~CheckpointWriter();  // waits for the save at work
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Returns once there is a copy in memory of what this rank is to write. Waits for the save
  // before; if that has failed and nobody has heard of it, this is its error, and nothing begins.
  Status save(const std::string& dir, const std::string& meta);
  // Until the last save is on disk, and how it went.
  Status wait();

 private:
  Status connect();

  ShardedOptimizer& shard_;
  std::shared_ptr<comm::Communicator> ranks_;  // of the thread alone
  std::thread thread_;
  Status result_;
};

}  // namespace weft::shard
