/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft: collective communication for host memory, in NCCL's shape.
 *
 * This header is the reference manual. It is C99 and C++.
 *
 * Ideas
 *   communicator  n ranks, 0..n-1, that agreed at creation. A rank is a process or a thread. 4,096
 *                 of them may be alive in a process, and as many streams, and events: one more is
 *                 weftInvalidUsage.
 *   collective    a call that every rank of a communicator makes, in the same order, with the same
 *                 kind, count, type, operation and root. Ranks that disagree ALL get weftMismatch
 *                 with a text that names both calls, and no result is delivered.
 *   rooted call   a broadcast, scatter, reduce or gather. That it has returned promises that this
 *                 rank's part is done: what it gets is there, what it sends is on its way and its
 *                 buffers are the caller's, though other ranks may not have made the call yet, and
 *                 where they then fail or disagree a later call says so, at the latest
 *                 weftCommFinalize.
 *   stream        an in-order queue with a worker thread. stream == NULL: the call runs on the
 *                 caller's thread and returns when it is finished.
 *   deadline      every call that waits has one (weftConfig_t.timeoutMs, weftOpts_t.timeoutMs), from
 *                 the call on; of queued work, from when its stream has come to it. No call waits
 *                 for ever: the longest is INT_MAX, 24 days.
 *
 * Counts are in elements, sizes in bytes, times in milliseconds unless said otherwise.
 * Buffers are host memory of any alignment, owned by the caller, which must not touch them between
 * the call and its completion. A count of 0 is a matched no-op; its pointers may be NULL.
 * Options, counts, displs and scalars are read before a call returns, queued or not.
 * Partially overlapping send and receive buffers are weftInvalidArgument; the exact in-place forms
 * named at each collective are allowed.
 *
 * Errors
 *   weftInvalidArgument, weftInvalidUsage: the call had no effect and the communicator stays usable.
 *   Everything else: the communicator is broken; every later call returns the same error. Destroy it.
 *   weftGetLastError says in one line who, what, where and how to fix it.
 *
 *   Buffers of a call that failed are the caller's again when it returns, their contents undefined:
 * it waits until the ranks that share memory with it have let go of them too, half a second at
 * most. A rank that is stopped (SIGSTOP, debugger) in the midst of a call is not waited for.
 *
 *   A lost link between ranks that live (a cable, a port, a connection) is the exception. The call
 * in flight fails with weftRemoteError and a text that names both ranks, device and port. The next
 * call of each rank recovers the communicator: together, within that call's deadline, the ranks
 * choose another transport for the pair (shared memory inside a host; libfabric between hosts where
 * it was verbs), warn of it, and run the call; weftCommGetAsyncError says weftSuccess again,
 * weftCommEdges what carries bytes now. That holds for transports that were asked for by name, too,
 * and for cables that a mesh (verbs) lacks when a communicator is made. In a mesh, ranks then also
 * forward for others along trees over the other cables where that is faster: sums have other bits,
 * the same on all ranks, unless they are to be reproducible.
 *   The failed call keeps its place in the order: go on with the next one on every rank. A rank
 * that had finished it, and rooted calls after it, has no error, and may find it in the next, which
 * then fails on all; so a job that repeats what failed must agree on that, by a call. Messages that were sent and not received
 * when the link was lost, a rank that has died, left or does not come, and a pair that no other
 * transport joins leave the communicator broken, with a text that says so.
 *
 * Threads
 *   Different communicators may be used by different threads at the same time and progress
 *   independently of each other. Calls on one communicator run in the order of issue, whatever their
 *   streams: one without a stream waits for those queued before it, within its deadline. One
 *   communicator is used by one thread at a time, else weftInvalidUsage; weftCommAbort and
 *   weftCommGetAsyncError may be called from any thread.
 *   A rank may have several threads (weftConfig_t.threads): they share the bytes of its large
 * collectives, and of long messages that it receives, in pieces side by side, where that is worth
 * what it costs to call them together; the bits are those of one thread. The communicators that come
 * of its splits use the same ones, one at a time: a call that finds them at work for another does
 * without. Ranks may differ in it. Of shard.h they share sums of gradients, norms and the steps of
 * all optimizers but the caller's own.
 *   Helpers sleep between calls, have the affinity mask of the thread that makes the communicator
 * and take no signals. More of them than that mask has cores are made, with a warning; never do more
 * work at a time than are this rank's part of the cores that the ranks of its host share.
 *   With weftConfig_t.teamCalls they are the application's own, as those of an OpenMP region: every
 * collective, send and receive on that communicator is called by all `threads` of them, with the
 * same arguments, and returns the same result to each. It begins when the last one has come, and its
 * deadline covers that: fewer threads are weftTimeout, on all ranks, with how many came and, from
 * the second call on, which did not. Another call, or another argument but timeoutMs and label, is
 * weftMismatch on all ranks, with both calls, and nothing is sent. More than `threads` at once are
 * weftInvalidUsage for those too many. Threads that wait in a call spin for a moment and then sleep.
 * Such calls take no stream and are in no group: weftInvalidUsage. All else, from weftCommSplit to
 * weftCommDestroy, is called by one thread as ever. A communicator that is split off is called like
 * its parent unless its config says teamCalls = 0.
 *   A communicator does not survive fork(): in the child every call returns weftInvalidUsage.
 */
