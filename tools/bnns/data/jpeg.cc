// JPEG files, by libjpeg where bnns was built with it.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/picture.h"

#if BNNS_HAVE_JPEG
#include <jpeglib.h>
#endif

namespace bnns::tool {

#if BNNS_HAVE_JPEG
namespace {

struct Decoder {
  jpeg_error_mgr errors{};  // first: libjpeg gives back a pointer to it
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX] = "";
  jpeg_decompress_struct state{};
};

// libjpeg is C: an error jumps out of it. Nothing that has a destructor lives in decode().
[[noreturn]] void fail(j_common_ptr state) {
  auto* const decoder = reinterpret_cast<Decoder*>(state->err);
  state->err->format_message(state, decoder->message);
  std::longjmp(decoder->back, 1);
}

// A warning (data that ends early, a damaged block) is an error here: half a picture teaches wrong things.
void warn(j_common_ptr state, int level) {
  if (level < 0) fail(state);
}

// Reads the header into `kind`, and all pixels where `out` is not NULL; `out` has room for channels x rows x columns.
bool decode(Decoder& d, std::FILE* file, PictureKind& kind, std::size_t channels, std::uint8_t* out,
            std::uint8_t* row) {
  d.state.err = jpeg_std_error(&d.errors);
  d.errors.error_exit = fail;
  d.errors.emit_message = warn;
  if (setjmp(d.back) != 0) {
    jpeg_destroy_decompress(&d.state);
    return false;
  }
  jpeg_create_decompress(&d.state);
  jpeg_stdio_src(&d.state, file);
  jpeg_read_header(&d.state, TRUE);
  if (out == nullptr) {
    kind = {PictureKind::jpeg, d.state.image_height, d.state.image_width, d.state.num_components != 1};
  } else if (d.state.image_height == kind.rows && d.state.image_width == kind.columns) {
    d.state.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    d.state.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&d.state);
    for (std::size_t y = 0; y < kind.rows; ++y) {
      JSAMPROW rows[] = {row};
      jpeg_read_scanlines(&d.state, rows, 1);
      for (std::size_t i = 0; i < channels * kind.columns; ++i) {
        out[(i % channels * kind.rows + y) * kind.columns + i / channels] = row[i];
      }
    }
    jpeg_finish_decompress(&d.state);
  }
  jpeg_destroy_decompress(&d.state);
  return true;
}

void decode_file(const std::string& name, PictureKind& kind, Picture* picture) {
  std::FILE* const file = std::fopen(name.c_str(), "rb");
  if (file == nullptr) throw DataError(name + ": cannot be read");
  std::vector<std::uint8_t> row;
  if (picture != nullptr) {
    picture->pixels.resize(picture->channels * kind.rows * kind.columns);
    row.resize(picture->channels * kind.columns);
  }
  Decoder decoder;
  const bool good = decode(decoder, file, kind, picture != nullptr ? picture->channels : 0,
                           picture != nullptr ? picture->pixels.data() : nullptr, row.data());
  std::fclose(file);
  if (!good) throw DataError(name + ": is no good JPEG file: " + decoder.message);
}

}  // namespace

PictureKind jpeg_kind(const std::string& file) {
  PictureKind kind;
  decode_file(file, kind, nullptr);
  return kind;
}

Picture read_jpeg(const std::string& file, PictureKind kind, std::size_t channels) {
  Picture picture{kind.rows, kind.columns, channels, {}};
  decode_file(file, kind, &picture);
  return picture;
}

#else

PictureKind jpeg_kind(const std::string& file) {
  throw DataError(file + ": is a JPEG file, and this bnns was built without libjpeg; install it and build again");
}

Picture read_jpeg(const std::string& file, PictureKind, std::size_t) {
  throw DataError(file + ": is a JPEG file, and this bnns was built without libjpeg");
}

#endif

}  // namespace bnns::tool
