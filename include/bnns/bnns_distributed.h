// OpenBNNS: one training over many processes, started with mpirun (library libbnns_mpi). Nothing here exists in Apple's
// library; names begin with BNNSExt.
//
//   BNNSExtGroup group = BNNSExtGroupCreate(NULL, NULL);      // also where there is no mpirun: a group of one rank
//   BNNSExtGroupBroadcast(group, 0, n, parameters);
//   for (;;) {
//     for (size_t s = 0; s < BNNSExtGroupShards(group); s++) {
//       size_t first, count;                                  // these items of the batch are this shard's
//       BNNSExtGroupItems(group, batch, s, &first, &count);
//       ... forward and backward of those items ...
//       BNNSExtGroupReduceStart(group, BNNSExtGroupMean, s, n, gradients);
//     }
//     BNNSExtGroupOptimizerStep(group, BNNSOptimizerFunctionAdam, &adam, n, parameters, gradients, moments, NULL);
//   }
//   BNNSExtGroupFinalize(group);
//
// Shards. A batch is split into shards of equal size, 8 unless told, and each rank runs as many of them. What the
// shards give is added along one binary tree that only the number of shards fixes: 1, 2, 4 and 8 ranks end with the
// same bits. In fast mode a rank has one shard and MPI chooses the order; the bits then depend on the number of ranks.
//
// Agreement. Every rank makes the same calls in the same order, with arrays of the same number, types and sizes. Before
// anything moves the ranks compare what they were asked for. Where they differ, every rank gets an error that names
// rank, call (counted from 1) and array. Where a rank does not come, or dies, the others get an error that names it
// within the timeout. After such an error the group is of no more use: every call returns the same reason, and the
// process should end without MPI_Finalize, which would wait for the others.
//
// Arrays are dense (strides of 0 count as dense) and of Float32, Float16 or BFloat16; those of a broadcast may have any
// type. A group is used by one thread at a time. Errors are as everywhere: BNNSExtLastError() has one line.

#ifndef BNNS_DISTRIBUTED_HEADER
#define BNNS_DISTRIBUTED_HEADER

#include "bnns.h"

// Removed again at the end of this file. Nullability is a clang extension; other compilers see nothing.
#define BNNS_API __attribute__((visibility("default")))
#ifdef __cplusplus
#define BNNS_NOEXCEPT noexcept
#else
#define BNNS_NOEXCEPT
#endif
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnullability-extension"
#define BNNS_NONNULL _Nonnull
#define BNNS_NULLABLE _Nullable
#else
#define BNNS_NONNULL
#define BNNS_NULLABLE
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// The ranks that train together.
typedef struct BNNSExtGroup_* BNNSExtGroup;

/// Who fixes the order of sums.
#ifdef __cplusplus
typedef enum : uint32_t {
#else
typedef uint32_t BNNSExtGroupMode;
enum {
#endif
  BNNSExtGroupDeterministic = 0,  ///< The tree of shards: the same bits for any number of ranks
  BNNSExtGroupFast = 1            ///< MPI_Iallreduce: one shard for each rank
#ifdef __cplusplus
} BNNSExtGroupMode;
#else
};
#endif

/// What a reduction computes.
#ifdef __cplusplus
typedef enum : uint32_t {
#else
typedef uint32_t BNNSExtGroupReduction;
enum {
#endif
  BNNSExtGroupSum = 0,
  BNNSExtGroupMean = 1,  ///< The sum divided by the number of shards; of BNNSExtGroupAllReduce by that of ranks
  BNNSExtGroupMax = 2
#ifdef __cplusplus
} BNNSExtGroupReduction;
#else
};
#endif

/// How a group works; all zeros is the default. The same on every rank.
typedef struct {
  BNNSExtGroupMode mode;  ///< Deterministic unless told
  BNNSDataType wire;  ///< What travels: Float32 (also 0), Float16 or BFloat16, which take half the bytes; every node
                      ///< of the tree is then rounded to it, so the bits still do not depend on the number of ranks
  size_t shards;      ///< A power of two that is a multiple of the number of ranks, or 0: 8. Fast mode takes 0 only
  double timeout;     ///< Seconds until a rank that does not come is an error, or 0: 30
} BNNSExtGroupParameters;

// ---- The group ------------------------------------------------------------------------------------------------------

/// Makes a group; every rank calls it. MPI is initialized if that has not been done. A process that no mpirun or srun
/// started, and that has not initialized MPI, is a group of one rank without it. NULL, with a reason, on failure.
/// - communicator: The address of an MPI_Comm, which is duplicated, or NULL: MPI_COMM_WORLD
/// - parameters: How it works, or NULL: the default
BNNS_API BNNSExtGroup BNNS_NULLABLE BNNSExtGroupCreate(
    const void* BNNS_NULLABLE communicator, const BNNSExtGroupParameters* BNNS_NULLABLE parameters) BNNS_NOEXCEPT;