#ifndef WEFT_WEFT_H_
#define WEFT_WEFT_H_

#include <stddef.h>
#include <stdint.h>

#define WEFT_MAJOR 0
#define WEFT_MINOR 1
#define WEFT_PATCH 0
#define WEFT_VERSION_CODE (WEFT_MAJOR * 10000 + WEFT_MINOR * 100 + WEFT_PATCH)

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

/* In C++ the options may be left out: code of NCCL then compiles with other names. */
#ifdef __cplusplus
#define WEFT_OR_NULL = NULL
#else
#define WEFT_OR_NULL
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weftComm* weftComm_t;
typedef struct weftStream* weftStream_t;
typedef struct weftEvent* weftEvent_t;

/* What a call returns. Values 0 to 7 are NCCL's. */
typedef enum {
  weftSuccess = 0,
  weftUnhandledDeviceError = 1, /* reserved for device memory */
  weftSystemError = 2,          /* a system call failed; the text has errno and the fix */
  weftInternalError = 3,        /* a bug in weft */
  weftInvalidArgument = 4,      /* no effect; the communicator stays usable */
  weftInvalidUsage = 5,         /* no effect; the communicator stays usable */
  weftRemoteError = 6,          /* a peer died or reported an error: the text names it */
  weftInProgress = 7,           /* not finished yet (queries only) */
  weftTimeout = 8,              /* a deadline passed: the text names who is late */
  weftMismatch = 9,             /* ranks called different things: the text names both calls */
  weftAborted = 10,             /* weftCommAbort was called */
  weftOutOfMemory = 11,         /* there is no memory, here or on the rank that the text names */
  weftAuthentication = 12,      /* this rank does not hold the id, or the secret, of the others */
  weftNumResults = 13
} weftResult_t;

/* Types of elements. Values are NCCL's. 16-bit types are added in fp32 and rounded once; between
 * hosts, unless the call is reproducible, once at each step of the algorithm that adds. */
typedef enum {
  weftInt8 = 0,
  weftChar = 0,
  weftUint8 = 1,
  weftInt32 = 2,
  weftInt = 2,
  weftUint32 = 3,
  weftInt64 = 4,
  weftUint64 = 5,
  weftFloat16 = 6,
  weftHalf = 6,
  weftFloat32 = 7,
  weftFloat = 7,
  weftFloat64 = 8,
  weftDouble = 8,
  weftBfloat16 = 9,
  weftNumTypes = 10
} weftDataType_t;

/* Operations of reductions. Sum to avg have NCCL's values; weftRedOpCreatePreMulSum returns further
 * ones. Integer sums wrap around. weftAvg divides the sum by the number of ranks, integers
 * truncating toward zero. Max and min propagate NaN. Band, bor and bxor are MPI's: bitwise, of
 * integers only, weftInvalidArgument for floating point. */
typedef enum {
  weftSum = 0,
  weftProd = 1,
  weftMax = 2,
  weftMin = 3,
  weftAvg = 4,
  weftBand = 5,
  weftBor = 6,
  weftBxor = 7,
  weftNumOps = 8,
  weftMaxRedOp = 0x7fffffff
} weftRedOp_t;

#define WEFT_UNIQUE_ID_BYTES 128
/* Names one communicator to be, and is a secret: whoever holds it can join. Hand it over through
 * memory, a launcher's key-value store or a 0600 file, never on a command line. */
typedef struct {
  char internal[WEFT_UNIQUE_ID_BYTES];
} weftUniqueId;

#define WEFT_UNDEF_INT ((int)0x80000000)

/* Configuration of a communicator. Fields are only ever appended; start from
 * WEFT_CONFIG_INITIALIZER. WEFT_UNDEF_INT or NULL means: the WEFT_* knob, else the default. */
