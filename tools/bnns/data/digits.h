// Handwriting-like digits drawn from strokes: the data `bnns train` uses when no folder is given.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/bnns/data/dataset.h"

namespace bnns::tool {

inline constexpr std::size_t kDigitSide = 28;

// Draws one digit 0..9 into 28 x 28 bytes. (seed, index) fixes every bit of the picture and nothing else does.
void draw_digit(std::uint64_t seed, std::uint64_t index, int digit, std::uint8_t* pixels);

// `count` digits; the classes follow each other evenly (0..9, 0..9, ...) so that every class has its share.
// `stream` separates training from held-out digits of one seed. Threads share the work and change no bit of it.
Dataset draw_digits(std::uint64_t seed, std::uint64_t stream, std::size_t count, std::size_t threads);

}  // namespace bnns::tool
