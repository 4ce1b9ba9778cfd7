// The functions of bnns_io.h.

#include <memory>

#include "bnns/bnns_io.h"
#include "src/core/error.h"
#include "src/io/array_file.h"

namespace bnns::io {
namespace {

ArrayFile* from(BNNSExtArrayFile handle) {
  return reinterpret_cast<ArrayFile*>(handle);
}

bool is_open(BNNSExtArrayFile handle) {
  return handle && reinterpret_cast<uintptr_t>(handle) % alignof(ArrayFile) == 0 && from(handle)->is_alive();
}

const ArrayFile& open_file(BNNSExtArrayFile handle) {
  if (!handle) fail_invalid("file is NULL, expected one that BNNSExtArrayFileOpen returned");
  if (!is_open(handle)) fail_invalid("file %p is not an open file of this library", static_cast<void*>(handle));
  return *from(handle);
}

}  // namespace
}  // namespace bnns::io

using namespace bnns;

int BNNSExtArraysSave(const char* file, size_t count, const BNNSExtNamedArray* arrays, size_t metadata_count,
                      const BNNSExtMetadata* metadata) noexcept {
  return guarded_status("BNNSExtArraysSave", [&] { io::save_arrays(file, count, arrays, metadata_count, metadata); });
}

BNNSExtArrayFile BNNSExtArrayFileOpen(const char* file, BNNSExtArrayFileMode mode) noexcept {
  return guarded("BNNSExtArrayFileOpen", BNNSExtArrayFile{}, [&] {
    if (mode > BNNSExtArrayFileMap) {
      fail_invalid("mode is %u, expected BNNSExtArrayFileRead or BNNSExtArrayFileMap", static_cast<unsigned>(mode));
    }
    return reinterpret_cast<BNNSExtArrayFile>(std::make_unique<io::ArrayFile>(file, mode).release());
  });
}

void BNNSExtArrayFileClose(BNNSExtArrayFile file) noexcept {
  if (io::is_open(file)) delete io::from(file);
}

size_t BNNSExtArrayFileCount(BNNSExtArrayFile file) noexcept {
  return guarded("BNNSExtArrayFileCount", size_t{0}, [&] { return io::open_file(file).header().count(); });
}

int BNNSExtArrayFileInfo(BNNSExtArrayFile file, size_t index, BNNSExtArrayInfo* info) noexcept {
  return guarded_status("BNNSExtArrayFileInfo", [&] {
    const io::ArrayFile& f = io::open_file(file);
    if (!info) fail_invalid("%s: info is NULL, expected where the answer goes", f.shown());
    *info = f.info(index);
  });
}

size_t BNNSExtArrayFileFind(BNNSExtArrayFile file, const char* name) noexcept {
  return guarded("BNNSExtArrayFileFind", SIZE_MAX, [&] {
    const io::ArrayFile& f = io::open_file(file);
    if (!name) fail_invalid("%s: name is NULL, expected the name of an array", f.shown());
    return f.header().find(name);
  });
}

int BNNSExtArrayFileCopy(BNNSExtArrayFile file, const char* name, const BNNSNDArrayDescriptor* array) noexcept {
  return guarded_status("BNNSExtArrayFileCopy", [&] { io::open_file(file).copy(name, array); });
}

int BNNSExtArrayFileView(BNNSExtArrayFile file, const char* name, BNNSDataLayout layout,
                         BNNSNDArrayDescriptor* array) noexcept {
  return guarded_status("BNNSExtArrayFileView", [&] {
    const io::ArrayFile& f = io::open_file(file);
    if (!array) fail_invalid("%s: array is NULL, expected where the descriptor goes", f.shown());
    *array = f.view(name, layout);
  });
}

size_t BNNSExtArrayFileMetadataCount(BNNSExtArrayFile file) noexcept {
  return guarded("BNNSExtArrayFileMetadataCount", size_t{0},
                 [&] { return io::open_file(file).header().metadata_count(); });
}

int BNNSExtArrayFileMetadataAt(BNNSExtArrayFile file, size_t index, BNNSExtMetadata* pair) noexcept {
  return guarded_status("BNNSExtArrayFileMetadataAt", [&] {
    const io::ArrayFile& f = io::open_file(file);
    if (!pair) fail_invalid("%s: pair is NULL, expected where key and value go", f.shown());
    if (index >= f.header().metadata_count()) {
      fail_invalid("%s: index is %zu, expected less than %zu = pairs of metadata", f.shown(), index,
                   f.header().metadata_count());
    }
    pair->key = f.header().key(index);
    pair->value = f.header().value(pair->key);
  });
}

const char* BNNSExtArrayFileMetadata(BNNSExtArrayFile file, const char* key) noexcept {
  return guarded("BNNSExtArrayFileMetadata", static_cast<const char*>(nullptr), [&] {
    const io::ArrayFile& f = io::open_file(file);
    if (!key) fail_invalid("%s: key is NULL, expected a key", f.shown());
    return f.header().value(key);
  });
}