/// Ends a group; every rank calls it. Where BNNSExtGroupCreate initialized MPI it is finalized when the process exits.
/// Returns 0, or -1 with a reason where the ranks are not all here, or the group failed before; it is gone all the
/// same.
/// - group: A group, or NULL, which does nothing
BNNS_API int BNNSExtGroupFinalize(BNNSExtGroup BNNS_NULLABLE group) BNNS_NOEXCEPT;

/// The number of this process in the group, from 0; SIZE_MAX if `group` is none.
/// - group: A group
BNNS_API size_t BNNSExtGroupRank(BNNSExtGroup BNNS_NONNULL group) BNNS_NOEXCEPT;

/// The number of ranks; 0 if `group` is none.
/// - group: A group
BNNS_API size_t BNNSExtGroupSize(BNNSExtGroup BNNS_NONNULL group) BNNS_NOEXCEPT;

/// The number of shards that this rank runs in every step; 0 if `group` is none.
/// - group: A group
BNNS_API size_t BNNSExtGroupShards(BNNSExtGroup BNNS_NONNULL group) BNNS_NOEXCEPT;

/// Which items of a batch belong to a shard of this rank. Returns 0, or -1 with a reason, such as a batch that the
/// shards of all ranks do not divide. No rank waits for another.
/// - group: A group
/// - batch: Items of all ranks together
/// - shard: Which shard of this rank, from 0
/// - first: Receives the first item
/// - count: Receives how many follow each other from there
BNNS_API int BNNSExtGroupItems(BNNSExtGroup BNNS_NONNULL group, size_t batch, size_t shard, size_t* BNNS_NONNULL first,
                               size_t* BNNS_NONNULL count) BNNS_NOEXCEPT;

// ---- Arrays ---------------------------------------------------------------------------------------------------------

/// Copies arrays of one rank to all others. Returns 0, or -1 with a reason; the arrays are then as they were.
/// - group: A group
/// - root: The rank whose arrays all get
/// - n: How many
/// - arrays: The arrays. NULL if n is 0
BNNS_API int BNNSExtGroupBroadcast(BNNSExtGroup BNNS_NONNULL group, size_t root, size_t n,
                                   BNNSNDArrayDescriptor* BNNS_NONNULL const* BNNS_NULLABLE arrays) BNNS_NOEXCEPT;

/// Combines arrays of all ranks, one of each, and gives every rank the result. For what belongs to a rank: times,
/// counts. What belongs to shards goes through BNNSExtGroupReduceStart. Returns 0, or -1 with a reason; the arrays are
/// then as they were.
/// - group: A group without a reduction that was started and not waited for
/// - reduction: What is computed
/// - n: How many
/// - arrays: The arrays, overwritten with the result. NULL if n is 0
BNNS_API int BNNSExtGroupAllReduce(BNNSExtGroup BNNS_NONNULL group, BNNSExtGroupReduction reduction, size_t n,
                                   BNNSNDArrayDescriptor* BNNS_NONNULL const* BNNS_NULLABLE arrays) BNNS_NOEXCEPT;

/// Gives what one shard computed to the tree, and returns: what is complete travels while the caller goes on, for
/// example from inside the backward pass, layer by layer. The arrays are copied. For every shard of the rank, from 0
/// on, the calls are the same, and name the same memory. Returns 0, or -1 with a reason.
/// - group: A group
/// - reduction: What is computed over all shards of all ranks
/// - shard: Which shard of this rank, from 0
/// - n: How many
/// - arrays: The arrays. NULL if n is 0
BNNS_API int BNNSExtGroupReduceStart(BNNSExtGroup BNNS_NONNULL group, BNNSExtGroupReduction reduction, size_t shard,
                                     size_t n, const BNNSNDArrayDescriptor* BNNS_NONNULL const* BNNS_NULLABLE arrays)
    BNNS_NOEXCEPT;

/// Waits for all reductions that were started, and writes their results over the arrays. Returns 0, or -1 with a
/// reason; the arrays are then as they were.
/// - group: A group
BNNS_API int BNNSExtGroupReduceWait(BNNSExtGroup BNNS_NONNULL group) BNNS_NOEXCEPT;

/// BNNSExtGroupReduceWait, then BNNSOptimizerStep with the arguments of that function. Every gradient must have been
/// given to BNNSExtGroupReduceStart since the last wait. Returns 0, or -1 with a reason; no parameter is changed then.
/// - group: A group
/// - function: The optimizer
/// - fields: Its fields
/// - n: How many parameters
/// - parameters: The parameters
/// - gradients: Their gradients
/// - accumulators: What the optimizer keeps; NULL if that is nothing
/// - filter_parameters: Options, or NULL
BNNS_API int BNNSExtGroupOptimizerStep(BNNSExtGroup BNNS_NONNULL group, BNNSOptimizerFunction function,
                                       const void* BNNS_NONNULL fields, size_t n,
                                       BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL parameters,
                                       const BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL gradients,
                                       BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NULLABLE accumulators,
                                       const BNNSFilterParameters* BNNS_NULLABLE filter_parameters) BNNS_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#undef BNNS_API
#undef BNNS_NOEXCEPT
#undef BNNS_NONNULL
#undef BNNS_NULLABLE
#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif  // BNNS_DISTRIBUTED_HEADER
