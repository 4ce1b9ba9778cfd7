// PNG and JPEG files as pictures that the networks of bnns take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bnns::tool {

struct Picture {
  std::size_t rows = 0, columns = 0, channels = 1;
  std::vector<std::uint8_t> pixels;  // channels x rows x columns, 0 is black; three channels are red, green and blue
};

// What a file says of itself at its beginning.
struct PictureKind {
  enum Format { none, png, jpeg } format = none;
  std::size_t rows = 0, columns = 0;
  bool colour = false;
};

inline constexpr std::size_t kMaxPictureSide = 4096;

// Whether the file begins as a PNG or JPEG file does; reads no more. Throws DataError where it cannot be read.
PictureKind::Format picture_format(const std::string& file);

// Size and colour, without the pixels. Throws DataError for a file that is neither PNG nor JPEG, one with a side above
// kMaxPictureSide, and where bnns was built without the library that reads it.
PictureKind picture_kind(const std::string& file);

// With one channel colours become grey, with three grey becomes colour; what is transparent becomes black. Throws
// DataError as picture_kind, and for a damaged file.
Picture read_picture(const std::string& file, std::size_t channels);

// Each new pixel is the mean of the area that it covers, in integers: the same on every machine.
Picture scaled(const Picture& picture, std::size_t rows, std::size_t columns);

// "24 x 24"
std::string size_text(std::size_t rows, std::size_t columns);

// The readers of each format, for picture.cc.
PictureKind jpeg_kind(const std::string& file);
Picture read_jpeg(const std::string& file, PictureKind kind, std::size_t channels);

}  // namespace bnns::tool
