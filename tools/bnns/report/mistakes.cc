#include <algorithm>
#include <cmath>
#include <set>

#include "tools/bnns/report/parts.h"
#include "tools/bnns/report/png.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

constexpr std::size_t kShownMistakes = 24, kWidestMatrix = 20, kShownConfusions = 40;
constexpr std::size_t kLevelName = 4;  // letters of a name that still stands upright over its column

std::size_t letters_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// The bytes of the first so many characters.
std::size_t bytes_of(const std::string& text, std::size_t letters) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((text[at] & 0xc0) != 0x80 && letters-- == 0) break;
  }
  return at;
}

// "golden_retriever1" -> "golde\u2026iever1": ends often tell names apart.
std::string shortened(const std::string& name, std::size_t most) {
  const std::size_t letters = letters_of(name);
  if (letters <= most) return name;
  const std::size_t head = (most - 1) / 2, tail = most - 1 - head;
  return name.substr(0, bytes_of(name, head)) + "\u2026" + name.substr(bytes_of(name, letters - tail));
}

// All names with as few letters as leave them different.
std::vector<std::string> short_names(const std::vector<std::string>& names) {
  for (std::size_t most = 12; most < 40; ++most) {
    std::vector<std::string> all;
    for (const std::string& name : names) all.push_back(shortened(name, most));
    if (std::set<std::string>(all.begin(), all.end()).size() == names.size()) return all;
  }
  return names;
}

// A name that may be broken after each _, - or dot.
std::string breakable(const std::string& name) {
  std::string html;
  for (char c : name) {
    html += escaped({c});
    if (c == '_' || c == '-' || c == '.') html += "<wbr>";
  }
  return html;
}

// "an 8", "a 7", "a cat": by the sound of the first letter, as far as letters tell.
std::string with_article(const std::string& name) {
  const bool eighty = name[0] == '8' || name == "11" || name == "18" || name.rfind("11,", 0) == 0;
  return (eighty || std::string("aeioAEIO").find(name[0]) != std::string::npos ? "an " : "a ") + name;
}

std::string recall_text(const std::vector<std::size_t>& row, std::size_t truth) {
  std::size_t total = 0;
  for (std::size_t n : row) total += n;
  if (total == 0) return "none";
  return format("%.1f %%", 100 * static_cast<double>(row[truth]) / static_cast<double>(total));
}

// Of many classes: the pairs that are taken for each other most often.
std::string confusion_list(const TrainResult& result, const std::vector<std::string>& names) {
  struct Pair {
    std::size_t count, truth, predicted;
  };
  std::vector<Pair> pairs;
  for (std::size_t t = 0; t < names.size(); ++t) {
    for (std::size_t p = 0; p < names.size(); ++p) {
      if (t != p && result.confusion[t][p] != 0) pairs.push_back({result.confusion[t][p], t, p});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  std::string html =
      "<table class=\"epochs\"><thead><tr><th scope=\"col\">Class</th><th scope=\"col\">Read as</th>"
      "<th scope=\"col\">Times</th><th scope=\"col\">Class recognised</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < std::min(pairs.size(), kShownConfusions); ++i) {
    const auto [count, t, p] = pairs[i];
    html += "<tr><th scope=\"row\">" + escaped(names[t]) + "</th><td>" + escaped(names[p]) + "</td><td>" +
            grouped(count) + "</td><td>" + recall_text(result.confusion[t], t) + "</td></tr>\n";
  }
  return "<section><h2>Confusions</h2><p class=\"lead\">The classes taken for each other most often.</p>\n" +
         scrollable("Confusions", html + "</tbody></table>") + "</section>\n";
}

// Never "100 % sure" of something wrong: rounding would say more than the network did.
std::string sure_text(float probability) {
  return probability > 0.9995f ? "&gt; 99.9 % sure" : format("%.1f %% sure", 100 * static_cast<double>(probability));
}

// A picture, or the place of a row in its file, with what was said of it.
std::string mistake_html(const DataSplit& data, const Mistake& m) {
  const std::string truth = escaped(data.classes[static_cast<std::size_t>(m.truth)]),
                    said = escaped(data.classes[static_cast<std::size_t>(m.predicted)]),
                    sure = sure_text(m.predicted_probability),
                    origin = data.test.is_text()         ? "character " + grouped(m.index + 1)
                             : data.test.origins.empty() ? ""
                                                         : escaped(data.test.origins[m.index]);
  if (!data.test.is_pictures()) {
    return "<tr><th scope=\"row\">" + origin + "</th><td>" + truth + "</td><td>" + said + "</td><td>" + sure +
           "</td></tr>\n";
  }
  return "<figure title=\"" + (origin.empty() ? format("held-out digit %zu", m.index) : origin) + ": " + said +
         format(" with %.1f %%, the true ", 100 * static_cast<double>(m.predicted_probability)) + truth +
         format(" with %.1f %%", 100 * static_cast<double>(m.truth_probability)) + "\"><img alt=\"" +
         with_article(truth) + "\" src=\"" +
         png_data_uri(data.test.image(m.index), data.test.rows, data.test.columns, data.test.channels) +
         "\"><figcaption><em>" + breakable(data.classes[static_cast<std::size_t>(m.truth)]) + "</em> read as <strong>" +
         breakable(data.classes[static_cast<std::size_t>(m.predicted)]) + "</strong><br>" + sure +
         "</figcaption></figure>\n";
}

}  // namespace

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