typedef struct {
  size_t size;           /* sizeof(weftConfig_t) of the caller */
  unsigned int magic;    /* WEFT_CONFIG_MAGIC */
  unsigned int version;  /* WEFT_VERSION_CODE of the caller */
  int timeoutMs;         /* WEFT_TIMEOUT_MS: deadline of each operation; default 600000 */
  int initTimeoutMs;     /* WEFT_INIT_TIMEOUT_MS: deadline of creation; default 120000 */
  const char* commName;  /* used in messages; default "comm<k>" */
  const char* transport; /* WEFT_TRANSPORT: "auto", "local" (threads), "shm" (processes of a host),
                            "verbs" (RoCE), "ofi" (EFA, TCP), "shm+ofi" and such, "faulty:SEED";
                            default auto */
  int reproducible; /* WEFT_REPRODUCIBLE: 1 = weftOpts_t.reproducible for every operation; default 0
                     */
  int threads; /* WEFT_THREADS: how many share the bytes of a large call of this rank, see Threads;
                  default 1 */
  void (*parallelFor)(void* context, int n, void (*body)(void* arg, int i), void* arg);
  /* NULL: threads - 1 helpers of the communicator's own. Else the application's pool, of `threads`:
     calls body(arg, 0) ... body(arg, n - 1), n <= threads, each once, on any threads in any order,
     and returns when all have returned. Called on the thread that runs the operation, which is the
     stream's for queued ones, by one communicator at a time, and when the communicator is made. It
     must outlive the communicator, not throw, and call nothing of weft. */
  void* parallelForContext; /* its first argument */
  int teamCalls; /* 1: the application's own team makes each call, all `threads` threads of it, see
                    Threads; default 0 */
  void (*whileWaiting)(void* context);
  /* NULL: nothing. Else called again and again by the thread that runs a call, once it has waited
     some 50 us for others (2 us where ranks share cores): to make progress of what the others may wait
     for in turn, as messages of MPI. Quick, and may neither throw nor call weft; sleeps are 0.2 ms then.
     Not while a communicator is made. */
  void* whileWaitingContext; /* its argument */
} weftConfig_t;

#define WEFT_CONFIG_MAGIC 0x77656674u
#define WEFT_CONFIG_INITIALIZER                                                                 \
  {                                                                                             \
    sizeof(weftConfig_t), WEFT_CONFIG_MAGIC, WEFT_VERSION_CODE, WEFT_UNDEF_INT, WEFT_UNDEF_INT, \
        NULL, NULL, WEFT_UNDEF_INT, WEFT_UNDEF_INT, NULL, NULL, WEFT_UNDEF_INT, NULL, NULL      \
  }

/* Options of one operation, the trailing argument of each; NULL means all defaults.
 * Fields are only ever appended; start from WEFT_OPTS_INITIALIZER. All ranks must pass the same
 * algorithm and reproducible. */
typedef struct {
  size_t size;           /* sizeof(weftOpts_t) of the caller */
  unsigned int magic;    /* WEFT_OPTS_MAGIC */
  unsigned int version;  /* WEFT_VERSION_CODE of the caller */
  int timeoutMs;         /* deadline of this operation; WEFT_UNDEF_INT: the communicator's */
  const char* algorithm; /* force a generator by name ("ring"); an unknown or unfit one is an error,
                            never a fallback; weft-perf --algo list prints the names */
  int reproducible;  /* 1: the sum is folded in rank order whatever size and algorithm, so that the
                        same inputs on the same number of ranks give the same bits always */
  const char* label; /* shown in errors and logs */
} weftOpts_t;

#define WEFT_OPTS_MAGIC 0x6f707473u
#define WEFT_OPTS_INITIALIZER                                                                     \
  {                                                                                               \
    sizeof(weftOpts_t), WEFT_OPTS_MAGIC, WEFT_VERSION_CODE, WEFT_UNDEF_INT, NULL, WEFT_UNDEF_INT, \
        NULL                                                                                      \
  }

/* ---- Version and errors ------------------------------------------------------------------- */

WEFT_API weftResult_t weftGetVersion(int* version); /* WEFT_VERSION_CODE of the library */
/* A result in words. Static, never NULL. */
WEFT_API const char* weftGetErrorString(weftResult_t result);
/* The last error's line. Right after a call of this thread on `comm` that failed, that call's, and
 * after weftCommGetAsyncError that of the result it gave; else that of what broke `comm`; if comm
 * is NULL or whole, that of the calling thread. Never NULL; valid until the next weft call of this
 * thread. */
WEFT_API const char* weftGetLastError(weftComm_t comm);

/* The last error as data, of which its line is printed. Fields are only ever appended; start from
 * WEFT_ERROR_INFO_INITIALIZER. What is not known is -1 (rank), 0 or "".
 *   The pointers are never NULL but missingRanks, and live as long as what weftGetLastError
 * returns: until the next weft call of this thread, these two apart. Copy what is to be kept.
 *   rank: the culprit, who died, left, is late, disagrees or is at the other end of a lost link.
 *   missingRanks, in order: who did not come to a call or to the making of a communicator, or is
 * cut off. All of them if this rank saw it; if another told it, as many as fit in 2 KB. */
