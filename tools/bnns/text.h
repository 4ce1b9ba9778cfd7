// Numbers as people read them.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

namespace bnns::tool {

// printf into a string; for numbers and short words only (the result is cut at 255 characters).
[[gnu::format(printf, 1, 2)]] inline std::string format(const char* pattern, ...) {
  char text[256];
  std::va_list values;
  va_start(values, pattern);
  std::vsnprintf(text, sizeof text, pattern, values);
  va_end(values);
  return text;
}

// 1234567 -> "1,234,567"
inline std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

// 0.9873 -> "98.73 %"
inline std::string percent(double fraction) {
  return format("%.2f %%", 100 * fraction);
}

// 7.4 -> "7.4 s", 83 -> "1 min 23 s", 7300 -> "2 h 1 min"
inline std::string duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds + 0.5);
  if (seconds < 9.95) return format("%.1f s", seconds);
  if (whole < 60) return format("%d s", static_cast<int>(whole));
  if (whole < 3600) return format("%d min %d s", static_cast<int>(whole / 60), static_cast<int>(whole % 60));
  return format("%d h %d min", static_cast<int>(whole / 3600), static_cast<int>(whole / 60 % 60));
}

}  // namespace bnns::tool
