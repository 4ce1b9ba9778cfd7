#include "tools/bnns/report/chart.h"

#include <algorithm>
#include <cmath>

#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

constexpr double kWidth = 560, kHeight = 300, kLeft = 84, kRight = 30, kTop = 14, kBottom = 52;  // ticks may have 20px
constexpr double kTickDistance = 22;   // of two labels one above the other
constexpr std::size_t kMostDots = 40;  // more would hide the line that they lie on

std::string tick_text(double value, const Chart& chart) {
  return chart.percent_y ? format("%.6g %%", 100 * value) : format("%.6g", value);
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, bool log) {
  std::vector<double> ticks;
  if (log) {
    const int first = static_cast<int>(std::floor(std::log10(low))),
              last = static_cast<int>(std::ceil(std::log10(high)));
    for (int power = first; power <= last; ++power) {
      for (double digit : {1.0, 2.0, 5.0}) ticks.push_back(digit * std::pow(10.0, power));
    }
    while (ticks.size() > 2 && ticks[1] <= low) ticks.erase(ticks.begin());
    while (ticks.size() > 2 && ticks[ticks.size() - 2] >= high) ticks.pop_back();
    if (ticks.size() > 9) {  // many decades: the powers of ten are enough between the ends
      std::vector<double> powers;
      for (std::size_t i = 0; i < ticks.size(); ++i) {
        const double exponent = std::log10(ticks[i]);
        const bool whole = std::abs(exponent - std::round(exponent)) < 1e-6;
        if (whole || i == 0 || i + 1 == ticks.size()) powers.push_back(ticks[i]);
      }
      ticks = powers;
    }
    return ticks;
  }
  const double raw = std::max(high - low, 1e-9) / 6, power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (double digit : {5.0, 2.0, 1.0}) {
    if (digit * power >= raw * 0.999) step = digit * power;
  }
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> thin(const std::vector<float>& values, std::size_t limit, std::vector<double>* positions) {
  const std::size_t points = std::min(limit, values.size());
  std::vector<double> means;
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t begin = values.size() * i / points, end = values.size() * (i + 1) / points;
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += static_cast<double>(values[k]);
    means.push_back(sum / static_cast<double>(end - begin));
    positions->push_back(0.5 * static_cast<double>(begin + end));
  }
  return means;
}

std::string chart_svg(const Chart& chart) {
  const double y_low = chart.y_ticks.front(), y_high = chart.y_ticks.back();
  const auto to_x = [&](double x) {
    return kLeft + (x - chart.x_low) / (chart.x_high - chart.x_low) * (kWidth - kLeft - kRight);
  };
  const auto to_y = [&](double y) {
    const auto scale = [&](double v) { return chart.log_y ? std::log(v) : v; };
    const double part = (scale(std::clamp(y, y_low, y_high)) - scale(y_low)) / (scale(y_high) - scale(y_low));
    return kHeight - kBottom - part * (kHeight - kTop - kBottom);
  };

  std::string svg =
      format("<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"", kWidth, kHeight) + chart.title + "\">\n";
  double last = 2 * kHeight;
  for (double tick : chart.y_ticks) {
    svg += format("<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>", kLeft, kWidth - kRight,
                  to_y(tick), to_y(tick));
    if (last - to_y(tick) < kTickDistance) continue;
    last = to_y(tick);
    svg += format("<text class=\"tick\" text-anchor=\"end\" x=\"%g\" y=\"%.1f\">", kLeft - 8, to_y(tick) + 4) +
           tick_text(tick, chart) + "</text>\n";
  }
  for (double tick : axis_ticks(chart.x_low, chart.x_high, false)) {
    if (tick < chart.x_low || tick > chart.x_high || tick != std::floor(tick)) continue;
    svg += format("<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%g\">%g</text>\n", to_x(tick),
                  kHeight - kBottom + 20, tick);
  }
  svg += format("<text class=\"tick\" text-anchor=\"middle\" x=\"%g\" y=\"%g\">", (kLeft + kWidth - kRight) / 2,
                kHeight - 6) +
         chart.x_title + "</text>\n";
  for (const Series& s : chart.series) {
    svg += "<polyline class=\"" + s.css_class + "\" points=\"";
    for (std::size_t i = 0; i < s.x.size(); ++i) svg += format("%.1f,%.1f ", to_x(s.x[i]), to_y(s.y[i]));
    svg += "\"/>\n";
    for (std::size_t i = 0; s.dots && s.x.size() <= kMostDots && i < s.x.size(); ++i) {
      const std::string value = chart.percent_y ? percent(s.y[i]) : format("%.4f", s.y[i]);
      svg += "<circle class=\"" + s.css_class +
             format("\" r=\"3.2\" cx=\"%.1f\" cy=\"%.1f\"><title>", to_x(s.x[i]), to_y(s.y[i])) + s.label +
             format(", epoch %g: ", s.x[i]) + value + "</title></circle>\n";
    }
  }
  return svg + "</svg>\n";
}

}  // namespace bnns::tool