typedef struct {
  size_t size;             /* sizeof(weftErrorInfo_t) of the caller */
  unsigned int magic;      /* WEFT_ERROR_INFO_MAGIC */
  unsigned int version;    /* WEFT_VERSION_CODE of the caller */
  weftResult_t result;     /* weftSuccess: there was no error, and all else is empty */
  int rank;                /* in the communicator; -1: nobody is to blame, or a whole host */
  int pid;                 /* of `rank`, as its process sees itself */
  int port;                /* of `device`, from 1; 0: it has no numbers */
  const char* host;        /* of `rank`, or the culprit itself */
  const char* device;      /* this end of a lost link: "mlx5_0", "eth0" */
  const char* call;        /* "barrier() #2 on communicator c"; weftMismatch: what each called */
  const char* message;     /* the line without its fix */
  const char* fix;         /* what to do */
  const int* missingRanks; /* missingCount of them */
  int missingCount;
  const char* variable; /* of the environment, whose value is refused */
} weftErrorInfo_t;

#define WEFT_ERROR_INFO_MAGIC 0x65727269u
#define WEFT_ERROR_INFO_INITIALIZER                                                               \
  {                                                                                               \
    sizeof(weftErrorInfo_t), WEFT_ERROR_INFO_MAGIC, WEFT_VERSION_CODE, weftSuccess, -1, 0, 0, "", \
        "", "", "", "", NULL, 0, ""                                                               \
  }

/* The last error as data: of the one whose line weftGetLastError(comm) returns. Changes nothing of
 * it, unless it fails itself: weftInvalidArgument if info is NULL or not initialized. */
WEFT_API weftResult_t weftGetLastErrorInfo(weftComm_t comm, weftErrorInfo_t* info);

/* ---- Creating and ending communicators ---------------------------------------------------- */

/* Makes an id, and starts a listener for it in this process. That must live until all ranks have
 * joined. WEFT_COMM_ID=host:port makes every process derive one and the same id instead (needs
 * WEFT_SECRET). */
WEFT_API weftResult_t weftGetUniqueId(weftUniqueId* id);

/* Joins as `rank` of `nranks`: collective, returns when all have joined. A wrong world size, a rank
 * joined twice or a different version fails on all ranks with the same text. Between
 * weftGroupStart and weftGroupEnd it is deferred, so one thread can create several ranks. The
 * process that made the id must not exit before this call has returned on every rank. */
WEFT_API weftResult_t weftCommInitRank(weftComm_t* comm, int nranks, weftUniqueId id, int rank);
WEFT_API weftResult_t weftCommInitRankConfig(weftComm_t* comm, int nranks, weftUniqueId id,
                                             int rank, const weftConfig_t* config);

/* n communicators, ranks 0..n-1 of one group, for threads of this process. devices is NCCL's
 * argument and must be NULL or list host "device" numbers, which are ignored. */
WEFT_API weftResult_t weftCommInitAll(weftComm_t* comms, int n, const int* devices);
WEFT_API weftResult_t weftCommInitAllConfig(weftComm_t* comms, int n, const int* devices,
                                            const weftConfig_t* config);

/* Makes a communicator as the launcher says. Rank, size and bootstrap root are those of the
 * innermost: WEFT_RANK/WEFT_SIZE/WEFT_ROOT, torchrun, Open MPI or PMIx, PMI (MPICH), Slurm, AWS
 * Batch, else one rank alone. Logged at INFO. */
WEFT_API weftResult_t weftCommInitFromEnv(weftComm_t* comm, const weftConfig_t* config);

/* Splits a communicator, collectively. Ranks of equal color form a new one, ordered by key, then by
 * parent rank; color WEFT_SPLIT_NOCOLOR gets *newcomm == NULL. config == NULL inherits the
 * parent's. */
#define WEFT_SPLIT_NOCOLOR (-1)
WEFT_API weftResult_t weftCommSplit(weftComm_t comm, int color, int key, weftComm_t* newcomm,
                                    const weftConfig_t* config);

/* Finishes the use of a communicator. Waits for queued operations and, if the last was a rooted
 * call, until the other ranks have made it too. Then weftCommDestroy frees it; destroy is local and
 * bounded, never collective: with operations in flight it aborts them. What this rank has sent
 * still arrives, but it is told no more if others disagree. NULL is a no-op. */
WEFT_API weftResult_t weftCommFinalize(weftComm_t comm);
WEFT_API weftResult_t weftCommDestroy(weftComm_t comm);
/* Ends all operations of a communicator, from any thread. Those in flight, here and on the peers,
 * return weftAborted promptly, and so does every later call. The handle must still be given to
 * weftCommDestroy. */
