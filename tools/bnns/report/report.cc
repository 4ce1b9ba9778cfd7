#include "tools/bnns/report/report.h"

#include <bnns/bnns_extensions.h>

#include <algorithm>
#include <cmath>

#include "tools/bnns/report/chart.h"
#include "tools/bnns/report/png.h"
#include "tools/bnns/report/report_style.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

constexpr std::size_t kShownMistakes = 24;

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string legend_of(const Chart& chart) {
  std::string html = "<div class=\"legend\">";
  for (const Series& s : chart.series) {
    if (!s.label.empty()) html += "<span><i class=\"" + s.css_class + "\"></i>" + s.label + "</span>";
  }
  return html + "</div>\n";
}

std::string figure_card(const std::string& value, const std::string& what, const char* css_class = "") {
  return std::string("<div class=\"") + css_class + "\"><b>" + value + "</b><span>" + what + "</span></div>\n";
}

// Loss of every mini-batch (thinned) and its running mean, over epochs, on a logarithmic axis.
std::string loss_section(const TrainResult& result) {
  const double steps_per_epoch =
      static_cast<double>(result.step_loss.size()) / static_cast<double>(result.epochs.size());
  Series raw{"raw", "each mini-batch", {}, {}}, smooth{"smooth", "running mean", {}, {}};
  raw.y = thin(result.step_loss, 500, &raw.x);
  // Window of a hundredth of the run: an exponential mean, corrected for its start.
  std::vector<float> means;
  const double keep = 1 - 1 / std::max(1.0, static_cast<double>(result.step_loss.size()) / 100);
  double sum = 0, weight = 0;
  for (float loss : result.step_loss) {
    sum = keep * sum + static_cast<double>(loss);
    weight = keep * weight + 1;
    means.push_back(static_cast<float>(sum / weight));
  }
  smooth.y = thin(means, 300, &smooth.x);
  double low = 1e30, high = 0;
  for (double y : raw.y) low = std::min(low, y), high = std::max(high, y);
  for (Series* s : {&raw, &smooth}) {
    for (double& x : s->x) x /= steps_per_epoch;
  }

  Chart chart;
  chart.title = "Training loss";
  chart.x_high = static_cast<double>(result.epochs.size());
  chart.log_y = true;
  chart.y_ticks = axis_ticks(std::max(low, 1e-7), std::max(high, 2e-7), true);
  chart.series = {raw, smooth};
  return "<section><h2>Loss</h2><p class=\"lead\">Cross-entropy on the digits it trains on, logarithmic axis.</p>\n" +
         legend_of(chart) + chart_svg(chart) + "</section>\n";
}

std::string accuracy_section(const TrainResult& result) {
  Series test{"test", "held-out digits", {}, {}, true}, train{"train", "training digits", {}, {}, true};
  double low = 1;
  for (std::size_t i = 0; i < result.epochs.size(); ++i) {
    const EpochFigures& e = result.epochs[i];
    const double x = static_cast<double>(i + 1);
    test.x.push_back(x), test.y.push_back(e.test_accuracy);
    train.x.push_back(x), train.y.push_back(e.train_accuracy);
    low = std::min({low, e.test_accuracy, e.train_accuracy});
  }
  Chart chart;
  chart.title = "Accuracy per epoch";
  chart.x_low = result.epochs.size() > 1 ? 1 : 0;
  chart.x_high = std::max(1.0, static_cast<double>(result.epochs.size()));
  chart.y_ticks = axis_ticks(std::max(0.0, low - 0.002), 1.0, false);
  chart.percent_y = true;
  chart.series = {train, test};
  return "<section><h2>Accuracy</h2><p class=\"lead\">Share of digits recognised, epoch by epoch.</p>\n" +
         legend_of(chart) + chart_svg(chart) + "</section>\n";
}

// Rows are true digits, columns what the network said. Colour grows with the square root of the share, so that a
// single mistake among hundreds can be seen.
std::string confusion_section(const TrainResult& result) {
  std::string html =
      "<section><h2>Confusion matrix</h2><p class=\"lead\">Rows: the true digit. Columns: the answer. "
      "Right: the share recognised.</p>\n<div class=\"scroll\"><table class=\"confusion\"><thead><tr><th></th>";
  for (std::size_t k = 0; k < kClasses; ++k) html += "<th>" + std::to_string(k) + "</th>";
  html += "<th class=\"recall\"></th></tr></thead><tbody>\n";
  std::size_t worst = 1;
  for (std::size_t t = 0; t < kClasses; ++t) {
    for (std::size_t p = 0; p < kClasses; ++p) {
      if (t != p) worst = std::max(worst, result.confusion[t][p]);
    }
  }
  for (std::size_t t = 0; t < kClasses; ++t) {
    std::size_t total = 0;
    for (std::size_t n : result.confusion[t]) total += n;
    html += "<tr><th>" + std::to_string(t) + "</th>";
    for (std::size_t p = 0; p < kClasses; ++p) {
      const std::size_t n = result.confusion[t][p];
      if (n == 0) {
        html += "<td class=\"zero\">\u00b7</td>";
        continue;
      }
      const bool right = t == p;
      const double share = static_cast<double>(n) / static_cast<double>(right ? total : worst);
      html +=
          format("<td style=\"background:rgba(var(--%s-rgb),%.2f)\" title=\"%zu of %zu times, a %zu was read as %zu\">",
                 right ? "good" : "bad", right ? 0.1 + 0.45 * share * share : 0.08 + 0.55 * std::sqrt(share), n, total,
                 t, p) +
          std::to_string(n) + "</td>";
    }
    html +=
        "<td class=\"recall\">" +
        (total > 0 ? format("%.1f %%", 100 * static_cast<double>(result.confusion[t][t]) / static_cast<double>(total))
                   : std::string("none")) +
        "</td></tr>\n";
  }
  return html + "</tbody></table></div></section>\n";
}

