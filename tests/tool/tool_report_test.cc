// The HTML report and its parts: self-contained, well-formed, and telling what happened.

#include <gtest/gtest.h>
#include <zlib.h>

#include <set>
#include <string>
#include <vector>

#include "tools/bnns/progress.h"
#include "tools/bnns/report/chart.h"
#include "tools/bnns/report/png.h"
#include "tools/bnns/report/report.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

struct Trained {
  TrainOptions options;
  DataSplit data;
  TrainResult result;
};

Trained small_run(std::size_t epochs, std::size_t mistakes) {
  Trained run;
  run.options.epochs = epochs;
  for (Dataset* set : {&run.data.train, &run.data.test}) {
    set->rows = 2, set->columns = 3;
    set->pixels.assign(6 * 30, 77);
    for (std::size_t i = 0; i < 30; ++i) set->labels.push_back(static_cast<std::uint16_t>(i % kClasses));
  }
  run.data.source = "folder <b>&\"quoted\"";
  for (std::size_t e = 0; e < epochs; ++e) {
    for (int s = 0; s < 7; ++s) run.result.step_loss.push_back(2.0f / static_cast<float>(1 + 7 * e + s));
    run.result.epochs.push_back({1.0 / static_cast<double>(e + 1), 0.8, 0.9});
  }
  run.data.classes = digit_names();
  run.result.confusion.assign(kClasses, std::vector<std::size_t>(kClasses));
  for (std::size_t t = 0; t < kClasses; ++t) run.result.confusion[t][t] = 3;
  for (std::size_t i = 0; i < mistakes; ++i) {
    run.result.mistakes.push_back({i, static_cast<int>(i % 10), static_cast<int>((i + 1) % 10), 0.99f, 0.005f});
    --run.result.confusion[i % 10][i % 10];
    ++run.result.confusion[i % 10][(i + 1) % 10];
  }
  run.result.seconds = 1.5;
  run.result.threads = 2;
  run.result.weights_sha256 = std::string(64, 'e');
  return run;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Walks the tags: every one opened is closed in order. Returns the tag at fault, or "".
std::string unbalanced_tag(const std::string& html) {
  const std::set<std::string> alone = {"meta", "br", "img", "wbr", "!doctype"};
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == html.npos) return "an open <";
    std::string tag = html.substr(at + 1, end - at - 1);
    const bool closes = tag[0] == '/', closed = tag.back() == '/';
    tag = tag.substr(closes ? 1 : 0, tag.find_first_of(" /", 1) - (closes ? 1 : 0));
    if (closes) {
      if (open.empty() || open.back() != tag) return tag;
      open.pop_back();
    } else if (!closed && alone.count(tag) == 0) {
      open.push_back(tag);
    }
  }
  return open.empty() ? "" : open.back();
}

TEST(Report, IsWellFormedAndSelfContained) {
  for (std::size_t epochs : {1, 2, 40}) {
    for (std::size_t mistakes : {0, 1, 5, 30}) {
      const Trained run = small_run(epochs, mistakes);
      const std::string html = report_html(run.options, run.data, run.result);
      EXPECT_EQ(unbalanced_tag(html), "") << epochs << " epochs, " << mistakes << " mistakes";
      EXPECT_EQ(occurrences(html, "http"), 0u);
      EXPECT_EQ(occurrences(html, "url("), 0u);
      EXPECT_EQ(occurrences(html, "src="), occurrences(html, "src=\"data:image/png;base64,"));
      EXPECT_EQ(occurrences(html, "<img"), std::min<std::size_t>(mistakes, 24));
      EXPECT_EQ(occurrences(html, "nan"), 0u);
      EXPECT_EQ(occurrences(html, "inf"), 0u);
      EXPECT_EQ(occurrences(html, "<svg"), 3u);
    }
  }
}

TEST(Report, TellsTheRun) {
  const Trained run = small_run(3, 2);
  const std::string html = report_html(run.options, run.data, run.result);
  EXPECT_NE(html.find("90.00 %"), html.npos);
  EXPECT_NE(html.find("<b>2</b><span>of 30 held-out digits misread"), html.npos);
  EXPECT_NE(html.find(std::string(64, 'e')), html.npos);
  EXPECT_NE(html.find("1 of 3 times, a 0 was read as a 1"), html.npos);
  EXPECT_NE(html.find("folder &lt;b&gt;&amp;&quot;quoted&quot;"), html.npos);
  EXPECT_EQ(html.find("<b>&"), html.npos);
}