WEFT_API weftResult_t weftCommAbort(weftComm_t comm);

/* The communicator's first error. *result is weftSuccess while it is healthy. Also looks for dead
 * peers. */
WEFT_API weftResult_t weftCommGetAsyncError(weftComm_t comm, weftResult_t* result);
/* The number of ranks. */
WEFT_API weftResult_t weftCommCount(weftComm_t comm, int* count);
/* This rank's number, from 0. */
WEFT_API weftResult_t weftCommUserRank(weftComm_t comm, int* rank);
/* Rank among, and number of, the ranks on this host. */
WEFT_API weftResult_t weftCommLocalRank(weftComm_t comm, int* localRank, int* localCount);

/* Bytes that the library itself holds for this rank of the communicator. Filled in as far as
 * stats->size, which the caller sets, says. */
typedef struct {
  size_t size;   /* sizeof(weftMemStats_t) of the caller */
  size_t shared; /* this rank's own window: what it has used of staging slots and flags */
  size_t plans;  /* cached plans, and what calls have found out */
  size_t other;  /* everything else: peer table, queues */
} weftMemStats_t;
WEFT_API weftResult_t weftCommMemStats(weftComm_t comm, weftMemStats_t* stats);

/* What carries bytes from this rank to the others: a line for each way, "ranks 1-3: shm". What
 * stands before the first comma is its kind, what follows are devices and addresses. The text is
 * written to `text` (NUL-terminated, cut to `length`). */
WEFT_API weftResult_t weftCommEdges(weftComm_t comm, char* text, size_t length);

/* Which algorithm, segment size and transport a call would use. One line, and in brackets the
 * fingerprint of this rank's op list, which weft-sim prints, too. The text is written to `text`
 * (NUL-terminated, cut to `length`). collective: nccl-tests' name ("all_reduce"). */
WEFT_API weftResult_t weftExplain(weftComm_t comm, const char* collective, size_t count,
                                  weftDataType_t type, char* text, size_t length);
/* As weftExplain for a call with these options, and on a second line why: what decides (the call, a
 * knob or the model) and the estimated time of each form that was considered. op counts where the
 * collective reduces. Where ranks are on several NUMA nodes, a third line: how many bytes this rank
 * writes to memory of the others, and reads from it. collective == NULL: the numbers of this
 * machine that the ranks agreed on and that the model counts with, measured once in a few
 * milliseconds (see WEFT_TUNE_FILE). */
WEFT_API weftResult_t weftCommExplain(weftComm_t comm, const char* collective, size_t count,
                                      weftDataType_t type, weftRedOp_t op, const weftOpts_t* opts,
                                      char* text, size_t length);
/* One op of a call as this rank ran it, of a communicator that is traced. */
typedef struct {
  uint64_t beginNs; /* CLOCK_MONOTONIC of this host; a wait begins when the rank comes to it */
  uint64_t endNs;   /* of a message to another host: when it was posted */
  uint64_t bytes;   /* of payload; 0: a signal, a wait */
  uint32_t segment; /* of the call */
  uint32_t op;      /* its number in the rank's op list, which weft-sim counts alike */
  uint32_t lane;    /* segments that are in flight together have different ones */
  int kind;         /* weftOpName(kind): "Put", "Wait", "Fold", ... */
  int peer;         /* the other rank of a message or a wait; else this rank */
} weftOpSpan_t;

/* Traces the ops of collective calls, on this rank alone. Those of calls that are issued after this
 * one are written to `spans`, which has room for so many and stays with the library until
 * weftCommTraceStop. Point to point and exchanges (weftAlltoAllV) are not traced, and a recovered
 * communicator is not any more. */
WEFT_API weftResult_t weftCommTraceStart(weftComm_t comm, weftOpSpan_t* spans, size_t room);
/* Ends what weftCommTraceStart began. All calls that were issued before are done then. *made: ops
 * that were run, of which the first `room` are in `spans`. */
WEFT_API weftResult_t weftCommTraceStop(weftComm_t comm, size_t* made);
/* The name of a kind of op, of weftOpSpan_t; of another number "unknown op". Static. */
WEFT_API const char* weftOpName(int kind);

/* Names of the algorithms that weftOpts_t.algorithm accepts. Comma-separated, those for a
 * collective by nccl-tests' name, "" if there is none of that name; of NULL those of each,
 * "all_reduce=...;all_gather=...". Never NULL; valid until this thread's next call of it. */
WEFT_API const char* weftAlgorithms(const char* collective);

/* ---- Collectives -------------------------------------------------------------------------- */

