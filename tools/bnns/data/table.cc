// Tables of numbers with a class in each row.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tools/bnns/data/csv.h"
#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/own_data.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFewRows = 20, kMaxColumns = 100000, kMaxValues = kMaxDataBytes / sizeof(float);

// "column 3 (width)"
std::string column_text(std::size_t at, const std::vector<std::string>& header) {
  return "column " + std::to_string(at + 1) + (at < header.size() ? " (" + header[at] + ")" : "");
}

// A table as it stands in the file. Without a class column, `labels` is empty.
struct Table {
  std::vector<std::string> header;  // of all columns, or nothing
  std::size_t fields = 0;
  std::vector<float> values;  // all columns but the class's
  std::vector<std::string> labels;
  std::vector<std::size_t> lines;
  bool target_open = false;  // nobody said which column is the class

  void add_row(const Csv& csv, const std::vector<std::string>& row, std::size_t target) {
    if (row.size() != fields) {
      csv.fail(format("has %zu field%s, expected %zu as in the lines before", row.size(), row.size() == 1 ? "" : "s",
                      fields));
    }
    for (std::size_t k = 0; k < fields; ++k) {
      if (k == target) {
        if (row[k].empty()) csv.fail(column_text(k, header) + " is empty, expected a class: fill it or remove the row");
        labels.push_back(row[k]);
        continue;
      }
      const std::optional<float> value = number_in(row[k]);
      if (!value) refuse_number(csv, row[k], k);
      values.push_back(*value);
    }
    lines.push_back(csv.line());
    if (values.size() > kMaxValues) csv.fail(format("more than %zu numbers", kMaxValues));
  }
  [[noreturn]] void refuse_number(const Csv& csv, const std::string& field, std::size_t k) const {
    const std::string column = column_text(k, header), point = with_point(field);
    if (field.empty()) csv.fail(column + " is empty, expected a number: change it, or remove the row");
    const std::string what = column + " is " + field.substr(0, 40) + ", expected a number: ";
    if (!point.empty()) csv.fail(what + "write " + point.substr(0, 40));
    // A column of words from the first row on may be what should be learned.
    const bool is_class = target_open && lines.empty();
    csv.fail(
        what + "change it, or remove the column" +
        (is_class ? "; or is it the class? --target " + (k < header.size() ? header[k] : std::to_string(k + 1)) : ""));
  }
};

// A first line is a header where a field besides the class's is not a number, or, with the class alone besides it,
// where a column of that name is asked for.
bool is_header(const std::vector<std::string>& row, std::size_t target) {
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (k != target && !row[k].empty() && !number_in(row[k]) && with_point(row[k]).empty()) return true;
  }
  return false;
}

// The class's column: by name, or counted from 1, or the last.
std::size_t find_target(const Csv& csv, const std::vector<std::string>& row, const std::string& target) {
  if (target.empty()) return row.size() - 1;
  const auto named = std::find(row.begin(), row.end(), target);
  if (named != row.end()) return static_cast<std::size_t>(named - row.begin());
  const std::optional<float> number = number_in(target);
  if (number && *number >= 1 && *number <= static_cast<float>(row.size()) && std::floor(*number) == *number) {
    return static_cast<std::size_t>(*number) - 1;
  }
  std::string names;
  for (const std::string& each : row) names += (names.empty() ? "" : ", ") + each;
  csv.fail("--target " + target + " is no column, expected one of " + names.substr(0, 120) +
           format(", or a number from 1 to %zu", row.size()));
}

Dataset dataset_of(const Table& table, std::size_t classes) {
  Dataset set;
  set.rows = 1, set.columns = table.labels.empty() ? table.fields : table.fields - 1;
  set.classes = classes;
  for (const std::size_t line : table.lines) set.origins.push_back("line " + std::to_string(line));
  return set;
}

// Classes in order: as numbers where all are numbers, else letter by letter.
std::vector<std::string> classes_of(const fs::path& file, const Table& table, const std::string& column) {
  std::map<std::string, std::size_t> seen;
  bool numbers = true;
  for (const std::string& each : table.labels) {
    ++seen[each];
    if (seen.size() > kMaxClasses) {
      throw DataError(file.string() + ": " + printable(column) +
                      format(" has more than %zu different values, expected classes; choose another column by --target",
                             kMaxClasses));
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, count] : seen) names.push_back(name), numbers = numbers && number_in(name);
  if (names.size() < 2) {
    throw DataError(file.string() + ": " + printable(column) + " has one class only (" + printable(names.front()) +
                    "), expected two or more");
  }
  if (table.labels.size() >= kFewRows && names.size() > table.labels.size() / 2) {
    throw DataError(file.string() + ": " + printable(column) +
                    format(" has %zu different values in %zu rows: bnns train learns classes, not measured numbers; "
                           "choose another column by --target",
                           names.size(), table.labels.size()));
  }
  if (numbers) {
    std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      return number_in(a).value_or(0) < number_in(b).value_or(0);
    });
  }
  return names;
}

