// Grey pictures as PNG data URIs, so that a report needs no second file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bnns::tool {

// "data:image/png;base64,..." of rows x columns bytes. `columns` and `rows` are at least 1.
std::string png_data_uri(const std::uint8_t* pixels, std::size_t rows, std::size_t columns);

}  // namespace bnns::tool