/* Reduces over the ranks, for all of them: recvbuff[i] = op over ranks of sendbuff[i], count
 * elements. In place: sendbuff == recvbuff. All ranks end with the same bits. */
WEFT_API weftResult_t weftAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                    weftDataType_t type, weftRedOp_t op, weftComm_t comm,
                                    weftStream_t stream, const weftOpts_t* opts WEFT_OR_NULL);

/* Gathers a block of each rank, for all of them: sendcount elements from each, in rank order.
 * recvbuff holds nranks * sendcount. In place: sendbuff == recvbuff + rank * sendcount. */
WEFT_API weftResult_t weftAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                    weftDataType_t type, weftComm_t comm, weftStream_t stream,
                                    const weftOpts_t* opts WEFT_OR_NULL);

/* Reduces over the ranks, and leaves each a block: sendbuff holds nranks * recvcount; rank r gets
 * the reduction of block r. In place: recvbuff == sendbuff + rank * recvcount. */
WEFT_API weftResult_t weftReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                        weftDataType_t type, weftRedOp_t op, weftComm_t comm,
                                        weftStream_t stream, const weftOpts_t* opts WEFT_OR_NULL);

/* All-gather and reduce-scatter of uneven blocks: counts[r] elements for rank r at displs[r] (in
 * elements, from the start of the large buffer; NULL = packed in rank order). The same counts and
 * displs on every rank, which ranks compare like everything else. Blocks must not overlap. In place
 * as in the even forms, at the block's displacement. */
WEFT_API weftResult_t weftAllGatherV(const void* sendbuff, void* recvbuff, const size_t* counts,
                                     const size_t* displs, weftDataType_t type, weftComm_t comm,
                                     weftStream_t stream, const weftOpts_t* opts WEFT_OR_NULL);
WEFT_API weftResult_t weftReduceScatterV(const void* sendbuff, void* recvbuff, const size_t* counts,
                                         const size_t* displs, weftDataType_t type, weftRedOp_t op,
                                         weftComm_t comm, weftStream_t stream,
                                         const weftOpts_t* opts WEFT_OR_NULL);

/* Gather, scatter and all-to-all of uneven blocks: each rank passes what it knows, as in MPI. What
 * one sends must be what the other expects: ranks compare type and root at each call, and counts
 * pair by pair (weftMismatch names both). displs: as above, and of a buffer that is sent blocks may
 * overlap. An empty pair of blocks costs a message all the same. Algorithm "direct" alone. Gather:
 * recvcounts and displs are read, and recvbuff is written, at root only; scatter is the mirror. In
 * place: at root, the small buffer is its block of the large one. All-to-all: rank s's
 * sendcounts[d] elements at sdispls[d] become rank d's recvcounts[s] at rdispls[s]; not in place.
 */
WEFT_API weftResult_t weftGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                  const size_t* recvcounts, const size_t* displs,
                                  weftDataType_t type, int root, weftComm_t comm,
                                  weftStream_t stream, const weftOpts_t* opts WEFT_OR_NULL);
WEFT_API weftResult_t weftScatterV(const void* sendbuff, const size_t* sendcounts,
                                   const size_t* displs, void* recvbuff, size_t recvcount,
                                   weftDataType_t type, int root, weftComm_t comm,
                                   weftStream_t stream, const weftOpts_t* opts WEFT_OR_NULL);
WEFT_API weftResult_t weftAlltoAllV(const void* sendbuff, const size_t* sendcounts,
                                    const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
                                    const size_t* rdispls, weftDataType_t type, weftComm_t comm,
                                    weftStream_t stream, const weftOpts_t* opts WEFT_OR_NULL);

/* Sends root's buffer to all: root's sendbuff to everybody's recvbuff; sendbuff is ignored
 * elsewhere. In place: equal at root. */
WEFT_API weftResult_t weftBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                    weftDataType_t type, int root, weftComm_t comm,
                                    weftStream_t stream, const weftOpts_t* opts WEFT_OR_NULL);
/* Reduces over the ranks, for root: the result lands in root's recvbuff; recvbuff is ignored
 * elsewhere. In place: equal at root. */
WEFT_API weftResult_t weftReduce(const void* sendbuff, void* recvbuff, size_t count,
                                 weftDataType_t type, weftRedOp_t op, int root, weftComm_t comm,
                                 weftStream_t stream, const weftOpts_t* opts WEFT_OR_NULL);
/* Gathers a block of each rank at root, or scatters root's: count elements per rank. Gather: root's
 * recvbuff holds nranks * count; in place: root's sendbuff == recvbuff + root * count. Scatter is
 * the mirror. */