// What a screen reader, a keyboard and a phone need.
TEST(Report, IsAccessible) {
  Trained run = small_run(3, 2);
  run.result.confusion[8][3] = 2;
  run.result.epoch_seconds = {0.5, 0.25};  // of a run that was resumed after its first epoch
  const std::string html = report_html(run.options, run.data, run.result);
  EXPECT_NE(html.find("an 8 was read as a 3"), html.npos);
  EXPECT_EQ(occurrences(html, "a 8"), 0u);
  EXPECT_EQ(occurrences(html, "<th>"), 0u);
  EXPECT_EQ(occurrences(html, "<th "), occurrences(html, "<th scope=\""));
  EXPECT_EQ(occurrences(html, "class=\"scroll\""),
            occurrences(html, "class=\"scroll\" tabindex=\"0\" role=\"region\""));
  EXPECT_NE(html.find("<th scope=\"row\">1</th><td>1.0000</td><td>80.00 %</td><td>90.00 %</td><td></td>"), html.npos);
  EXPECT_NE(html.find("<td>0.25 s</td>"), html.npos);
  EXPECT_NE(html.find("svg .tick { font-size: 20px; }"), html.npos);
}

TEST(Report, NamesClassesAndRows) {
  Trained run = small_run(2, 3);
  run.data.classes[0] = "cat & \"mouse\"", run.data.classes[1] = "owl";
  run.data.noun = "pictures";
  std::string html = report_html(run.options, run.data, run.result);
  EXPECT_NE(html.find("a cat &amp; &quot;mouse&quot; was read as an owl"), html.npos);
  EXPECT_EQ(html.find("cat & "), html.npos);
  EXPECT_NE(html.find("held-out pictures misread"), html.npos);
  EXPECT_EQ(unbalanced_tag(html), "");
  for (Dataset* set : {&run.data.train, &run.data.test}) {
    set->values.assign(6 * 30, 0.5f);
    for (int i = 0; i < 30; ++i) set->origins.push_back("line " + std::to_string(i + 2));
  }
  html = report_html(run.options, run.data, run.result);
  EXPECT_EQ(occurrences(html, "<img"), 0u);
  EXPECT_NE(html.find("<th scope=\"row\">line 2</th>"), html.npos);
  // Too many classes for a matrix: the pairs.
  for (std::size_t k = kClasses; k < 40; ++k) run.data.classes.push_back("class " + std::to_string(k));
  run.result.confusion.assign(40, std::vector<std::size_t>(40));
  run.result.confusion[20][39] = 7;
  html = report_html(run.options, run.data, run.result);
  EXPECT_NE(html.find("<th scope=\"row\">class 20</th><td>class 39</td><td>7</td><td>0.0 %</td>"), html.npos);
  EXPECT_EQ(unbalanced_tag(html), "");
}

TEST(Report, KeepsLongNamesApart) {
  Trained run = small_run(2, 3);
  for (std::size_t k = 0; k < kClasses; ++k) run.data.classes[k] = "golden_retriever" + std::to_string(k);
  const std::string html = report_html(run.options, run.data, run.result);
  for (std::size_t k = 0; k < kClasses; ++k) {
    const std::string label = "golde\u2026iever" + std::to_string(k);
    EXPECT_EQ(occurrences(html, "<span>" + label + "</span></th>"), 1u) << "over its column";
    EXPECT_EQ(occurrences(html, ">" + label + "</th>"), 1u) << "beside its row";
  }
  EXPECT_EQ(occurrences(html, "<em>golden_<wbr>retriever"), 3u);
  EXPECT_EQ(occurrences(html, "class=\"mistakes wide\""), 1u);
  EXPECT_EQ(occurrences(html, "scope=\"col\" class=\"down\""), kClasses);
  EXPECT_EQ(
      occurrences(report_html(small_run(2, 3).options, small_run(2, 3).data, small_run(2, 3).result), "class=\"down\""),
      0u);
  run.data.classes[1] = "golden_retriever_young_domestic", run.data.classes[2] = "golden_retriever_grown_domestic";
  const std::string longer = report_html(run.options, run.data, run.result);
  EXPECT_EQ(occurrences(longer, ">golden_re\u2026g_domestic</th>"), 1u);
  EXPECT_EQ(occurrences(longer, ">golden_re\u2026n_domestic</th>"), 1u);
}

TEST(Report, IsGreenOnlyWhereGood) {
  Trained run = small_run(41, 3);
  EXPECT_EQ(occurrences(report_html(run.options, run.data, run.result), "<div class=\"main\">"), 1u);
  EXPECT_EQ(occurrences(report_html(run.options, run.data, run.result), "<circle"), 0u) << "dots on 41 epochs";
  EXPECT_EQ(occurrences(report_html(run.options, small_run(40, 3).data, small_run(40, 3).result), "<circle"), 80u);
  run.result.epochs.back().test_accuracy = 0.14;
  EXPECT_EQ(occurrences(report_html(run.options, run.data, run.result), "<div class=\"main\">"), 0u);
}

