#include "tools/bnns/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "tools/bnns/terminal.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != value.npos || value.find("utf8") != value.npos || value.find("UTF8") != value.npos;
  }
  return false;
}

double rate(const ProgressState& s) {
  return s.seconds > 0 ? static_cast<double>(s.digits_done - s.digits_before) / s.seconds : 0;
}

double seconds_left(const ProgressState& s) {
  return rate(s) > 0 ? static_cast<double>(s.digits_all - s.digits_done) / rate(s) : 0;
}

// "epoch  3/12  loss 0.1234  train 97.31 %  held out 98.10 %  95,300 digits/s  4.0 s left"
std::string figures(const ProgressState& s, bool with_rate = true) {
  std::string text = format("  loss %.4f  train %s", s.loss, percent(s.accuracy).c_str());
  if (s.test_accuracy >= 0) text += "  held out " + percent(s.test_accuracy);
  if (with_rate) text += "  " + grouped(static_cast<std::uint64_t>(rate(s))) + " " + s.noun + "/s";
  if (s.digits_done < s.digits_all) text += "  " + duration(seconds_left(s)) + " left";
  return text;
}

std::string epoch_text(const ProgressState& s) {
  const std::string all = std::to_string(s.epochs);
  return format("epoch %*zu/%s", static_cast<int>(all.size()), s.epoch, all.c_str());
}

}  // namespace

Progress::Progress(std::FILE* stream, bool quiet) : stream_(stream), quiet_(quiet) {
  terminal_ = isatty(fileno(stream)) != 0 && environment("TERM") != "dumb" && !environment("TERM").empty();
  colour_ = terminal_ && environment("NO_COLOR").empty();
  unicode_ = locale_is_utf8();
}

void Progress::note(const std::string& line) {
  finish();
  if (!quiet_) put(stream_, wrapped(line, terminal_columns(stream_), kNoteIndent) + "\n");
}

void Progress::update(const ProgressState& state) {
  if (quiet_ || !terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_draw_ < std::chrono::milliseconds(100)) return;
  last_draw_ = now;
  redraw(state);
}

void Progress::end_epoch(const ProgressState& state) {
  if (quiet_) return;
  const std::string line = fitting_line(state, terminal_ ? terminal_columns(stream_) : 0, true);
  constexpr std::size_t kLines = 40;
  const std::size_t every = (state.epochs + kLines - 1) / kLines;
  open_ = terminal_ && every > 1 && state.epoch % every != 0;
  put(stream_, (terminal_ ? "\r" + line + "\x1b[K" : line) + (open_ ? "" : "\n"));
}

void Progress::finish() {
  if (open_) put(stream_, "\n");
  open_ = false;
}

std::string Progress::plain_line(const ProgressState& state) {
  return epoch_text(state) + figures(state);
}

std::string Progress::fitting_line(const ProgressState& state, std::size_t columns, bool whole_epoch) {
  const std::string full = plain_line(state), epoch = epoch_text(state), loss = format(" loss %.4f", state.loss);
  if (columns == 0 || full.size() < columns) return full;
  if (const std::string brief = epoch + figures(state, false); brief.size() < columns) return brief;
  const std::string tail = whole_epoch && state.test_accuracy >= 0 ? " held out " + percent(state.test_accuracy)
                           : state.digits_done < state.digits_all  ? "  " + duration(seconds_left(state)) + " left"
                                                                   : " train " + percent(state.accuracy);
  // From the longest on; the last column stays free, for terminals that go to the next line when it is written.
  for (const std::string& line : {epoch + loss + tail, epoch.substr(6) + loss + tail, epoch.substr(6) + loss}) {
    if (line.size() < columns) return line;
  }
  return epoch.substr(6).substr(0, columns - 1);
}

void Progress::redraw(const ProgressState& state) {
  const std::size_t columns = terminal_columns(stream_);
  const std::string head = epoch_text(state);
  std::string text = figures(state);
  if (head.size() + text.size() + 11 > columns) text = figures(state, false);
  const std::size_t used = head.size() + text.size() + 3;
  std::string line = head;
  if (used + 8 <= columns) {  // a bar where there is room for one
    const std::size_t width = std::min<std::size_t>(24, columns - used);
    const std::size_t full = state.digits_all > 0 ? width * state.digits_done / state.digits_all : 0;
    line += colour_ ? "  \x1b[32m" : "  ";
    for (std::size_t i = 0; i < full; ++i) line += unicode_ ? "\u2501" : "#";
    line += colour_ ? "\x1b[90m" : "";
    for (std::size_t i = full; i < width; ++i) line += unicode_ ? (colour_ ? "\u2501" : "\u2500") : ".";
    line += colour_ ? "\x1b[0m" : "";
    line += text;
  } else {
    line = fitting_line(state, columns, false);  // a wrapped line could not be redrawn
  }
  put(stream_, "\r" + line + "\x1b[K");
}

}  // namespace bnns::tool
