// Pictures as PNG data URIs, so that a report needs no second file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bnns::tool {

// "data:image/png;base64,..." of channels x rows x columns bytes, grey (1 channel) or red, green, blue (3). `columns`
// and `rows` are at least 1.
std::string png_data_uri(const std::uint8_t* pixels, std::size_t rows, std::size_t columns, std::size_t channels = 1);

}  // namespace bnns::tool