// Never "100 % sure" of something wrong: rounding would say more than the network did.
std::string sure_text(float probability) {
  return probability > 0.9995f ? "&gt; 99.9 % sure" : format("%.1f %% sure", 100 * static_cast<double>(probability));
}

std::string mistakes_section(const DataSplit& data, const TrainResult& result) {
  const std::size_t shown = std::min(kShownMistakes, result.mistakes.size());
  std::string html = "<section><h2>Worst mistakes</h2>\n";
  if (shown == 0) return html + "<p class=\"lead\">None: every held-out digit was recognised.</p></section>\n";
  html +=
      "<p class=\"lead\">The " + std::to_string(shown) + " of " + grouped(result.mistakes.size()) +
      (result.mistakes.size() == 1 ? " mistake" : " mistakes") +
      " it was surest of: the true digit, what the network said, and how sure it was.</p>\n<div class=\"mistakes\">\n";
  for (std::size_t i = 0; i < shown; ++i) {
    const Mistake& m = result.mistakes[i];
    html += "<figure title=\"" +
            format("held-out digit %zu: %d with %.1f %%, the true %d with %.1f %%", m.index, m.predicted,
                   100 * static_cast<double>(m.predicted_probability), m.truth,
                   100 * static_cast<double>(m.truth_probability)) +
            "\"><img alt=\"a " + std::to_string(m.truth) + "\" src=\"" +
            png_data_uri(data.test.image(m.index), data.test.rows, data.test.columns) + "\"><figcaption><em>" +
            std::to_string(m.truth) + "</em> read as <strong>" + std::to_string(m.predicted) + "</strong><br>" +
            sure_text(m.predicted_probability) + "</figcaption></figure>\n";
  }
  return html + "</div></section>\n";
}

std::string facts_section(const TrainOptions& o, const DataSplit& data, const TrainResult& r) {
  std::string html = "<section><h2>The run</h2><dl class=\"facts\">\n";
  const auto fact = [&](const char* name, const std::string& value) {
    html += std::string("<dt>") + name + "</dt><dd>" + value + "</dd>\n";
  };
  fact("Network", network_name(o, data.train) + ": " + network_layers(o) + "; " + grouped(r.weight_count) + " weights");
  fact("Optimizer", format("Adam, learning rate %g falling to 0, batch %zu, %zu epochs",
                           static_cast<double>(o.learning_rate), o.batch, o.epochs));
  if (r.interrupted) {
    fact("Stopped",
         format("by Ctrl-C in epoch %zu of %zu; the figures are of the run so far", r.epochs.size(), o.epochs));
  }
  fact("Digits", escaped(data.source) + "; " + grouped(data.train.count()) + " to train on, " +
                     grouped(data.test.count()) +
                     format(" held out, %zu x %zu pixels", data.train.rows, data.train.columns));
  fact("Shifts", o.shift == 0
                     ? "none"
                     : format("training digits move by up to %zu pixel%s each way", o.shift, o.shift == 1 ? "" : "s"));
  fact("Seed", std::to_string(o.seed));
  fact("Threads", std::to_string(r.threads) + " (the number changes the time, never the weights)");
  fact("Instruction set", BNNSExtGetISA());
  fact("Library", std::string("OpenBNNS ") + BNNSExtVersion());
  fact("Time", duration(r.seconds) + ", with an evaluation after every epoch");
  fact("Weights, SHA-256", "<code>" + r.weights_sha256 + "</code>");
  return html + "</dl></section>\n";
}

}  // namespace

std::string report_html(const TrainOptions& options, const DataSplit& data, const TrainResult& result) {
  const std::size_t wrong = result.mistakes.size(), total = data.test.count();
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>bnns train: " +
      percent(result.test_accuracy()) + "</title>\n<style>" + kReportStyle + "</style></head>\n<body><main>\n";
  html += "<header><h1>Digit classifier trained with OpenBNNS</h1><p>" + network_name(options, data.train) + ", " +
          escaped(data.source) + "</p></header>\n";
  html += "<div class=\"figures\">\n" + figure_card(percent(result.test_accuracy()), "held-out accuracy", "main") +
          figure_card(grouped(wrong) + " of " + grouped(total), "held-out digits misread") +
          figure_card(format("%.4f", result.train_loss()), "mean loss, last epoch") +
          figure_card(duration(result.seconds), "training time, " + std::to_string(result.threads) +
                                                    (result.threads == 1 ? " thread" : " threads")) +
          figure_card(grouped(static_cast<std::uint64_t>(result.digits_per_second)), "digits per second") + "</div>\n";
  html += "<div class=\"pair\">\n" + loss_section(result) + accuracy_section(result) + "</div>\n";
  html += "<div class=\"pair\">\n" + confusion_section(result) + facts_section(options, data, result) + "</div>\n";
  return html + mistakes_section(data, result) + "</main></body></html>\n";
}

}  // namespace bnns::tool
