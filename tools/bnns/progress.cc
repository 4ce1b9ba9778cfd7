#include "tools/bnns/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

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

std::size_t terminal_columns(std::FILE* stream) {
  winsize size{};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

double rate(const ProgressState& s) {
  return s.seconds > 0 ? static_cast<double>(s.digits_done) / s.seconds : 0;
}

double seconds_left(const ProgressState& s) {
  return rate(s) > 0 ? static_cast<double>(s.digits_all - s.digits_done) / rate(s) : 0;
}

// "epoch  3/12  loss 0.1234  train 97.31 %  held out 98.10 %  95,300 digits/s  4.0 s left"
std::string figures(const ProgressState& s) {
  std::string text = format("  loss %.4f  train %s", s.loss, percent(s.accuracy).c_str());
  if (s.test_accuracy >= 0) text += "  held out " + percent(s.test_accuracy);
  text += "  " + grouped(static_cast<std::uint64_t>(rate(s))) + " digits/s";
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
  if (!quiet_) std::fprintf(stream_, "%s\n", line.c_str());
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
  if (!terminal_) {
    std::fprintf(stream_, "%s\n", plain_line(state).c_str());
    std::fflush(stream_);
    return;
  }
  redraw(state);
  if (state.epoch == state.epochs) std::fputc('\n', stream_);
}

std::string Progress::plain_line(const ProgressState& state) {
  return epoch_text(state) + figures(state);
}

void Progress::redraw(const ProgressState& state) {
  const std::size_t columns = terminal_columns(stream_);
  const std::string head = epoch_text(state), text = figures(state);
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
    line = (head + text).substr(0, columns > 0 ? columns - 1 : 0);  // a wrapped line could not be redrawn
  }
  std::fprintf(stream_, "\r%s\x1b[K", line.c_str());
  std::fflush(stream_);
}

}  // namespace bnns::tool
