// Where the recorder's calls go at the process's end: BNNS_TRACE=file.json and BNNS_PROFILE=1.
#pragma once

#include <cstdio>

namespace bnns::recorder {

struct Wanted {
  bool trace = false, profile = false;
};

// Reads the two settings. What cannot be done is not wanted, and one line says so.
Wanted wanted_files() noexcept;

// What is wanted, once: later calls do nothing.
void write_files() noexcept;

// A trace in the JSON that Perfetto and Chrome read: an object with "traceEvents". False: errno says why not.
bool write_trace(const char* path) noexcept;

// A table: time by pass and problem. Lines are cut after `columns` characters.
void print_profile(std::FILE* to, size_t columns) noexcept;

}  // namespace bnns::recorder
