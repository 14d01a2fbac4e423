/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft/shard.h: the sharded optimizer. One object does what lies between a backward pass and the
 * next forward pass of data-parallel training: it sums the gradients of all ranks, clips, steps the
 * optimizer, and hands out new parameters, with parameters, gradients and optimizer state sharded
 * over as many ranks as you say. C99 and C++.
 *
 *   weftShardCreate(&shard, comm, params, nparams, &config);    collective
 *   weftShardBuffers(shard, i, &weights, &gradient);            for each parameter: tensors go here
 *   weftShardStart(shard, 0);                                   rank 0's initial weights for all
 *
 *   forward();                                                  weftParamWait before a bucket's use
 *   weftStepBegin(shard, &args);
 *   backward();                                                 weftGradReady as each is complete
 *   weftGradDone(shard);
 *   weftStepWait(shard, &stats);                                at once, or after the next forward
 *
 * Degrees (AMSP, arXiv 2311.00257): into how many ranks each thing is sharded.
 *
 *   param grad state     known as                     memory per rank, bytes, of P parameters
 *   1     1    1         data parallelism             all of it
 *   1     1    N         ZeRO-1                       bf16: 2P + 2P + 16P/N
 *   1     N    N         ZeRO-2                       bf16: 2P + 16P/N
 *   N     N    N         ZeRO-3                       bf16: 18P/N
 *   p     p    p         MiCS (arXiv 2205.00119)      bf16: 18P/p
 *   1     1    k         state sharded in a node      bf16: 2P + 2P + 16P/k
 *
 * Each must divide the next, and the last the number of ranks; ranks are grouped as they are
 * numbered. Memory: bf16 parameters and gradients, and 16 bytes of state: fp32 weights, two moments
 * and the reduced gradient. Beyond it comes one bucket, and transiently what is gathered.
 *
 * Sums. Gradients travel as wireType, rounded once by the rank that sends them, and are added in
 * fp32 in rank order; with several levels of degrees, or several nodes, sums of groups are added,
 * and between nodes, or with degrees {1, 1, 1}, those of a 16-bit wire are rounded once more. The
 * gradient norm is exact, hence the same for any degrees.
 *
 * With config.reproducible, everything is the same bits for any number of ranks that divides the
 * micro-batches of a step, if forward and backward are deterministic: gradients are added as a binary
 * tree over those. Micro-step m of rank r of n must be micro-batch (m / L n + r) L + m % L, with L the
 * largest power of two that divides the micro-steps of a rank: runs of L in turn. Gradients then
 * travel once a run (once a step where micro-steps are a power of two), and a rank keeps up to
 * log2(micro-batches) sums of its part. Groups inside of others must be powers of two: {1, 1, 1},
 * {1, 1, n}, {1, n, n} and {n, n, n} are one level, and take any n.
 *
 * Rounding of weights to 16-bit parameters is to nearest or stochastic; the random bits depend on
 * seed, step and element alone, never on ranks.
 *
 * Errors are those of weft.h. A usage error has no effect. A step that cannot be done on one rank
 * (a parameter was never ready, its arguments are others) is done on none, and all get the error;
 * where a custom optimizer fails, the parameters are what it left, alike on all ranks. When a rank
 * is lost, every call returns so; each bucket's parameters are then all old or all new, and a
 * checkpoint is the way on.
 *
 * A model in parts. With tensor or pipeline parallelism (Megatron-LM, arXiv 1909.08053) the ranks of
 * `comm` hold a part of the model: slices of its parameters, or some of them. config.parts joins a
 * rank of each part, those of equal number in their `comm`, and the parts step as one model: the
 * gradient norm and the clipping are those of all of it, a gradient that is not finite in one part
 * skips the step of all, and what calls off the step of one calls it off everywhere. What the same
 * parameter is in several parts, whose gradients the caller has made equal there, is
 * WEFT_PARAM_COPY in all of them but one; a slice of a parameter is WEFT_PARAM_SPLIT. A checkpoint
 * and an export are of a part: a folder or a file for each.
 *
 * Threads. One thread at a time uses a shard. Its work runs on a thread of its own, over
 * communicators of its own: `comm` is free for other calls. Bucket order must be the same on all
 * ranks, and is: buckets are launched in order whatever the order of weftGradReady.
 */
#ifndef WEFT_SHARD_H_
#define WEFT_SHARD_H_

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weftShard* weftShard_t;

/* ---- The model ---------------------------------------------------------------------------- */

#define WEFT_PARAM_FROZEN 1u   /* not trained: no gradient, no state; every rank holds it */
#define WEFT_PARAM_NO_DECAY 2u /* weight decay does not apply: biases, norms */
/* Of a model in parts (config.parts): another part counts its gradient in the norm; other parts have
 * other elements of it, by the same name, and the norms of LAMB and LANS are of all of them. */
