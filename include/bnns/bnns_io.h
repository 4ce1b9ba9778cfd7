// OpenBNNS: arrays saved to a file and loaded again, in the safetensors format that PyTorch, NumPy and others read.
// Nothing here exists in Apple's library; names begin with BNNSExt.
//
//   BNNSExtNamedArray arrays[] = {{"fc.weight", &w}, {"fc.bias", &b}};
//   BNNSExtArraysSave("model.safetensors", 2, arrays, 0, NULL);
//
//   BNNSExtArrayFile file = BNNSExtArrayFileOpen("model.safetensors", BNNSExtArrayFileRead);
//   BNNSExtArrayFileCopy(file, "fc.weight", &w);
//   BNNSExtArrayFileCopy(file, "fc.bias", &b);
//   BNNSExtArrayFileClose(file);
//
// Shapes. A shape in the file is that of NumPy and PyTorch: the slowest axis first. Of a descriptor it is the sizes
// from the slowest axis of its layout to the fastest:
//   FirstMajor layouts                      size[0], size[1], ... as they are
//   Vector, LastMajor and all other layouts the sizes in reverse: a RowMajorMatrix of size {columns, rows} has the
//   shape
//                                           [rows, columns], weights OIHW of size {width, height, in, out} the shape
//                                           [out, in, height, width]. A ColumnMajorMatrix of size {rows, columns} has
//                                           the shape [columns, rows]
//   MHA_DHK                                 size[1], size[2], size[0]
// Strides say where the elements lie in memory; the file holds them without gaps. OIHW_Pack32 and sparse weights have
// no such shape and are refused. Values are stored as they are: data_scale and data_bias are not part of the file, and
// rotated weights stay rotated.
//
// Types. F32, F16, BF16, I8 to I64, U8 to U64 and BOOL are Float32, Float16, BFloat16, Int8 to Int64, UInt8 to UInt64
// and Boolean. Nothing is converted. Arrays of other types of the format (F64, C64, F8_E4M3, F8_E5M2) are listed, and
// are refused where they would become a descriptor.
//
// A file is checked as a whole when it is opened: a header that is not exactly the format's JSON, holes, overlaps,
// names that occur twice, lengths that do not fit. Errors are as everywhere: BNNSExtLastError() has one line with file,
// array, field, what was found and what was expected. Opening takes memory for the file (BNNSExtArrayFileRead) or for
// its header (BNNSExtArrayFileMap), and 8 bytes for each array. A handle may be used by many threads at once.

#ifndef BNNS_IO_HEADER
#define BNNS_IO_HEADER

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

// ---- Saving ---------------------------------------------------------------------------------------------------------

/// An array to be saved, and its name in the file.
typedef struct {
  const char* BNNS_NONNULL name;                    ///< UTF-8; each name once, and not "__metadata__"
  const BNNSNDArrayDescriptor* BNNS_NONNULL array;  ///< Layout, sizes, strides, type and data
} BNNSExtNamedArray;

/// A pair of texts that a file carries beside its arrays, such as {"epoch", "12"}.
typedef struct {
  const char* BNNS_NONNULL key;    ///< UTF-8; each key once
  const char* BNNS_NONNULL value;  ///< UTF-8
} BNNSExtMetadata;

/// Writes arrays to a file, which is replaced as a whole if it is there: the new one is written beside it, flushed to
/// the disk and renamed, so that a reader, or a machine that loses power, sees the old file or the new one. Returns 0,
/// or -1 with a reason; the old file is then as it was. Arrays of wide types come first, and among one type by name, as
/// the Python package writes them.
/// - file: Its path. The folder must be there
/// - count: How many arrays; 0 is a file without any
/// - arrays: The arrays. NULL if count is 0
/// - metadata_count: How many pairs of texts
/// - metadata: The pairs. NULL if metadata_count is 0
BNNS_API int BNNSExtArraysSave(const char* BNNS_NONNULL file, size_t count,
                               const BNNSExtNamedArray* BNNS_NULLABLE arrays, size_t metadata_count,
                               const BNNSExtMetadata* BNNS_NULLABLE metadata) BNNS_NOEXCEPT;

// ---- Loading --------------------------------------------------------------------------------------------------------

/// A file that is open.
typedef struct BNNSExtArrayFile_* BNNSExtArrayFile;

/// How a file is opened.
#ifdef __cplusplus
typedef enum : uint32_t {
#else
typedef uint32_t BNNSExtArrayFileMode;
enum {
#endif
  BNNSExtArrayFileRead = 0,  ///< All of it is read into memory; what happens to the file later does not matter
  BNNSExtArrayFileMap = 1    ///< Its pages are read when they are touched. A file that is cut off meanwhile by somebody
                             ///< else ends the process (SIGBUS); one that is replaced by a rename does not
#ifdef __cplusplus
} BNNSExtArrayFileMode;
#else
};
#endif

