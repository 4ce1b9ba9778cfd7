#include "tools/bnns/report/report.h"

#include <bnns/bnns_extensions.h>

#include <algorithm>
#include <cmath>

#include "tools/bnns/report/chart.h"
#include "tools/bnns/report/parts.h"
#include "tools/bnns/report/report_style.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

constexpr std::size_t kShownEpochs = 400;
constexpr double kGoodAccuracy = 0.8;  // from here on it is green

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
std::string loss_section(const DataSplit& data, const TrainResult& result) {
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
  return "<section><h2>Loss</h2><p class=\"lead\">Cross-entropy on the " + data.noun +
         " it trains on, logarithmic axis.</p>\n" + legend_of(chart) + chart_svg(chart) + "</section>\n";
}

std::string accuracy_section(const DataSplit& data, const TrainResult& result) {
  Series test{"test", "held-out " + data.noun, {}, {}, true}, train{"train", "training " + data.noun, {}, {}, true};
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
  return "<section><h2>Accuracy</h2><p class=\"lead\">Share of " + data.noun + " recognised, epoch by epoch.</p>\n" +
         legend_of(chart) + chart_svg(chart) + "</section>\n";
}

// The learning rate of each step.
std::string rate_section(const TrainOptions& o, const TrainResult& result) {
  Series rate{"smooth", "", {}, {}};
  const std::size_t done = result.step_loss.size(), steps = std::max(result.steps, done),
                    points = std::min<std::size_t>(done, 300);
  const double per_epoch = static_cast<double>(done) / static_cast<double>(result.epochs.size());
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t step = points < 2 ? 0 : (done - 1) * i / (points - 1);
    rate.x.push_back(static_cast<double>(step) / per_epoch);
    rate.y.push_back(static_cast<double>(learning_rate_at(o, step, steps)));
  }
  Chart chart;
  chart.title = "Learning rate";
  chart.x_high = static_cast<double>(result.epochs.size());
  chart.y_ticks = axis_ticks(0, static_cast<double>(o.learning_rate), false);
  chart.series = {rate};
  return "<section><h2>Learning rate</h2><p class=\"lead\">Schedule: " + o.schedule + ".</p>\n" + chart_svg(chart) +
         "</section>\n";
}

// What the curves show, as numbers; with the time of the epochs that this process trained.
std::string epochs_section(const TrainResult& r) {
  std::string rows;
  const std::size_t count = r.epochs.size(), timed = std::min(r.epoch_seconds.size(), count);
  for (std::size_t i = count - std::min(count, kShownEpochs); i < count; ++i) {
    const EpochFigures& e = r.epochs[i];
    const std::string time = i + timed < count ? "" : format("%.2f s", r.epoch_seconds[i + timed - count]);
    rows += format("<tr%s><th scope=\"row\">%zu</th><td>%.4f</td>", i == r.kept_epoch() ? " class=\"kept\"" : "", i + 1,
                   e.train_loss) +
            "<td>" + percent(e.train_accuracy) + "</td><td>" + percent(e.test_accuracy) + "</td><td>" + time +
            "</td></tr>\n";
  }
  return "<section><h2>Epochs</h2><p class=\"lead\">The figures of the curves. Bold: the epoch whose weights are kept."
         "</p>\n" +
         scrollable("Epochs",
                    "<table class=\"epochs\"><thead><tr><th scope=\"col\">Epoch</th><th scope=\"col\">Loss</th>"
                    "<th scope=\"col\">Training</th><th scope=\"col\">Held out</th>"
                    "<th scope=\"col\">Time</th></tr></thead><tbody>\n" +
                        rows + "</tbody></table>") +
         "</section>\n";
}

std::string size_text(const Dataset& set) {
  return format("%zu x %zu", set.rows, set.columns);
}

std::string facts_section(const TrainOptions& o, const DataSplit& data, const TrainResult& r) {
  std::string html = "<section><h2>The run</h2><dl class=\"facts\">\n";
  const auto fact = [&](const char* name, const std::string& value) {
    html += std::string("<dt>") + name + "</dt><dd>" + value + "</dd>\n";
  };
  fact("Network", network_name(o, data.train) + ": " + network_layers(o) + "; " + grouped(r.weight_count) + " weights");
  fact("Optimizer", format("Adam, learning rate %g, schedule %s, batch %zu, %zu epochs",
                           static_cast<double>(o.learning_rate), o.schedule.c_str(), o.batch, o.epochs));
  if (o.patience != 0) {
    fact("Patience", format("%zu epochs; kept are the weights of epoch %zu of %zu", o.patience, r.kept_epoch() + 1,
                            r.epochs.size()));
  }
  if (r.interrupted) {
    fact("Stopped",
         format("by Ctrl-C in epoch %zu of %zu; the figures are of the run so far", r.epochs.size(), o.epochs));
  }
  const std::string size = data.train.is_pictures()
                               ? size_text(data.train) + (data.train.channels == 3 ? " pixels in colour" : " pixels")
                           : data.train.is_text() ? format("in windows of %zu", data.train.steps)
                                                  : format("%zu numbers each", data.train.columns);
  fact("Data", escaped(data.source) + "; " + grouped(data.train.labels.size()) + " " + data.noun + " to train on, " +
                   grouped(data.test.labels.size()) + " held out, " + size);
  if (data.train.is_pictures()) {
    fact("Shifts", (o.shift == 0 ? std::string("none")
                                 : format("training pictures move by up to %zu pixel%s each way", o.shift,
                                          o.shift == 1 ? "" : "s")) +
                       (o.mirror ? "; half of them are mirrored" : ""));
  }
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
  const std::size_t wrong = result.mistakes.size(), total = data.test.labels.size();
  const bool good = result.test_accuracy() >= kGoodAccuracy;
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>bnns train: " +
      percent(result.test_accuracy()) + "</title>\n<style>" + kReportStyle + "</style></head>\n<body><main>\n";
  html += "<header><h1>Classifier of " + data.noun + " trained with OpenBNNS</h1><p>" +
          network_name(options, data.train) + ", " + escaped(data.source) + "</p></header>\n";
  html +=
      "<div class=\"figures\">\n" +
      figure_card(percent(result.test_accuracy()), "held-out accuracy", good ? "main" : "") +
      figure_card(grouped(wrong), "of " + grouped(total) + " held-out " + data.noun + " misread") +
      figure_card(format("%.4f", result.train_loss()), "mean loss, epoch " + std::to_string(result.kept_epoch() + 1)) +
      figure_card(duration(result.seconds),
                  "training time, " + std::to_string(result.threads) + (result.threads == 1 ? " thread" : " threads")) +
      figure_card(grouped(static_cast<std::uint64_t>(result.digits_per_second)), data.noun + " per second") +
      "</div>\n";
  html += "<div class=\"pair\">\n" + loss_section(data, result) + accuracy_section(data, result) + "</div>\n";
  html +=
      "<div class=\"pair\">\n" + confusion_section(data, result) + facts_section(options, data, result) + "</div>\n";
  html += mistakes_section(data, result);
  html += "<div class=\"pair\">\n" + rate_section(options, result) + epochs_section(result) + "</div>\n";
  return html + "</main></body></html>\n";
}

}  // namespace bnns::tool
