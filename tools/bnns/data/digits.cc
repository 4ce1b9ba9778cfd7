// Draws a digit in five steps:
//   1. pick one of the class's styles: strokes through control points in the unit box (x right, y down);
//   2. move every control point a little, then bend the strokes through them (Catmull-Rom);
//   3. warp: stretch, slant, turn; scale to about 20 pixels, place near the middle with a random shift;
//   4. ink every pixel by its distance from the stroke, whose width varies with the pen's pressure;
//   5. soften, scale the ink, add noise, round to bytes.
// Only + - * / and sqrt are used: with -ffp-contract=off the bytes are the same for every compiler and machine.

#include "tools/bnns/data/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>
#include <thread>
#include <vector>

#include "tools/bnns/data/digit_styles.h"
#include "tools/bnns/data/prng.h"

namespace bnns::tool {
namespace {

struct Segment {
  Point a, b;
  float radius;  // half the pen's width
};

constexpr int kCurveSteps = 6;  // chords per control point: below a tenth of a pixel from the curve

// Point at t in [0, 1] of the Catmull-Rom curve between p1 and p2.
Point catmull_rom(Point p0, Point p1, Point p2, Point p3, float t) {
  const auto axis = [t](float a, float b, float c, float d) {
    const float linear = c - a, square = 2 * a - 5 * b + 4 * c - d, cube = 3 * (b - c) + d - a;
    return b + 0.5f * t * (linear + t * (square + t * cube));
  };
  return {axis(p0.x, p1.x, p2.x, p3.x), axis(p0.y, p1.y, p2.y, p3.y)};
}

// Steps 1 and 2: the chords of one written digit, still in the unit box.
std::vector<std::vector<Point>> write_strokes(int digit, Prng& random) {
  const auto& choices = digit_styles()[static_cast<std::size_t>(digit)];
  const Style& style = choices[random.below(static_cast<std::uint32_t>(choices.size()))];
  const float unrest = random.uniform(0.02f, 0.075f);
  std::vector<std::vector<Point>> written;
  for (const Stroke& stroke : style) {
    std::vector<Point> hand = stroke.points;
    for (Point& p : hand) {
      p.x += unrest * random.normal();
      p.y += unrest * random.normal();
    }
    if (stroke.pen == Pen::curve) {
      std::vector<Point> chords{hand.front()};
      const std::size_t last = hand.size() - 1;
      for (std::size_t i = 0; i < last; ++i) {
        const Point before = hand[i == 0 ? 0 : i - 1], after = hand[std::min(i + 2, last)];
        for (int step = 1; step <= kCurveSteps; ++step) {
          chords.push_back(catmull_rom(before, hand[i], hand[i + 1], after, static_cast<float>(step) / kCurveSteps));
        }
      }
      hand = std::move(chords);
    }
    written.push_back(std::move(hand));
  }
  return written;
}

// Step 3: into pixels. A turn by angle a uses tan(a/2), which gives sine and cosine without libm.
std::vector<Segment> place(const std::vector<std::vector<Point>>& written, Prng& random) {
  const float stretch = random.uniform(0.6f, 0.98f), slant = 0.12f + 0.18f * random.normal();
  const float half_turn = 0.06f * random.normal();
  const float cosine = (1 - half_turn * half_turn) / (1 + half_turn * half_turn);
  const float sine = 2 * half_turn / (1 + half_turn * half_turn);
  const auto warp = [&](Point p) {
    const float x = stretch * (p.x - 0.5f) - slant * (p.y - 0.5f), y = p.y - 0.5f;
    return Point{cosine * x - sine * y, sine * x + cosine * y};
  };

  Point low{1e9f, 1e9f}, high{-1e9f, -1e9f};
  for (const auto& stroke : written) {
    for (const Point& p : stroke) {
      const Point q = warp(p);
      low = {std::min(low.x, q.x), std::min(low.y, q.y)};
      high = {std::max(high.x, q.x), std::max(high.y, q.y)};
    }
  }
  const float extent = std::max(high.x - low.x, high.y - low.y);
  const float scale = random.uniform(16.0f, 20.5f) / extent;
  const float middle = kDigitSide / 2.0f;
  const Point shift{middle + 1.1f * random.normal() - scale * 0.5f * (low.x + high.x),
                    middle + 1.1f * random.normal() - scale * 0.5f * (low.y + high.y)};
  const auto to_pixels = [&](Point p) {
    const Point q = warp(p);
    return Point{scale * q.x + shift.x, scale * q.y + shift.y};
  };

  const float radius = random.uniform(0.7f, 1.75f);
  const float first_pressure = random.uniform(0.8f, 1.2f), last_pressure = random.uniform(0.8f, 1.2f);
  std::vector<Segment> segments;
  for (const auto& stroke : written) {
    for (std::size_t i = 0; i + 1 < stroke.size(); ++i) {
      const float along = static_cast<float>(i) / static_cast<float>(stroke.size() - 1);
      const float pressure = first_pressure + (last_pressure - first_pressure) * along;
      segments.push_back({to_pixels(stroke[i]), to_pixels(stroke[i + 1]), radius * pressure});
    }
  }
  return segments;
}

using Canvas = std::array<float, kDigitSide * kDigitSide>;

// Step 4: coverage falls from 1 to 0 across the last pixel of the pen's edge; strokes join by the maximum.
void ink(const std::vector<Segment>& segments, Canvas& canvas) {
  const auto pixel_range = [](float low, float high) {
    const float side = kDigitSide;
    return std::pair{static_cast<std::size_t>(std::clamp(low, 0.0f, side)),
                     static_cast<std::size_t>(std::clamp(high + 1, 0.0f, side))};
  };
  for (const Segment& s : segments) {
    const float reach = s.radius + 1;
    const auto [x0, x1] = pixel_range(std::min(s.a.x, s.b.x) - reach, std::max(s.a.x, s.b.x) + reach);
    const auto [y0, y1] = pixel_range(std::min(s.a.y, s.b.y) - reach, std::max(s.a.y, s.b.y) + reach);
    const float dx = s.b.x - s.a.x, dy = s.b.y - s.a.y;
    const float length2 = std::max(dx * dx + dy * dy, 1e-12f);
    for (std::size_t y = y0; y < y1; ++y) {
      for (std::size_t x = x0; x < x1; ++x) {
        const float px = static_cast<float>(x) + 0.5f - s.a.x, py = static_cast<float>(y) + 0.5f - s.a.y;
        const float t = std::clamp((px * dx + py * dy) / length2, 0.0f, 1.0f);
        const float ex = px - t * dx, ey = py - t * dy;
        const float cover = std::clamp(s.radius + 0.5f - std::sqrt(ex * ex + ey * ey), 0.0f, 1.0f);
        float& pixel = canvas[y * kDigitSide + x];
        pixel = std::max(pixel, cover);
      }
    }
  }
}

// Step 5, first half: mixes the picture with its 3 x 3 binomial blur.
Canvas soften(const Canvas& canvas, float amount) {
  const auto at = [&](std::size_t y, std::size_t x) {  // one past an edge wraps to a huge number: paper
    return y < kDigitSide && x < kDigitSide ? canvas[y * kDigitSide + x] : 0.0f;
  };
  Canvas out;
  for (std::size_t y = 0; y < kDigitSide; ++y) {
    for (std::size_t x = 0; x < kDigitSide; ++x) {
      const float corners = at(y - 1, x - 1) + at(y - 1, x + 1) + at(y + 1, x - 1) + at(y + 1, x + 1);
      const float edges = at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1);
      const float blurred = (corners + 2 * edges + 4 * at(y, x)) * 0.0625f;
      out[y * kDigitSide + x] = at(y, x) + amount * (blurred - at(y, x));
    }
  }
  return out;
}

}  // namespace

