// OpenBNNS: what we add to the BNNS C API. Nothing here exists in Apple's library; names begin with BNNSExt, and macros
// with OPENBNNS_.
//
// Strings that functions return are owned by the library. Every function may be called from any thread, and none fails
// other than by the value it returns.

#ifndef BNNS_EXTENSIONS_HEADER
#define BNNS_EXTENSIONS_HEADER

#include <stddef.h>
#include <stdint.h>

// The version of these headers: three numbers, one that compares (0.1.0 is 100, 1.2.3 is 10203) and a text. A program
// that asks `#if OPENBNNS_VERSION >= 200` asks what it was compiled for; BNNSExtVersion() says what it runs with.
#define OPENBNNS_VERSION_MAJOR 0
#define OPENBNNS_VERSION_MINOR 1
#define OPENBNNS_VERSION_PATCH 0
#define OPENBNNS_VERSION (OPENBNNS_VERSION_MAJOR * 10000 + OPENBNNS_VERSION_MINOR * 100 + OPENBNNS_VERSION_PATCH)
#define OPENBNNS_VERSION_TEXT_OF(major, minor, patch) #major "." #minor "." #patch
#define OPENBNNS_VERSION_TEXT_FROM(major, minor, patch) OPENBNNS_VERSION_TEXT_OF(major, minor, patch)
#define OPENBNNS_VERSION_TEXT \
  OPENBNNS_VERSION_TEXT_FROM(OPENBNNS_VERSION_MAJOR, OPENBNNS_VERSION_MINOR, OPENBNNS_VERSION_PATCH)

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

/// The version of the library that runs, such as "0.1.0"; OPENBNNS_VERSION_TEXT is that of this header.
BNNS_API const char* BNNS_NONNULL BNNSExtVersion(void) BNNS_NOEXCEPT;

// ---- Why a call failed ----------------------------------------------------------------------------------------------

/// The reason of the last failure of a BNNS call on this thread, one line: "function: operator: reason". "" if none.
/// A call that succeeds leaves it unchanged. The text stays valid until the next BNNS call on this thread.
BNNS_API const char* BNNS_NONNULL BNNSExtLastError(void) BNNS_NOEXCEPT;

/// Forgets the reason: BNNSExtLastError() returns "" until the next failure on this thread.
BNNS_API void BNNSExtClearLastError(void) BNNS_NOEXCEPT;

/// What a message of the log is about.
#ifdef __cplusplus
typedef enum : uint32_t {
#else
typedef uint32_t BNNSExtLogLevel;
enum {
#endif
  BNNSExtLogError = 0,    ///< An argument is invalid: the call is wrong. Or a setting of the environment is ignored
  BNNSExtLogInfo = 1,     ///< The call is well formed, but the library does not offer it
  BNNSExtLogVerbose = 2,  ///< A line of BNNS_VERBOSE=1: what was created or run, and how long it took
  BNNSExtLogNote = 3      ///< The call was carried out, but is hardly what was meant. Or what BNNS_CHECK_NAN found
#ifdef __cplusplus
} BNNSExtLogLevel;
#else
};
#endif

/// Receives one message: a line without its end, valid during the call. It runs on the thread of the BNNS call that
/// caused it, possibly on several threads at once, and must not throw.
typedef void (*BNNSExtLogCallback)(BNNSExtLogLevel level, const char* BNNS_NONNULL message, void* BNNS_NULLABLE user);

/// Sends messages of all threads to `callback` with `user` as its last argument; nothing is printed then. NULL ends it.
/// It receives every refusal and note whatever BNNS_VERBOSE is, and lines of level BNNSExtLogVerbose if that is 1 or
/// all.
///
/// Without a callback BNNS_VERBOSE of the environment, read once, says what is printed to stderr:
///   0         nothing
///   unset     ignored settings, and the first refusal of each kind ("openbnns: function: operator: reason"), at most
///             64; two refusals are of one kind if only their numbers differ
///   error     ignored settings, and every refusal
///   1 or all  the same, notes ("openbnns: note: ..."), and one line for everything that is created or applied
///             ("bnns_verbose,apply,fully_connected f32 i784 o128,batch 32,gemm/tiles,avx512,2 threads,12.3 us")
/// Notes are about calls that are legal and surely wrong, once per filter. With BNNS_CHECK_NAN=1 results of filters,
/// LSTM, matrix product, direct activation and reduction and the parameters of an optimizer are searched for NaN and
/// infinity: a note, printed unless BNNS_VERBOSE is 0, names filter, pass and first position, once per filter and pass.
BNNS_API void BNNSExtSetLogCallback(BNNSExtLogCallback BNNS_NULLABLE callback, void* BNNS_NULLABLE user) BNNS_NOEXCEPT;