#define WEFT_PARAM_COPY 4u
#define WEFT_PARAM_SPLIT 8u

/* One tensor, in order of first use in forward. */
typedef struct {
  const char* name;    /* unique; what checkpoints and errors call it */
  size_t elements;     /* more than 0 */
  unsigned flags;      /* WEFT_PARAM_* */
  int tiedTo;          /* the same memory as this earlier parameter, or -1 */
  const size_t* shape; /* for exports; NULL: one dimension */
  int dimensions;      /* of shape */
} weftParam_t;

/* ---- Configuration: the same on all ranks -------------------------------------------------- */

/* Optimizers. */
typedef enum {
  weftOptAdamW = 0, /* as torch.optim.AdamW */
  weftOptLamb = 1,  /* You et al., arXiv 1904.00962, as NVIDIA's FusedLAMB: bias correction, and
                       trust ratios of whole parameters, 1 where nothing decays (lambOnAll) */
  weftOptSgd = 2,   /* with momentum, as torch.optim.SGD without dampening */
  weftOptCustom = 3,
  weftOptLans = 4 /* Zheng et al., arXiv 2006.13484: the gradient of each parameter divided by its
                     norm (and epsilon, as its implementations do), Nesterov's momentum, and
                     two trust ratios, which all parameters have; bias correction */
} weftOptimizer_t;

/* How weights are rounded to 16-bit parameters. */
typedef enum { weftRoundNearest = 0, weftRoundStochastic = 1 } weftRounding_t;

/* A run of one parameter, of a rank's own part: what a custom optimizer steps. */
typedef struct {
  size_t param;  /* index in the list of parameters */
  size_t offset; /* of the run in the parameter */
  size_t elements;
  float* weights;         /* in and out */
  const float* gradients; /* times gradientScale */
  float* state[2];        /* zeroed at first, kept from step to step and in checkpoints */
  double gradientScale;
  double learningRate;
  double weightDecay; /* 0 for WEFT_PARAM_NO_DECAY */
  int64_t step;       /* from 1 */
} weftRun_t;
/* Returns 0, or another value to fail the step. Called on the shard's thread. */
typedef int (*weftStepFn)(const weftRun_t* run, void* user);

/* Configuration of a sharded optimizer. Fields are only ever appended; start from
 * WEFT_SHARD_CONFIG_INITIALIZER (ZeRO-1, AdamW, bf16). */
typedef struct {
  size_t size;                                  /* sizeof(weftShardConfig_t) of the caller */
  unsigned int magic;                           /* WEFT_SHARD_MAGIC */
  unsigned int version;                         /* WEFT_VERSION_CODE of the caller */
  int paramDegree, gradDegree, stateDegree;     /* 0: all ranks */
  weftDataType_t paramType, gradType, wireType; /* weftFloat32, weftFloat16 or weftBfloat16 */
  int optimizer;                                /* weftOptimizer_t */
  double beta1, beta2, epsilon;                 /* AdamW, LAMB and LANS, of which 1e-6 is usual */
  double momentum;                              /* SGD */
  int nesterov;                                 /* SGD */
  int lambOnAll;     /* NVLAMB: the trust ratio also where nothing decays */
  weftStepFn custom; /* weftOptCustom; needs a master copy or fp32 parameters */
  void* user;
  int master;            /* 1: fp32 weights beside 16-bit parameters; 0: the parameters are all */
  int rounding;          /* weftRounding_t, of weights to 16-bit parameters */
  uint64_t seed;         /* of stochastic rounding */
  size_t bucketElements; /* 0: 4 Mi. Smaller ones overlap better, larger ones cost less */
  int reproducible;      /* 1: see above; fp32 gradients and wire */
  int eager;        /* 1: reduce-scatter, step and all-gather of a bucket are one schedule, which
                runs as soon as its gradients are ready on all ranks: then nothing can be
                clipped or skipped, weftGradReady also says that the parameters of the
                bucket are not read any more in this step, and ZeRO-1 is the only degree */
  weftComm_t parts; /* of a model in parts: a rank of each, those of equal number in `comm`,
                       ordered by part. NULL: the ranks of `comm` have all of it */
} weftShardConfig_t;

#define WEFT_SHARD_MAGIC 0x73686172u
#define WEFT_SHARD_CONFIG_INITIALIZER                                                         \
  {                                                                                           \
    sizeof(weftShardConfig_t), WEFT_SHARD_MAGIC, WEFT_VERSION_CODE, 1, 1, 0, weftBfloat16,    \
        weftBfloat16, weftBfloat16, weftOptAdamW, 0.9, 0.999, 1e-8, 0.0, 0, 0, NULL, NULL, 1, \
        weftRoundNearest, 0, 0, 0, 0, NULL                                                    \
  }