void draw_digit(std::uint64_t seed, std::uint64_t index, int digit, std::uint8_t* pixels) {
  Prng random(seed, 0x64696769, index);
  Canvas canvas{};
  ink(place(write_strokes(digit, random), random), canvas);
  canvas = soften(canvas, random.uniform(0.2f, 0.9f));
  const float strength = random.uniform(0.85f, 1.15f);
  const float grain = random.uniform(0.0f, 0.12f);  // noise rides on the ink, as in a scan; paper stays clean
  for (std::size_t i = 0; i < canvas.size(); ++i) {
    const float value = canvas[i] * (strength + grain * random.normal());
    pixels[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0f, 1.0f) * 255.0f + 0.5f);
  }
  for (std::uint32_t specks = random.below(4); specks > 0; --specks) {
    const std::uint32_t where = random.below(kDigitSide * kDigitSide);
    const float value = random.uniform(20.0f, 140.0f);
    pixels[where] = std::max(pixels[where], static_cast<std::uint8_t>(value));
  }
}

Dataset draw_digits(std::uint64_t seed, std::uint64_t stream, std::size_t count, std::size_t threads) {
  Dataset set;
  set.rows = set.columns = kDigitSide;
  set.pixels.resize(count * kDigitSide * kDigitSide);
  set.labels.resize(count);
  const std::uint64_t stream_seed = Prng(seed, stream).next();
  const auto draw = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      set.labels[i] = static_cast<std::uint8_t>(i % kClasses);
      draw_digit(stream_seed, i, set.labels[i], set.pixels.data() + i * kDigitSide * kDigitSide);
    }
  };
  digit_styles();  // built before the threads ask for it
  std::vector<std::jthread> helpers;
  const std::size_t shares = std::clamp<std::size_t>(threads, 1, 64);
  for (std::size_t t = 1; t < shares; ++t) {
    const std::size_t begin = count * t / shares, end = count * (t + 1) / shares;
    try {
      helpers.emplace_back(draw, begin, end);
    } catch (const std::system_error&) {  // no thread to be had: one after the other
      draw(begin, end);
    }
  }
  draw(0, count / shares);
  return set;
}

}  // namespace bnns::tool
