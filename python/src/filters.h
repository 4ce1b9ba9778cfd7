// A filter of the library with what its calls compare arrays with, and the options that every layer takes.
#pragma once

#include <string>
#include <vector>

#include "python/src/arrays.h"

namespace openbnns {

// use_client_pointer and the number of threads, as Python's classes pass them on.
struct Options {
  bool use_client_pointer = false;
  std::size_t threads = 0;
  BNNSFilterParameters c() const {
    BNNSFilterParameters p{};
    p.flags = use_client_pointer ? std::uint32_t{BNNSFlagsUseClientPtr} : 0u;
    p.n_threads = threads;
    return p;
  }
};

struct Filter {
  Filter() = default;
  Filter(const Filter&) = delete;
  ~Filter() { release(); }

  void release() {
    if (filter) BNNSFilterDestroy(filter);
    filter = nullptr;
  }
  // Takes a new filter over; refuses with the library's reason where there is none.
  void own(BNNSFilter made, const char* where) {
    if (!made) refused(where);
    release();
    filter = made, name = where;
  }
  // The filter of a layer whose __init__ has run.
  BNNSFilter live(const char* where) const {
    if (!filter) refuse(where, "the layer was not made");
    return filter;
  }
  // Describes an argument of the constructor and keeps its memory alive. None: absent, where `optional`.
  Desc argument(nb::handle object, Role role, Expected& expected, bool optional, bool written, const char* where,
                const char* label);

  BNNSFilter filter = nullptr;
  std::string name;
  std::vector<Array> kept;
  Expected input[3], output, parameter[4];  // parameter: weights, bias; or beta, gamma; or stage by stage
  bool shared[3] = {false, false, false};   // an input that is one for the whole batch
  std::size_t inputs = 1, parameters = 0;
};

// What Python tells apart by the arguments of the calls.
struct Unary : Filter {};
struct Binary : Filter {};
struct Arithmetic : Filter {};
struct Pooling : Filter {};
struct Normalization : Filter {};
struct Permute : Filter {};

}  // namespace openbnns