/* Makes a sharded optimizer, collectively over `comm` and, after it, config.parts.
 * weftInvalidArgument on all ranks, naming rank and parameter, where models or configurations
 * differ. config NULL: that of the initializer. All arguments are read before it returns, and copied:
 * communicators, names, shapes and the configuration need not outlive it; what config.custom is
 * called with (user) must outlive the shard. */
WEFT_API weftResult_t weftShardCreate(weftShard_t* shard, weftComm_t comm,
                                      const weftParam_t* params, size_t nparams,
                                      const weftShardConfig_t* config);
/* Frees a sharded optimizer. Local and bounded: what is in flight is aborted on all ranks. NULL is
 * a no-op. */
WEFT_API weftResult_t weftShardDestroy(weftShard_t shard);
/* Ends what a sharded optimizer does, from any thread. Whatever is in flight, here and on the
 * peers, returns weftAborted, and so does every later step. */
WEFT_API weftResult_t weftShardAbort(weftShard_t shard);

/* Where parameter `param` lies: its weights, of paramType, and the gradient that backward adds to,
 * of gradType, which the shard zeroes once it has taken it. The addresses never change. A frozen
 * parameter has no gradient: *gradient is NULL. */
WEFT_API weftResult_t weftShardBuffers(weftShard_t shard, size_t param, void** weights,
                                       void** gradient);
/* Which bucket it is in: 0 is complete first in backward, the last is used first in forward; -1 for
 * frozen ones. */
WEFT_API weftResult_t weftShardBucket(weftShard_t shard, size_t param, int* bucket);

/* What a shard holds, and what it has done so far. */
typedef struct {
  size_t size; /* sizeof(weftShardInfo_t) of the caller */
  int buckets;
  size_t elements;       /* trained */
  size_t paddedElements; /* of all buckets */
  size_t ownElements;    /* whose state this rank holds, padding included */
  size_t bytes;          /* that the shard holds between steps on this rank */
  uint64_t wireBytes;    /* of payload that this rank has put into, stored to or read from peers so
                            far; each transfer counts once, at the rank that makes it */
  int64_t steps;         /* done */
  uint64_t fingerprint;  /* of names, lengths and kinds of the parameters */
} weftShardInfo_t;
/* Fills in *info as far as info->size, which the caller sets, says. Local. */
WEFT_API weftResult_t weftShardInfo(weftShard_t shard, weftShardInfo_t* info);

/* Takes the weights that lie in the buffers, after those of rank `root` have gone to all; root -1:
 * all ranks have filled in the same. Collective. */
WEFT_API weftResult_t weftShardStart(weftShard_t shard, int root);
/* Sets the fp32 weights of a parameter of 16 bits. After weftShardStart, which knows the rounded
 * ones alone: all of those of `param`, the same on all ranks. The 16-bit ones stay until the next
 * step. Without such fp32 weights nothing changes. Local, between steps. */
WEFT_API weftResult_t weftShardSetWeights(weftShard_t shard, size_t param, const float* weights);

/* ---- A step -------------------------------------------------------------------------------- */

/* Arguments of a step. Fields are only ever appended; start from WEFT_STEP_ARGS_INITIALIZER. The
 * same on all ranks. */
typedef struct {
  size_t size;          /* sizeof(weftStepArgs_t) of the caller */
  unsigned int magic;   /* WEFT_SHARD_MAGIC */
  unsigned int version; /* WEFT_VERSION_CODE of the caller */
  int boundary; /* 1: the optimizer steps after this backward; 0: its gradients accumulate */
  double learningRate;
  double weightDecay; /* of weights; SGD adds it to the clipped gradients, as torch does */
  double clipNorm;    /* largest norm of the averaged gradients, exactly, where torch divides by the
                         norm + 1e-6; 0: any */
  double lossScale;   /* what the loss was multiplied with */
  double divisor;     /* what the sum of gradients is divided by; 0: the number of ranks */
  int skipNonFinite;  /* 1: no update if a gradient is infinite or NaN */
  int microSteps; /* of a rank in this step, said in each of them; 0: not said, which reproducible
                         steps of several ranks allow only if it is a power of two */
} weftStepArgs_t;

#define WEFT_STEP_ARGS_INITIALIZER \
  { sizeof(weftStepArgs_t), WEFT_SHARD_MAGIC, WEFT_VERSION_CODE, 1, 1e-3, 0.0, 0.0, 1.0, 0.0, 1, 0 }

