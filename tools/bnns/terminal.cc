#include "tools/bnns/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace bnns::tool {
namespace {

int first_error = 0;

}  // namespace

std::size_t terminal_columns(std::FILE* stream) {
  if (isatty(fileno(stream)) == 0) return 0;
  winsize size{};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string wrapped(const std::string& text, std::size_t columns, std::size_t indent) {
  if (columns == 0) return text;
  indent = std::min(indent, columns / 2);
  std::string out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    // A line that is already indented keeps its indentation.
    const std::size_t margin =
        std::min(std::max(indent, std::min(line.find_first_not_of(' '), line.size())), columns / 2);
    while (line.size() > columns) {
      const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
      std::size_t cut = line.rfind(' ', columns);
      if (cut == line.npos || cut < first) cut = line.find(' ', first);
      if (cut == line.npos) break;
      const std::size_t rest = line.find_first_not_of(' ', cut);
      if (rest == line.npos) break;
      out += line.substr(0, line.find_last_not_of(' ', cut) + 1) + "\n";
      line = std::string(margin, ' ') + line.substr(rest);
    }
    out += line;
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

void put(std::FILE* stream, const std::string& text) {
  errno = 0;
  const bool failed = std::fputs(text.c_str(), stream) < 0 || std::fflush(stream) != 0;
  if (failed && stream == stdout && first_error == 0) first_error = errno != 0 ? errno : EIO;
}

int lost_output() {
  return first_error;
}

}  // namespace bnns::tool