std::string scrollable(const std::string& label, const std::string& content) {
  return "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" + label + "\">" + content + "</div>";
}

// Rows are true classes, columns what the network said. Colour grows with the square root of the share, so that a
// single mistake among hundreds can be seen.
std::string confusion_section(const DataSplit& data, const TrainResult& result) {
  const std::vector<std::string>& names = data.classes;
  if (names.size() > kWidestMatrix) return confusion_list(result, names);
  const std::vector<std::string> shown = short_names(names);  // the whole name is told when pointed at
  std::size_t worst = 1, most = 1, longest = 1;
  for (std::size_t t = 0; t < names.size(); ++t) {
    longest = std::max(longest, letters_of(shown[t]));
    for (std::size_t p = 0; p < names.size(); ++p) {
      most = std::max(most, result.confusion[t][p]);
      if (t != p) worst = std::max(worst, result.confusion[t][p]);
    }
  }
  // A column holds the largest count, and its name, which goes down where it is long.
  const bool down = longest > kLevelName;
  const std::size_t name_width = 8 * longest + 14,
                    column = std::max<std::size_t>({22, 8 * std::to_string(most).size() + 2, down ? 0 : name_width});
  std::string html =
      format("<table class=\"confusion\" style=\"min-width:%zupx\"><thead><tr><td style=\"width:%zupx\"></td>",
             (column + 2) * names.size() + name_width + 60, name_width);
  for (std::size_t k = 0; k < names.size(); ++k) {
    html += std::string("<th scope=\"col\"") + (down ? " class=\"down\"" : "") + " title=\"" + escaped(names[k]) +
            "\"><span>" + escaped(shown[k]) + "</span></th>";
  }
  html += "<th scope=\"col\" class=\"recall\">right</th></tr></thead><tbody>\n";
  for (std::size_t t = 0; t < names.size(); ++t) {
    std::size_t total = 0;
    for (std::size_t n : result.confusion[t]) total += n;
    html += "<tr><th scope=\"row\" title=\"" + escaped(names[t]) + "\">" + escaped(shown[t]) + "</th>";
    for (std::size_t p = 0; p < names.size(); ++p) {
      const std::size_t n = result.confusion[t][p];
      if (n == 0) {
        html += "<td class=\"zero\">\u00b7</td>";
        continue;
      }
      const bool right = t == p;
      const double share = static_cast<double>(n) / static_cast<double>(right ? total : worst);
      html +=
          format("<td style=\"background:rgba(var(--%s-rgb),%.2f)\" title=\"%zu of %zu times, ", right ? "good" : "bad",
                 right ? 0.1 + 0.45 * share * share : 0.08 + 0.55 * std::sqrt(share), n, total) +
          escaped(with_article(names[t]) + " was read as " + with_article(names[p])) + "\">" + std::to_string(n) +
          "</td>";
    }
    html += "<td class=\"recall\">" + recall_text(result.confusion[t], t) + "</td></tr>\n";
  }
  return "<section><h2>Confusion matrix</h2><p class=\"lead\">Rows: the true class. Columns: the answer. "
         "Right: the share recognised.</p>\n" +
         scrollable("Confusion matrix", html + "</tbody></table>") + "</section>\n";
}

std::string mistakes_section(const DataSplit& data, const TrainResult& result) {
  const std::size_t shown = std::min(kShownMistakes, result.mistakes.size());
  std::string html = "<section><h2>Worst mistakes</h2>\n";
  if (shown == 0)
    return html + "<p class=\"lead\">None: all held-out " + data.noun + " were recognised.</p></section>\n";
  html += "<p class=\"lead\">The " + std::to_string(shown) + " of " + grouped(result.mistakes.size()) +
          (result.mistakes.size() == 1 ? " mistake" : " mistakes") +
          " it was surest of: the true class, what the network said, and how sure it was.</p>\n";
  std::string list;
  for (std::size_t i = 0; i < shown; ++i) list += mistake_html(data, result.mistakes[i]);
  if (data.test.is_pictures()) {
    std::size_t longest = 0;
    for (const std::string& name : data.classes) longest = std::max(longest, letters_of(name));
    return html + "<div class=\"mistakes" + (longest > 9 ? " wide" : "") + "\">\n" + list + "</div></section>\n";
  }
  return html +
         scrollable("Worst mistakes",
                    "<table class=\"epochs\"><thead><tr><th scope=\"col\">Where</th>"
                    "<th scope=\"col\">Class</th><th scope=\"col\">Read as</th>"
                    "<th scope=\"col\">Sure</th></tr></thead><tbody>\n" +
                        list + "</tbody></table>") +
         "</section>\n";
}

}  // namespace bnns::tool