/* What a step has done. */
typedef struct {
  size_t size;         /* sizeof(weftStepStats_t) of the caller */
  double gradientNorm; /* of the averaged gradients, before clipping; the same bits on all ranks */
  double clip;         /* what they were multiplied with */
  uint64_t nonFinite;  /* infinite or NaN among the sums */
  int skipped;         /* 1: nothing was updated */
  int badParam, badRank; /* the first that was not finite, and the rank that brought it; or -1 */
  double exposedSeconds; /* that weftParamWait and weftStepWait waited since the step before */
  int badPart; /* of the model, of which badParam and badRank are: its rank in config.parts, 0 if
                  there are none; or -1 */
} weftStepStats_t;

/* Begins a step, between forward and backward: waits until the gradients of the micro-step before
 * are taken. weftInvalidUsage while the shard has no weights: of weftShardStart, a checkpoint or
 * weftShardReshard. args NULL: those of the initializer. */
WEFT_API weftResult_t weftStepBegin(weftShard_t shard, const weftStepArgs_t* args);
/* The gradient of `param` is complete; once for each trained parameter, in any order. May start the
 * reduction of a bucket; never waits. */
WEFT_API weftResult_t weftGradReady(weftShard_t shard, size_t param);
/* The end of backward; never waits. weftInvalidUsage, or so says weftStepWait on all ranks, if a
 * trained parameter was not ready. */
WEFT_API weftResult_t weftGradDone(weftShard_t shard);
/* Waits until a bucket has the parameters of the last step. Gathers them where they are sharded,
 * which is collective: then all ranks wait for the same buckets in the same order. Forward
 * may begin with the last bucket before the others are there. */
WEFT_API weftResult_t weftParamWait(weftShard_t shard, int bucket);
/* Begins what weftParamWait waits for, and returns at once: a sharded bucket comes while
 * the layers before it compute. Optional, and in its place in the same order. */
WEFT_API weftResult_t weftParamPrefetch(weftShard_t shard, int bucket);
/* Gives back the memory of a gathered bucket until the next weftParamWait. */
WEFT_API weftResult_t weftParamRelease(weftShard_t shard, int bucket);
/* The end of a step, at the latest before the next weftStepBegin: a forward that comes before it
 * runs under the update, bucket by bucket (weftParamWait). stats may be NULL. */
WEFT_API weftResult_t weftStepWait(weftShard_t shard, weftStepStats_t* stats);

/* ---- Checkpoints ---------------------------------------------------------------------------
 *
 * In parameter space: safetensors files and an index in a folder that all ranks see, which any
 * number of ranks, degrees, bucket size and types can load. Tensors are flat, "NAME/weight" and those
 * of the optimizer, and say where in the parameter they begin as torch.distributed.checkpoint's do.
 * Written aside, synced and renamed, with SHA-256 sums: whoever dies while writing leaves the last
 * good one as it was, and the last two are kept. All calls are collective, between steps (after
 * weftStepWait), and end alike on all ranks; their errors name the rank, and the file or the
 * parameter. */

/* Saves a checkpoint: weights in fp32 (16-bit ones that have no master as they are), optimizer
 * state, frozen parameters, the number of steps, and `meta`, JSON of the caller's or NULL. async 1:
 * returns once the state is copied, and writes while training goes on; the next save,
 * weftShardSaveWait and weftShardDestroy wait for it, the first two with its error. */
WEFT_API weftResult_t weftShardSave(weftShard_t shard, const char* dir, const char* meta,
                                    int async);
/* Waits for the save that is under way, if one is, and has its error. */
WEFT_API weftResult_t weftShardSaveWait(weftShard_t shard);
/* Takes the last checkpoint of `dir`, or `dir` itself if it is one, such as DIR/step-00000012.
 * Nothing is changed before all is read and checked: weftSystemError if it is damaged, and another
 * may be whole; weftInvalidArgument if it is of another model or optimizer. The caller's JSON is
 * written to `meta` (NUL-terminated, cut to `length`), which may be NULL with length 0. */
WEFT_API weftResult_t weftShardLoad(weftShard_t shard, const char* dir, char* meta, size_t length);
/* The weights alone, for another training: state and steps are those of a beginning, and the
 * checkpoint may be of any optimizer. */
WEFT_API weftResult_t weftShardLoadWeights(weftShard_t shard, const char* dir, char* meta,
                                           size_t length);
/* One .safetensors file of the whole model, which other tools open: every parameter under its name,
 * in its shape, as the model computes with it or, with fullPrecision 1, its fp32 weights. The ranks
 * write it together; it takes the place of `file` when it is whole and on disk. */
WEFT_API weftResult_t weftShardExport(weftShard_t shard, const char* file, int fullPrecision);
/* Takes weights, state and steps of `from` over into `to`, of the same model, in memory: onto other
 * degrees, or more or fewer ranks. Called by all ranks of both: from is NULL on ranks that have
 * joined, to on those that leave, and at least one has both. */
WEFT_API weftResult_t weftShardReshard(weftShard_t from, weftShard_t to);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_SHARD_H_ */