// Mean and deviation of each column; a column that never changes is left as wide as it is.
void measure(Columns& columns, const Dataset& set) {
  const std::size_t width = set.columns, count = set.count();
  for (std::size_t k = 0; k < width; ++k) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(set.values[i * width + k]);
    const double mean = sum / static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double off = static_cast<double>(set.values[i * width + k]) - mean;
      squares += off * off;
    }
    const auto deviation = static_cast<float>(std::sqrt(squares / static_cast<double>(count)));
    columns.mean.push_back(static_cast<float>(mean));
    columns.deviation.push_back(deviation > 0 && std::isfinite(deviation) ? deviation : 1.0f);
  }
}

void scale(Dataset& set, const Columns& columns) {
  for (std::size_t i = 0; i < set.values.size(); ++i) {
    const std::size_t k = i % set.columns;
    set.values[i] = (set.values[i] - columns.mean[k]) / columns.deviation[k];
  }
}

}  // namespace

DataSplit read_table(const fs::path& file, const DataOptions& options) {
  Csv csv(file);
  Table table;
  std::vector<std::string> row;
  if (!csv.next(row)) throw DataError(file.string() + ": is empty, expected a CSV file");
  table.fields = row.size();
  table.target_open = options.target.empty();
  const std::size_t target = find_target(csv, row, options.target);
  if (row.size() < 2)
    csv.fail("has one field, expected numbers and a class: fields are parted by commas, semicolons or tabs");
  if (row.size() > kMaxColumns) csv.fail(format("has %zu fields, expected at most %zu", row.size(), kMaxColumns));
  DataSplit data;
  if (is_header(row, target)) {
    table.header = row;
  } else {
    table.add_row(csv, row, target);
  }
  while (csv.next(row)) table.add_row(csv, row, target);
  if (table.labels.empty()) throw DataError(file.string() + ": has no rows below its header");

  std::vector<std::string> names = classes_of(file, table, column_text(target, table.header));
  Dataset all = dataset_of(table, names.size());
  std::map<std::string, std::size_t> index;
  for (std::size_t k = 0; k < names.size(); ++k) index[names[k]] = k;
  for (const std::string& each : table.labels) all.labels.push_back(static_cast<std::uint16_t>(index[each]));
  const std::vector<bool> held = held_out(all.labels, names.size(), options.test_share, options.seed, file.string());
  data.train.rows = data.test.rows = 1, data.train.columns = data.test.columns = all.columns;
  data.train.classes = data.test.classes = names.size();
  for (std::size_t i = 0; i < all.count(); ++i) {
    Dataset& part = held[i] ? data.test : data.train;
    const auto first = table.values.begin() + static_cast<std::ptrdiff_t>(i * all.columns);
    part.values.insert(part.values.end(), first, first + static_cast<std::ptrdiff_t>(all.columns));
    part.labels.push_back(all.labels[i]);
    part.origins.push_back(all.origins[i]);
  }
  Columns& columns = data.columns;
  columns.target_at = target;
  for (std::size_t k = 0; k < table.header.size(); ++k) {
    if (k != target) columns.names.push_back(printable(table.header[k]));
  }
  if (!table.header.empty()) columns.target = printable(table.header[target]);
  measure(columns, data.train);
  scale(data.train, columns);
  scale(data.test, columns);
  data.noun = "rows";
  data.source = printable(file.string()) + format(", %zu columns and %zu classes", all.columns, names.size());
  for (std::string& each : names) data.classes.push_back(printable(each));
  return data;
}

Dataset read_table_like(const fs::path& file, const Columns& columns, const std::vector<std::string>& classes,
                        bool* labelled) {
  Csv csv(file);
  Table table;
  std::vector<std::string> row;
  if (!csv.next(row)) throw DataError(file.string() + ": is empty, expected a CSV file");
  table.fields = row.size();
  *labelled = row.size() == columns.count() + 1;
  if (!*labelled && row.size() != columns.count()) {
    csv.fail(format("has %zu field%s, expected %zu, or %zu with the class", row.size(), row.size() == 1 ? "" : "s",
                    columns.count(), columns.count() + 1));
  }
  const std::size_t target = *labelled ? columns.target_at : row.size();
  if (is_header(row, target)) {
    table.header = row;
    std::size_t at = 0;
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (k == target) continue;
      if (at < columns.names.size() && printable(row[k]) != columns.names[at]) {
        csv.fail(column_text(k, row) + " is not " + columns.names[at] + ", expected the columns of the training");
      }
      ++at;
    }
  } else {
    table.add_row(csv, row, target);
  }
  while (csv.next(row)) table.add_row(csv, row, target);
  Dataset set = dataset_of(table, classes.size());
  for (std::size_t i = 0; i < table.labels.size(); ++i) {
    const auto found = std::find(classes.begin(), classes.end(), printable(table.labels[i]));
    if (found == classes.end()) {
      throw DataError(file.string() + format(":%zu: ", table.lines[i]) + printable(table.labels[i]).substr(0, 40) +
                      " is no class of the network");
    }
    set.labels.push_back(static_cast<std::uint16_t>(found - classes.begin()));
  }
  if (table.lines.empty()) throw DataError(file.string() + ": has no rows below its header");
  if (!*labelled) set.labels.assign(table.lines.size(), 0);
  set.values = std::move(table.values);
  scale(set, columns);
  return set;
}

}  // namespace bnns::tool
