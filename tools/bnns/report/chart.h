// Line charts as inline SVG. Colours come from the page's CSS classes, so one picture serves light and dark.
#pragma once

#include <string>
#include <vector>

namespace bnns::tool {

struct Series {
  std::string css_class;     // styles the line
  std::string label;         // for the legend; empty: not named there
  std::vector<double> x, y;  // same length
  bool dots = false;         // mark the points; each tells its value when pointed at
};

struct Chart {
  std::string title, x_title = "epoch";
  double x_low = 0, x_high = 1;
  std::vector<double> y_ticks;  // in rising order; the first and the last are the ends of the axis
  bool log_y = false;
  bool percent_y = false;
  std::vector<Series> series;  // drawn in order
};

std::string chart_svg(const Chart& chart);

// Ends and steps of an axis that covers [low, high]: five to nine round numbers, or 1-2-5 ticks where `log`.
std::vector<double> axis_ticks(double low, double high, bool log);

// At most `limit` points, each the mean of its share of `values`; *positions get the middle of each share.
std::vector<double> thin(const std::vector<float>& values, std::size_t limit, std::vector<double>* positions);

}  // namespace bnns::tool