// ---- How calls run --------------------------------------------------------------------------------------------------

/// The number of threads, at most 256, of calls that do not ask for one by BNNSFilterParameters.n_threads, from the
/// next call on. 0: as many as the process may use, or BNNS_NUM_THREADS of the environment. Results do not depend on
/// it.
BNNS_API void BNNSExtSetNumThreads(size_t n) BNNS_NOEXCEPT;

/// The number of threads such calls use now; never 0.
BNNS_API size_t BNNSExtGetNumThreads(void) BNNS_NOEXCEPT;

/// Limits the instruction set of kernels to `name`, one of "sse4", "avx2", "avx512", "avx512_bf16", "amx", or to the
/// best the machine has if that is less. It overrides BNNS_MAX_ISA, for all threads, from the next call on. Returns 0,
/// or -1 for another name.
BNNS_API int BNNSExtSetMaxISA(const char* BNNS_NONNULL name) BNNS_NOEXCEPT;

/// The instruction set that kernels use now, by the same names.
BNNS_API const char* BNNS_NONNULL BNNSExtGetISA(void) BNNS_NOEXCEPT;

// ---- Which algorithm runs -------------------------------------------------------------------------------------------

/// What a filter computes in one call.
#ifdef __cplusplus
typedef enum : uint32_t {
#else
typedef uint32_t BNNSExtPass;
enum {
#endif
  BNNSExtPassForward = 0,          ///< y
  BNNSExtPassInputGradient = 1,    ///< in_delta
  BNNSExtPassWeightsGradient = 2,  ///< weights_delta
#ifdef __cplusplus
} BNNSExtPass;
#else
};
#endif

/// The algorithm that a pass of a filter takes for dense tensors of `batch` samples and the present instruction set and
/// threads, such as "convolution/winograd/gather": the path of its file in the sources, and the name that a line of
/// BNNS_VERBOSE=1 has. A filter that has only one algorithm returns its operator, such as "loss"; the line then has the
/// operator and what it is made of ("matmul+gemm/tiles"). Of a fused filter it is the algorithm of its first layer; the
/// line has those of both. Of max pooling it is that of calls without indices. A backward call's line has the
/// algorithms of all gradients it computed. NULL, with a reason, if `filter` is no filter or `pass` none of the three.
///
/// BNNS_SKIP of the environment, names divided by commas, leaves algorithms out: the next one that accepts the problem
/// runs. The name of a folder ("convolution/winograd") stands for all that is in it. The last resort of an operator is
/// never left out. A line on stderr names each algorithm when it is left out for the first time.
BNNS_API const char* BNNS_NULLABLE BNNSExtImplementation(void* BNNS_NULLABLE filter, BNNSExtPass pass,
                                                         size_t batch) BNNS_NOEXCEPT;

// ---- Where the time goes --------------------------------------------------------------------------------------------

/// Begins a range of the program's own in the trace of BNNS_TRACE, such as "epoch 3": the calls that this thread makes
/// until BNNSExtTraceEnd lie in it. `name` is copied. Ranges nest, 16 deep; deeper ones are left out. Without
/// BNNS_TRACE it does nothing and costs next to nothing.
///
/// BNNS_TRACE=file.json of the environment writes every call of the process, when it ends, as a trace for Perfetto or
/// Chrome: problem, algorithm, threads, and the parts that each thread of the pool ran. BNNS_PROFILE=1 prints a table
/// of the time by layer and pass to stderr.
BNNS_API void BNNSExtTraceBegin(const char* BNNS_NONNULL name) BNNS_NOEXCEPT;

/// Ends the range that this thread began last. Without one it does nothing.
BNNS_API void BNNSExtTraceEnd(void) BNNS_NOEXCEPT;

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

#endif  // BNNS_EXTENSIONS_HEADER