WEFT_API weftResult_t weftGather(const void* sendbuff, void* recvbuff, size_t count,
                                 weftDataType_t type, int root, weftComm_t comm,
                                 weftStream_t stream, const weftOpts_t* opts WEFT_OR_NULL);
WEFT_API weftResult_t weftScatter(const void* sendbuff, void* recvbuff, size_t count,
                                  weftDataType_t type, int root, weftComm_t comm,
                                  weftStream_t stream, const weftOpts_t* opts WEFT_OR_NULL);
/* Exchanges blocks, each rank with each: block d of my sendbuff becomes block s of rank d's
 * recvbuff; count elements a block. Not in place. */
WEFT_API weftResult_t weftAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                                   weftDataType_t type, weftComm_t comm, weftStream_t stream,
                                   const weftOpts_t* opts WEFT_OR_NULL);
/* Waits until all ranks have called it. */
WEFT_API weftResult_t weftBarrier(weftComm_t comm, weftStream_t stream,
                                  const weftOpts_t* opts WEFT_OR_NULL);

/* Sends to, or receives from, one rank: matched per pair in order of issue; counts and types must
 * agree. A send may wait for its receive: exchanges go between weftGroupStart and weftGroupEnd,
 * where all progress together. */
WEFT_API weftResult_t weftSend(const void* sendbuff, size_t count, weftDataType_t type, int peer,
                               weftComm_t comm, weftStream_t stream,
                               const weftOpts_t* opts WEFT_OR_NULL);
WEFT_API weftResult_t weftRecv(void* recvbuff, size_t count, weftDataType_t type, int peer,
                               weftComm_t comm, weftStream_t stream,
                               const weftOpts_t* opts WEFT_OR_NULL);

/* Begin and end a group of calls. Those of this thread between the two are collected and start at
 * the outermost weftGroupEnd, which returns the first error. Argument errors are reported by the
 * call itself. A communicator's sends and receives in a group start when all their streams have
 * come to it, and these go on when all are done; if one has no stream, weftGroupEnd returns when
 * all are done. */
WEFT_API weftResult_t weftGroupStart(void);
WEFT_API weftResult_t weftGroupEnd(void);

/* An operation that sums scalar * input over ranks. *scalar (of `type`) is read now. Each rank may
 * have its own scalar. Valid for this communicator until destroyed. */
WEFT_API weftResult_t weftRedOpCreatePreMulSum(weftRedOp_t* op, const void* scalar,
                                               weftDataType_t type, weftComm_t comm);
/* Frees an operation of weftRedOpCreatePreMulSum. Calls that have been issued with it go on. */
WEFT_API weftResult_t weftRedOpDestroy(weftRedOp_t op, weftComm_t comm);

/* ---- Memory ------------------------------------------------------------------------------- */

/* Memory for communication that the ranks of this host reach directly: where all ranks of a call
 * pass such buffers, collectives read and write them in place, without staging, and are faster.
 * Zeroed, and there from the start: weftOutOfMemory if it cannot be had, never a fault later.
 * Aligned to 4 KiB, from 2 MiB on to 2 MiB. Not tied to a communicator; any thread. size 0 gives
 * NULL. It is part of one mapping a process, which other processes map when they join (address
 * space, no memory); where that cannot be had (ulimit -v) it is ordinary memory, which works alike
 * and slower. It is shared with forked children, who see each other's stores, unlike malloc's; a
 * child's weftMemFree of its parent's memory does nothing. Not in core dumps.
 *   Calls look for such buffers where they would gain. Where eight in a row of the same collective,
 * type, count and root found that a rank had passed others, only each 64th looks again. */
WEFT_API weftResult_t weftMemAlloc(void** ptr, size_t size);
/* Frees memory of weftMemAlloc. No call that uses it may be in progress, on any rank. NULL is a
 * no-op. */
WEFT_API weftResult_t weftMemFree(void* ptr);
/* Memory of weftMemAlloc for a program's own allocator, as PyTorch's: blocks (see
 * weft.use_shared_tensors in docs/pytorch.md) of whole pages of 4 KiB, not zeroed, with their
 * pages kept when they are freed, for whoever comes next; all but 256 MiB and as much again as is
 * in use. *ptr is NULL, without an error, where there is no room or no memory: take malloc's then.
 * Any thread. After a fork a child's stores are its own, as in malloc's memory; but a page that it
 * has not stored to shows what its parent stores there. What its parent frees is not used again
 * until the child has ended. A child's weftPoolFree of its parent's block does nothing. Not in
 * core dumps. */