/// What a file says about one array. All pointers are valid until the file is closed.
typedef struct {
  const char* BNNS_NONNULL name;            ///< UTF-8
  const char* BNNS_NONNULL type_name;       ///< The format's name of the type, such as "F32"
  BNNSDataType data_type;                   ///< The same of BNNS; 0 if it has none
  size_t rank;                              ///< Number of axes; 0 is a single element
  size_t shape[BNNS_MAX_TENSOR_DIMENSION];  ///< The slowest axis first; those past the rank are 0
  size_t bytes;                             ///< Bytes of all elements
  const void* BNNS_NULLABLE data;           ///< The elements, not to be written; NULL if there are none. A file of
                                            ///< another program may hold them at any address, aligned or not
} BNNSExtArrayInfo;

/// Opens and checks a file. NULL, with a reason, if it cannot be read or is damaged.
/// - file: Its path
/// - mode: Whether it is read or mapped
BNNS_API BNNSExtArrayFile BNNS_NULLABLE BNNSExtArrayFileOpen(const char* BNNS_NONNULL file,
                                                             BNNSExtArrayFileMode mode) BNNS_NOEXCEPT;

/// Closes a file; whatever points into it is invalid then.
/// - file: A file, or NULL, which does nothing
BNNS_API void BNNSExtArrayFileClose(BNNSExtArrayFile BNNS_NULLABLE file) BNNS_NOEXCEPT;

/// The number of arrays in a file; 0 if `file` is none.
/// - file: An open file
BNNS_API size_t BNNSExtArrayFileCount(BNNSExtArrayFile BNNS_NONNULL file) BNNS_NOEXCEPT;

/// Says what an array is. Returns 0, or -1 with a reason.
/// - file: An open file
/// - index: Which one, from 0 to the count, in the order of the header
/// - info: Receives the answer
BNNS_API int BNNSExtArrayFileInfo(BNNSExtArrayFile BNNS_NONNULL file, size_t index,
                                  BNNSExtArrayInfo* BNNS_NONNULL info) BNNS_NOEXCEPT;

/// The index of an array, or SIZE_MAX if there is none of that name, which is no error and leaves no reason.
/// - file: An open file
/// - name: Its name
BNNS_API size_t BNNSExtArrayFileFind(BNNSExtArrayFile BNNS_NONNULL file, const char* BNNS_NONNULL name) BNNS_NOEXCEPT;

/// Copies an array into memory of the caller. Shape and type must be those of the file; an array of the file without
/// axes fits a descriptor of one element and one axis. Returns 0, or -1 with a reason, and nothing is written then.
/// - file: An open file
/// - name: Its name
/// - array: Where it goes: layout, sizes, strides, type and data
BNNS_API int BNNSExtArrayFileCopy(BNNSExtArrayFile BNNS_NONNULL file, const char* BNNS_NONNULL name,
                                  const BNNSNDArrayDescriptor* BNNS_NONNULL array) BNNS_NOEXCEPT;

/// Describes an array where it lies in the file, without a copy; the memory must not be written. Returns 0, or -1 with
/// a reason, also where the elements are not aligned to their type (files that this library or Python wrote are
/// aligned).
/// - file: An open file
/// - name: Its name
/// - layout: A layout of as many axes as the array has
/// - array: Receives the descriptor, valid until the file is closed
BNNS_API int BNNSExtArrayFileView(BNNSExtArrayFile BNNS_NONNULL file, const char* BNNS_NONNULL name,
                                  BNNSDataLayout layout, BNNSNDArrayDescriptor* BNNS_NONNULL array) BNNS_NOEXCEPT;

/// The number of pairs of texts in a file; 0 if `file` is none.
/// - file: An open file
BNNS_API size_t BNNSExtArrayFileMetadataCount(BNNSExtArrayFile BNNS_NONNULL file) BNNS_NOEXCEPT;

/// One pair of texts, valid until the file is closed. Returns 0, or -1 with a reason.
/// - file: An open file
/// - index: Which one, from 0 to the count, by rising key
/// - pair: Receives key and value
BNNS_API int BNNSExtArrayFileMetadataAt(BNNSExtArrayFile BNNS_NONNULL file, size_t index,
                                        BNNSExtMetadata* BNNS_NONNULL pair) BNNS_NOEXCEPT;

/// The text of a key, valid until the file is closed, or NULL if there is none, which is no error and leaves no reason.
/// - file: An open file
/// - key: The key
BNNS_API const char* BNNS_NULLABLE BNNSExtArrayFileMetadata(BNNSExtArrayFile BNNS_NONNULL file,
                                                            const char* BNNS_NONNULL key) BNNS_NOEXCEPT;

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

#endif  // BNNS_IO_HEADER
