#include "tools/bnns/report/png.h"

#include <zlib.h>

#include <new>
#include <vector>

namespace bnns::tool {
namespace {

void append_word(std::string& out, std::uint32_t word) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift);
}

// A chunk is length, type, data, and the CRC of type and data.
void append_chunk(std::string& out, const std::string& type, const std::string& data) {
  append_word(out, static_cast<std::uint32_t>(data.size()));
  const std::string body = type + data;
  out += body;
  append_word(out, static_cast<std::uint32_t>(
                       crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()))));
}

std::string base64(const std::string& bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return i + k < bytes.size() ? std::uint32_t{static_cast<std::uint8_t>(bytes[i + k])} : 0u;
    };
    const std::uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t k = 0; k < 4; ++k) {
      out += i + k <= bytes.size() ? kDigits[(three >> (18 - 6 * k)) & 63] : '=';
    }
  }
  return out;
}

}  // namespace

std::string png_data_uri(const std::uint8_t* pixels, std::size_t rows, std::size_t columns, std::size_t channels) {
  std::string lines;  // every line begins with its filter type, 0 = none
  for (std::size_t y = 0; y < rows; ++y) {
    lines += '\0';
    for (std::size_t i = 0; i < channels * columns; ++i) {
      lines += static_cast<char>(pixels[(i % channels * rows + y) * columns + i / channels]);
    }
  }
  uLongf packed_size = compressBound(static_cast<uLong>(lines.size()));
  std::vector<Bytef> packed(packed_size);
  if (compress2(packed.data(), &packed_size, reinterpret_cast<const Bytef*>(lines.data()),
                static_cast<uLong>(lines.size()), Z_BEST_COMPRESSION) != Z_OK) {
    throw std::bad_alloc();  // the only way compress2 fails with a buffer of compressBound bytes
  }

  std::string header;
  append_word(header, static_cast<std::uint32_t>(columns));
  append_word(header, static_cast<std::uint32_t>(rows));
  // 8 bits, grey or colours, the one compression, filter and no interlace
  header += std::string(channels == 1 ? "\x08\x00\x00\x00\x00" : "\x08\x02\x00\x00\x00", 5);

  std::string png("\x89PNG\r\n\x1a\n", 8);
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", std::string(reinterpret_cast<const char*>(packed.data()), packed_size));
  append_chunk(png, "IEND", "");
  return "data:image/png;base64," + base64(png);
}

}  // namespace bnns::tool
