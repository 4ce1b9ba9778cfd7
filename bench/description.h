// A row of the table drawn from a description, one line of text:
//
//     FAMILY OP DIRECTION TYPE name=value ...         conv convolution forward f32 n=16 i=64 h=56 w=56 o=64 kh=3 kw=3
//     py=1 px=1
//
// bench/shapes.py draws such lines by seed, `bench.py --case` takes one. A family's `_versus.cc` makes the row;
// PyTorch's call in bench/shapes_torch.py reads the same names as attributes.
#pragma once

#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/row.h"

namespace bnns::bench {

struct Description {
  std::string family, op, direction, type_name, numbers_text;
  Type type = Type::f32;  // of the data; Int8 layers have weights of 8 bits and data in f32
  bool int8 = false;
  std::map<std::string, double> numbers;

  explicit Description(const std::string& text) {
    std::istringstream in(text);
    in >> family >> op >> direction >> type_name;
    std::string word;
    while (in >> word) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) throw std::runtime_error("\"" + word + "\" is not name=value");
      char* end = nullptr;
      const double number = std::strtod(word.c_str() + equals + 1, &end);
      if (equals + 1 == word.size() || *end != '\0' || !(number >= 0 && number <= 1e12)) {
        throw std::runtime_error("\"" + word + "\" has no number from 0 to 1e12");
      }
      numbers[word.substr(0, equals)] = number;
      numbers_text += (numbers_text.empty() ? "" : " ") + word;
    }
    int8 = type_name == "i8";
    if (type_name == "bf16") type = Type::bf16;
    if (type_name == "f16") type = Type::f16;
    if (!int8 && type_name != kTypeNames[int(type)]) throw std::runtime_error("no type \"" + type_name + "\"");
  }
  size_t operator()(const char* name) const {
    const auto found = numbers.find(name);
    if (found == numbers.end()) throw std::runtime_error(family + " needs " + name + "=");
    return static_cast<size_t>(found->second);
  }
  // A divisor: 1 where it is not given, never 0.
  size_t positive(const char* name) const {
    const size_t number = (*this)(name, 1);
    if (number == 0) throw std::runtime_error(family + ": " + name + "= is 0, expected 1 or more");
    return number;
  }
  size_t operator()(const char* name, size_t otherwise) const {
    return numbers.count(name) ? (*this)(name) : otherwise;
  }
  std::string text(const std::string& as_type) const {
    return family + " " + op + " " + direction + " " + as_type + " " + numbers_text;
  }
};

// Layers with bias=1 or relu=1 are timed forward: the gradients of x and w do not need the one, and that of the other
// would need y too.
inline void check_forward_only(const Description& d, Pass pass, bool given) {
  if (given && pass != Pass::forward)
    throw std::runtime_error(d.family + " " + d.direction + ": bias= and relu= are of forward");
}

// A row with the texts and attributes of its description; bytes, operations, fill and open are the family's.
inline Row start(const Description& d) {
  Row r;
  r.family = d.family, r.op = d.op, r.direction = d.direction, r.type = d.type_name, r.shape = d.numbers_text;
  r.attributes = d.numbers;
  return r;
}

using MakeRow = Row (*)(const Description&);
std::map<std::string, MakeRow>& makers();  // by family

// A generic tensor of row-major memory: `last` describes the same memory with the fastest axis first.
inline BNNSNDArrayDescriptor tensor(const std::vector<size_t>& shape, Type type = Type::f32, void* data = nullptr,
                                    bool last = false) {
  const std::vector<size_t> size = last ? std::vector<size_t>(shape.rbegin(), shape.rend()) : shape;
  const auto layout = BNNSDataLayout((shape.size() << 16) | 0x8000 | (last ? 0 : 1));
  return describe(layout, size, type, data);
}
// The index into size[] of the row-major axis `axis`.
inline size_t axis_of(size_t axis, size_t rank, bool last) {
  return last ? rank - 1 - axis : axis;
}
template <size_t N>
size_t find_name(const char* const (&names)[N], const std::string& name) {
  for (size_t k = 0; k < N; ++k) {
    if (name == names[k]) return k;
  }
  throw std::runtime_error("no operation \"" + name + "\"");
}

// A layer with one input and one output: x to y forward, dy to dx backward (where x and y are given too).
struct OneInput {
  std::vector<size_t> in, out;
  Type type = Type::f32;
  bool last = false, backward = false;
};
using Loop = std::function<void(const float* from, float* to, Data&)>;  // x to y, or dy to dx

inline void complete(Row& r, const OneInput& u, std::function<Filter(size_t threads)> make, Loop loop) {
  r.bytes = double(kTypeBytes[int(u.type)]) * double(product(u.in) + product(u.out));
  r.fill = [=](Data& d) {
    d.add("x", u.in, u.type).fill(2), d.add("y", u.out, u.type);
    if (!u.backward) d.add("peer_y", u.out, u.type);
    if (u.backward) d.add("dy", u.out, u.type).fill(1, 9), d.add("dx", u.in, u.type), d.add("peer_dx", u.in, u.type);
  };
  r.open = [=](Case& c, size_t threads) {
    const Filter filter = make(threads);
    const Call forward = [=](Data& d) {
      check(BNNSFilterApplyBatch(filter.get(), 1, d["x"].data(), 0, d["y"].data(), 0));
    };
    const Call backward = [=](Data& d) {
      auto dx = tensor(u.in, u.type, d["dx"].data(), u.last), dy = tensor(u.out, u.type, d["dy"].data(), u.last);
      check(BNNSFilterApplyBackwardBatch(filter.get(), 1, d["x"].data(), 0, &dx, 0, d["y"].data(), 0, &dy, 0, nullptr,
                                         nullptr));
    };
    if (u.backward) {
      for (Data& d : c.sets) forward(d);
    }
    c.contenders.push_back({"ours", u.backward ? backward : forward, u.backward ? "dx" : "y"});
    if (!loop || u.type != Type::f32) return;
    const std::string to = u.backward ? "peer_dx" : "peer_y";
    const auto plain = [=](Data& d) { loop(d[u.backward ? "dy" : "x"].as(), d[to].as(), d); };
    c.contenders.push_back({"plain loop", plain, to});
  };
}

inline bool is_backward(const Description& d) {
  constexpr const char* directions[] = {"forward", "backward"};
  return find_name(directions, d.direction) == 1;
}
// Up to five axes a=, b=, c=, d=, e=.
inline std::vector<size_t> axes(const Description& d) {
  std::vector<size_t> shape;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    if (d.numbers.count(name)) shape.push_back(d(name));
  }
  if (shape.empty()) throw std::runtime_error(d.family + " needs a=");
  return shape;
}

}  // namespace bnns::bench