WEFT_API weftResult_t weftPoolAlloc(void** ptr, size_t size);
/* Frees memory of weftPoolAlloc, as weftMemFree does that of weftMemAlloc: each takes its own. */
WEFT_API weftResult_t weftPoolFree(void* ptr);
/* Makes memory of the application as fast as weftMemAlloc's. That is malloc's, or of anonymous
 * private mappings, and it is so where all ranks of a call have such buffers or parts of them.
 * Between processes of a host the whole pages inside the range move into the memory of
 * weftMemAlloc: their contents are copied, and the new pages take the place of the old ones at the
 * same addresses. The ends, less than a page, are copied in each call. Takes some milliseconds,
 * about those of a copy and, until it returns, as much memory again; worth it for buffers from 64
 * KiB on that are used often. Ends with the communicator at the latest, and gives the application
 * ordinary pages again, with the contents.
 *   While it is registered and deregistered, nobody may write to the memory, no other thread,
 * device or kernel (reads that are under way, io_uring), whose stores would be lost; others may
 * read it. No call that uses it may be in progress on any rank when it is deregistered. A range
 * within one that is registered, by any communicator, counts as one more user of that; the last
 * one moves it back.
 *   What cannot move is registered all the same, and used as any memory; a line at INFO
 * (WEFT_DEBUG) says why: less than a page; files, shared memory, huge pages of hugetlbfs, stacks;
 * what is read-only, executable, locked, sealed, withheld from children or watched by userfaultfd;
 * where a device or io_uring has pinned memory of this process; a part of which is registered
 * already; for want of memory. So it is where ranks are threads, which reach all memory, for
 * memory of weftMemAlloc, and where not all ranks share a host. Memory that is not mapped, and would
 * move, is weftInvalidArgument.
 *   Deregister before the memory is freed, unmapped, protected or grown (realloc of more than the
 * range is a free). malloc would use pages again that are shared and of which weftCommDeregister
 * restores the contents. What was unmapped or mapped anew meanwhile, weftCommDeregister leaves
 * alone: weftInvalidUsage.
 *   After a fork a child's stores are its own, as in malloc's memory. But a page that it has not
 * stored to shows what its parent stores there, and until the child has ended, memory that its
 * parent deregisters keeps its place in weft's. Registered memory is in core dumps, as the kernel
 * has it for shared anonymous memory (bit 1 of coredump_filter, which is set by default). */
WEFT_API weftResult_t weftCommRegister(weftComm_t comm, void* buff, size_t size, void** handle);
/* Ends what weftCommRegister began. weftOutOfMemory: it could not be moved back, and stays
 * registered. */
WEFT_API weftResult_t weftCommDeregister(weftComm_t comm, void* handle);

/* ---- Streams and events of host memory ---------------------------------------------------- */

/* Makes a stream. It is a queue with a thread of its own. */
WEFT_API weftResult_t weftStreamCreate(weftStream_t* stream);
/* Waits for the queued work (bounded by its deadlines), then frees. */
WEFT_API weftResult_t weftStreamDestroy(weftStream_t stream);
/* Waits until everything queued so far is done; returns the first error since the last call. */
WEFT_API weftResult_t weftStreamSynchronize(weftStream_t stream);
/* Whether everything queued is done. weftSuccess, weftInProgress or the error. */
WEFT_API weftResult_t weftStreamQuery(weftStream_t stream);
/* Work queued later waits for the event's most recent record. */
WEFT_API weftResult_t weftStreamWaitEvent(weftStream_t stream, weftEvent_t event);
/* Runs fn(arg) on the worker, in order. fn must not call weft functions that wait for this stream.
 * It runs whether or not the work before it failed, and is not told; as an event is not, either:
 * weftCommGetAsyncError tells of a communicator, weftStreamSynchronize of a stream. */
WEFT_API weftResult_t weftStreamCallback(weftStream_t stream, void (*fn)(void*), void* arg);

/* Makes an event: a mark in the work of a stream. It has passed until it is recorded. */
WEFT_API weftResult_t weftEventCreate(weftEvent_t* event);
/* Frees an event. Work that waits for it goes on as before. NULL is a no-op. */
WEFT_API weftResult_t weftEventDestroy(weftEvent_t event);
/* Puts the mark behind what is queued so far. The event passes when that is done; at once, if
 * stream is NULL. */
WEFT_API weftResult_t weftEventRecord(weftEvent_t event, weftStream_t stream);
/* Waits until the event's most recent record has passed. */
WEFT_API weftResult_t weftEventSynchronize(weftEvent_t event);
/* Whether the event's most recent record has passed. weftSuccess or weftInProgress. */
WEFT_API weftResult_t weftEventQuery(weftEvent_t event);
/* Milliseconds between the most recent records of two events. weftInvalidUsage if one has not passed,
 * or was never recorded. */
WEFT_API weftResult_t weftEventElapsedTime(float* ms, weftEvent_t start, weftEvent_t end);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_WEFT_H_ */
