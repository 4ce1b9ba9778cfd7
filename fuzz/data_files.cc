// What the tool reads of its user: IDX files (plain and gzip), tables, pictures, texts and weights. The first byte
// chooses the reader, the rest is the file. It is read, or refused with a DataError of one line.
#include <bnns/bnns_extensions.h>

#include <memory>

#include "fuzz/memory_file.h"
#include "tools/bnns/data/idx.h"
#include "tools/bnns/data/own_data.h"
#include "tools/bnns/data/picture.h"
#include "tools/bnns/model/weights_file.h"

namespace {

using namespace bnns::tool;
using bnns::fuzz::Bytes;
using bnns::fuzz::found;
using bnns::fuzz::MemoryFile;

void check(const Dataset& set) {
  for (const std::uint16_t label : set.labels) {
    if (label >= set.classes) found("a label is not below the number of classes");
  }
  const std::size_t values = set.values.empty() ? set.pixels.size() : set.values.size();
  if (values != set.count() * set.inputs()) found("a data set has not as many values as its items need");
}

void check(const DataSplit& data) {
  check(data.train), check(data.test);
}

// Images and labels: two files, the length of the first in front.
void read_idx(Bytes& bytes, bool labelled) {
  static MemoryFile images, labels;
  const std::size_t length = bytes.number<std::uint16_t>();
  const std::string all = bytes.rest();
  if (!labelled) return check(read_idx_images(images.with(all)));
  const std::size_t cut = std::min(length, all.size());
  check(read_idx_pair(images.with(all.substr(0, cut)), labels.with(all.substr(cut))));
}

void read_pixels(const std::string& path, std::size_t channels) {
  const PictureKind kind = picture_kind(path);
  if (kind.rows * kind.columns > 1 << 16) return;  // a picture of all black may be large; here it is only slow
  const Picture picture = read_picture(path, channels);
  if (picture.pixels.size() != picture.rows * picture.columns * picture.channels) found("a picture lacks pixels");
  if (!picture.pixels.empty() && scaled(picture, 3, 5).pixels.size() != 15 * picture.channels)
    found("no scaled picture");
}

// A weights file says what network it is of: then it is asked for all that `bnns predict` asks.
void read_weights(const std::string& path) {
  const WeightsFile file(path);
  const std::string model = file.model();
  if (file.classes() == 0 || (model != "cnn" && model != "resnet" && file.hidden() == 0)) return;
  for (const char* key : {"steps", "right", "seed"}) {
    try {
      file.number(key);
    } catch (const DataError&) {
    }
  }
}

void read(Bytes& bytes) {
  static MemoryFile memory;
  const std::size_t reader = bytes.below(9);
  if (reader < 2) return read_idx(bytes, reader == 0);
  const std::size_t choice = bytes.byte();
  const std::string contents = bytes.rest(), path = memory.with(contents);
  switch (reader) {
    case 2:
      return check(read_table(path, {.seed = choice}));
    case 3:
      return check(read_table(path, {.target = choice % 2 ? "1" : "class"}));
    case 4: {
      Columns columns{.names = {"a", "b"}, .target = "c", .target_at = 2, .mean = {0, 1}, .deviation = {1, 2}};
      if (choice % 2) columns.names.clear();
      bool labelled = false;
      return check(read_table_like(path, columns, {"x", "y"}, &labelled));
    }
    case 5:
      return check(read_text(path, {.text = true}));
    case 6: {
      const auto symbols = read_text_like(path, {"a", "b", "space", "newline"});
      return check(windows_of(symbols, 4, 1 + choice % 8));
    }
    case 7:
      return read_pixels(path, choice % 2 ? 1 : 3);
    default:
      return read_weights(path);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  setenv("BNNS_VERBOSE", "0", 1);
  Bytes bytes(data, size);
  try {
    read(bytes);
  } catch (const DataError& error) {
    const std::string what = error.what();
    if (what.empty() || what.find_first_of("\n\r\x1b") != what.npos) found("refused without one line: " + what);
  }
  return 0;
}
