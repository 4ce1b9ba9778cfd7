#include "tools/bnns/data/picture.h"

#if BNNS_HAVE_PNG
#include <png.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "tools/bnns/data/byte_source.h"
#include "tools/bnns/data/data_error.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

#if BNNS_HAVE_PNG

// A file that libpng has begun to read.
class PngFile {
 public:
  explicit PngFile(const std::string& file) : file_(file) {
    std::memset(&image_, 0, sizeof image_);
    image_.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_file(&image_, file.c_str()) == 0) fail();
  }
  ~PngFile() { png_image_free(&image_); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  PictureKind kind() const {
    return {PictureKind::png, image_.height, image_.width, (image_.format & PNG_FORMAT_FLAG_COLOR) != 0};
  }
  // Pixel by pixel, as libpng has them.
  std::vector<std::uint8_t> read(std::size_t channels) {
    image_.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    std::vector<std::uint8_t> pixels(channels * image_.height * image_.width);  // zeros: transparent ones lie on them
    if (png_image_finish_read(&image_, nullptr, pixels.data(), 0, nullptr) == 0) fail();
    return pixels;
  }

 private:
  [[noreturn]] void fail() const { throw DataError(file_ + ": is no good PNG file: " + image_.message); }
  std::string file_;
  png_image image_;
};

PictureKind png_kind(const std::string& file) {
  return PngFile(file).kind();
}

std::vector<std::uint8_t> read_png(const std::string& file, std::size_t channels) {
  return PngFile(file).read(channels);
}

#else

PictureKind png_kind(const std::string& file) {
  throw DataError(file + ": is a PNG file, and this bnns was built without libpng; install it and build again");
}

std::vector<std::uint8_t> read_png(const std::string&, std::size_t) {
  return {};
}

#endif

void check_kind(const std::string& file, const PictureKind& kind) {
  if (kind.rows == 0 || kind.columns == 0 || kind.rows > kMaxPictureSide || kind.columns > kMaxPictureSide) {
    throw DataError(file + ": is of " + size_text(kind.rows, kind.columns) + " pixels, expected at most " +
                    size_text(kMaxPictureSide, kMaxPictureSide));
  }
}

// The range of old pixels under new pixel i, with how much of each it covers: a new pixel is `from` wide in units of
// which an old one is `to` wide.
template <class Each>
void covered(std::size_t i, std::size_t from, std::size_t to, Each each) {
  const std::size_t begin = i * from, end = begin + from;
  for (std::size_t k = begin / to; k * to < end; ++k) {
    each(k, std::min(end, (k + 1) * to) - std::max(begin, k * to));
  }
}

}  // namespace

std::string size_text(std::size_t rows, std::size_t columns) {
  return format("%zu x %zu", rows, columns);
}

PictureKind::Format picture_format(const std::string& file) {
  ByteSource source(file);
  std::array<std::uint8_t, 8> begin{};
  const std::size_t got = source.read(begin.data(), begin.size());
  if (got == begin.size() && std::memcmp(begin.data(), "\x89PNG\r\n\x1a\n", begin.size()) == 0) return PictureKind::png;
  if (got >= 3 && std::memcmp(begin.data(), "\xff\xd8\xff", 3) == 0) return PictureKind::jpeg;
  return PictureKind::none;
}

PictureKind picture_kind(const std::string& file) {
  const PictureKind::Format format = picture_format(file);
  if (format == PictureKind::none)
    throw DataError(file + ": is neither PNG nor JPEG; expected pictures here, move it away");
  const PictureKind kind = format == PictureKind::png ? png_kind(file) : jpeg_kind(file);
  check_kind(file, kind);
  return kind;
}

Picture read_picture(const std::string& file, std::size_t channels) {
  const PictureKind kind = picture_kind(file);
  if (kind.format == PictureKind::jpeg) return read_jpeg(file, kind, channels);
  Picture picture{kind.rows, kind.columns, channels, {}};
  const std::vector<std::uint8_t> mixed = read_png(file, channels);
  picture.pixels.resize(mixed.size());
  const std::size_t area = kind.rows * kind.columns;
  if (mixed.size() != channels * area) throw DataError(file + ": changed while it was read");
  for (std::size_t i = 0; i < mixed.size(); ++i) picture.pixels[i % channels * area + i / channels] = mixed[i];
  return picture;
}

Picture scaled(const Picture& in, std::size_t rows, std::size_t columns) {
  if (in.rows == rows && in.columns == columns) return in;
  Picture out{rows, columns, in.channels, {}};
  const std::uint64_t area = std::uint64_t{in.rows} * in.columns;
  for (std::size_t c = 0; c < in.channels; ++c) {
    const std::uint8_t* const plane = in.pixels.data() + c * area;
    for (std::size_t y = 0; y < rows; ++y) {
      for (std::size_t x = 0; x < columns; ++x) {
        std::uint64_t sum = area / 2;
        covered(y, in.rows, rows, [&](std::size_t v, std::size_t high) {
          covered(x, in.columns, columns, [&](std::size_t u, std::size_t wide) {
            sum += std::uint64_t{high} * wide * plane[v * in.columns + u];
          });
        });
        out.pixels.push_back(static_cast<std::uint8_t>(sum / area));
      }
    }
  }
  return out;
}

}  // namespace bnns::tool
