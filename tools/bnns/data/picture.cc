#include "tools/bnns/data/picture.h"

#if BNNS_HAVE_PNG
#include <png.h>
#endif

#include <array>
#include <cstring>

#include "tools/bnns/data/byte_source.h"
#include "tools/bnns/data/idx.h"
#include "tools/bnns/text.h"

namespace bnns::tool {

bool is_png(const std::string& file) {
  ByteSource source(file);
  std::array<std::uint8_t, 8> begin{};
  return source.read(begin.data(), begin.size()) == begin.size() &&
         std::memcmp(begin.data(), "\x89PNG\r\n\x1a\n", begin.size()) == 0;
}

#if BNNS_HAVE_PNG

Picture read_png(const std::string& file, std::size_t rows, std::size_t columns) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  const auto damaged = [&] { return DataError(file + ": is no good PNG file: " + image.message); };
  if (png_image_begin_read_from_file(&image, file.c_str()) == 0) throw damaged();
  Picture picture{image.height, image.width, {}};
  const bool any = rows == 0;
  if (any ? picture.rows > kMaxPngSide || picture.columns > kMaxPngSide
          : picture.rows != rows || picture.columns != columns) {
    png_image_free(&image);
    throw DataError(file + format(": is of %zu x %zu pixels, expected %s%zu x %zu", picture.rows, picture.columns,
                                  any ? "at most " : "", any ? kMaxPngSide : rows, any ? kMaxPngSide : columns));
  }
  image.format = PNG_FORMAT_GRAY;
  picture.pixels.resize(picture.rows * picture.columns);  // zeros: what is transparent lies on them
  if (png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr) == 0) throw damaged();
  return picture;
}

#else

Picture read_png(const std::string& file, std::size_t, std::size_t) {
  throw DataError(file + ": is a PNG file, and this bnns was built without libpng; expected IDX");
}

#endif

}  // namespace bnns::tool
