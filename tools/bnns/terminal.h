// Lines for people: wrapped to the terminal they go to, and never lost in silence.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace bnns::tool {

// Columns of the terminal behind the stream; 0 where there is none, 80 where it does not say.
std::size_t terminal_columns(std::FILE* stream);

// Lines of at most `columns` characters, broken at spaces; what follows a break is indented by `indent`. A word that is
// longer stays whole. 0 columns: the text as it is.
std::string wrapped(const std::string& text, std::size_t columns, std::size_t indent);

// Writes and flushes. The first failure on stdout is kept for lost_output().
void put(std::FILE* stream, const std::string& text);

// errno of the first write to stdout that failed, or 0.
int lost_output();

}  // namespace bnns::tool