// Decodes what the encoder wrote with code of the test's own: base64, chunks and their checksums, zlib, pixels.
TEST(Png, RoundTrips) {
  for (std::size_t columns : {1, 2, 3, 28, 300}) {
    const std::size_t rows = 5;
    std::vector<std::uint8_t> pixels(rows * columns);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37);
    const std::string uri = png_data_uri(pixels.data(), rows, columns), prefix = "data:image/png;base64,";
    ASSERT_EQ(uri.substr(0, prefix.size()), prefix);
    ASSERT_EQ((uri.size() - prefix.size()) % 4, 0u);

    std::string bytes;
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::uint32_t bits = 0;
    int have = 0;
    for (char c : uri.substr(prefix.size())) {
      if (c == '=') break;
      bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
      if ((have += 6) >= 8) bytes += static_cast<char>(bits >> (have -= 8));
    }
    ASSERT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
    const auto word = [&](std::size_t at) {
      std::uint32_t w = 0;
      for (std::size_t k = 0; k < 4; ++k) w = w << 8 | static_cast<std::uint8_t>(bytes.at(at + k));
      return w;
    };
    std::string data;
    std::size_t at = 8;
    for (const char* type : {"IHDR", "IDAT", "IEND"}) {
      const std::size_t length = word(at);
      ASSERT_EQ(bytes.substr(at + 4, 4), type);
      EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + at + 4, static_cast<uInt>(length + 4)),
                word(at + 8 + length));
      if (std::string(type) == "IHDR") {
        EXPECT_EQ(word(at + 8), columns);
        EXPECT_EQ(word(at + 12), rows);
      }
      if (std::string(type) == "IDAT") data = bytes.substr(at + 8, length);
      at += 12 + length;
    }
    EXPECT_EQ(at, bytes.size());
    std::vector<Bytef> lines(rows * (columns + 1));
    uLongf size = lines.size();
    ASSERT_EQ(uncompress(lines.data(), &size, reinterpret_cast<const Bytef*>(data.data()), data.size()), Z_OK);
    ASSERT_EQ(size, lines.size());
    for (std::size_t y = 0; y < rows; ++y) {
      EXPECT_EQ(lines[y * (columns + 1)], 0);
      for (std::size_t x = 0; x < columns; ++x) EXPECT_EQ(lines[y * (columns + 1) + 1 + x], pixels[y * columns + x]);
    }
  }
}

TEST(Chart, TicksCoverTheRange) {
  for (const auto& [low, high] : {std::pair{0.013, 2.3}, {1e-6, 2.0}, {0.5, 0.6}, {2.0, 2.1}}) {
    const auto ticks = axis_ticks(low, high, true);
    EXPECT_LE(ticks.front(), low);
    EXPECT_GE(ticks.back(), high);
    EXPECT_LE(ticks.size(), 10u);
  }
  for (const auto& [low, high] : {std::pair{0.95, 1.0}, {0.1, 1.0}, {0.999, 1.0}, {0.0, 12.0}, {0.0, 10000.0}}) {
    const auto ticks = axis_ticks(low, high, false);
    EXPECT_LE(ticks.front(), low + 1e-9);
    EXPECT_GE(ticks.back(), high - 1e-9 * high);
    EXPECT_GE(ticks.size(), 3u);
    EXPECT_LE(ticks.size(), 9u);
  }
}

// Labels have 20 units of height on a phone, and half their width beside the last one.
TEST(Chart, LabelsLieApartAndInside) {
  Chart chart;
  chart.x_high = 1500;
  chart.log_y = true;
  chart.y_ticks = axis_ticks(0.0006, 3000, true);
  chart.series = {{"smooth", "", {0, 1500}, {0.0006, 3000}}};
  const std::string svg = chart_svg(chart);
  double last = 1000;
  for (std::size_t at = svg.find("\"end\""); at != svg.npos; at = svg.find("\"end\"", at + 1)) {
    const double y = std::stod(svg.substr(svg.find(" y=\"", at) + 4));
    EXPECT_GE(last - y, 20);
    last = y;
  }
  EXPECT_LT(last, 1000);
  const std::size_t at = svg.find(">1500</text>");
  ASSERT_NE(at, svg.npos);
  EXPECT_LE(std::stod(svg.substr(svg.rfind(" x=\"", at) + 4)), 560 - 24);
}

TEST(Chart, ThinKeepsTheMean) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i));
  std::vector<double> positions;
  const auto means = thin(values, 10, &positions);
  ASSERT_EQ(means.size(), 10u);
  EXPECT_DOUBLE_EQ(means[0], 49.5);
  EXPECT_DOUBLE_EQ(means[9], 949.5);
  EXPECT_DOUBLE_EQ(positions[0], 50.0);
}

TEST(Text, Numbers) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(percent(0.98765), "98.77 %");
  EXPECT_EQ(duration(0.04), "0.0 s");
  EXPECT_EQ(duration(9.96), "10 s");
  EXPECT_EQ(duration(59.6), "1 min 0 s");
  EXPECT_EQ(duration(7300), "2 h 1 min");
}

TEST(Progress, PlainLine) {
  ProgressState state;
  state.epoch = 3, state.epochs = 12, state.digits_done = 60000, state.digits_all = 240000;
  state.seconds = 1.5, state.loss = 0.123449, state.accuracy = 0.9731, state.test_accuracy = 0.981;
  EXPECT_EQ(Progress::plain_line(state),
            "epoch  3/12  loss 0.1234  train 97.31 %  held out 98.10 %  40,000 digits/s  4.5 s left");
}

}  // namespace
}  // namespace bnns::tool
