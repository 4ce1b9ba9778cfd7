// One argument of a call changed: a number of it, or a number inside a struct that it points to. The sources of
// every_layer compiled with the generated header (generate_mutations.py) make all their calls through mutated().
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>

namespace bnns::testing {

struct Field {
  size_t offset, bytes;
  bool pointer;
};
template <class Struct>
inline constexpr std::array<Field, 0> kFields = {};  // what a pointer to anything else points to is left alone

// What the next call does to its arguments, and what came of it.
struct Mutation {
  static constexpr size_t kValues = 7;
  bool armed = false;
  size_t target = 0, value = 0;  // which number of the arguments, and which of kValues it becomes
  size_t numbers = 0;            // how many there are
  size_t arguments = 0;
  std::string functions;  // called since it was armed, with a comma behind each
  bool changed = false;
  std::string what;
};
inline Mutation mutation;

// Lies about sizes that are refused or stay within the table's spare memory; no pointer but NULL.
inline uint64_t lie(uint64_t old, size_t bytes, size_t value) {
  const uint64_t all = bytes == 8 ? UINT64_MAX : (uint64_t{1} << 8 * bytes) - 1;
  const uint64_t lies[Mutation::kValues] = {0, 1, 2, old + 1, all / 2 + 1, all, all / 4 + 1};
  return lies[value] & all;
}

inline void change(char* number, const Field& f, const std::string& where) {
  if (mutation.numbers++ != mutation.target) return;
  uint64_t old = 0;
  std::memcpy(&old, number, f.bytes);
  uint64_t now = f.pointer ? 0 : lie(old, f.bytes, mutation.value);
  if (f.bytes == 1) now = mutation.value & 1;  // a bool; others are no value of the type
  if (now == old || (f.pointer && mutation.value > 0)) return;
  std::memcpy(number, &now, f.bytes);
  mutation.changed = true;
  mutation.what = mutation.functions + " " + where + " from " + std::to_string(old) + " to " + std::to_string(now);
}

// An argument: given by value, or a copy of what it points to.
template <class P>
struct Argument {
  explicit Argument(P given) : value(given) {
    const std::string name = "argument " + std::to_string(++mutation.arguments);
    char bytes[sizeof(P)];
    std::memcpy(bytes, &value, sizeof(P));
    if constexpr (std::is_pointer_v<P>) {
      change(bytes, {0, sizeof(P), true}, name);
    } else if constexpr (std::is_floating_point_v<P> || std::is_same_v<P, bool> || std::is_enum_v<P>) {
      change(bytes, {0, sizeof(P), false}, name);
    } else if (mutation.value == 0) {  // a count or a stride: a larger one would be a lie about the caller's memory
      change(bytes, {0, sizeof(P), false}, name);
    } else {
      ++mutation.numbers;
    }
    std::memcpy(static_cast<void*>(&value), bytes, sizeof(P));
    if constexpr (std::is_pointer_v<P>) {
      using Struct = std::remove_cv_t<std::remove_pointer_t<P>>;
      if constexpr (std::is_class_v<Struct>) {
        if (!value) return;
        std::memcpy(&copy, value, sizeof(Struct));
        for (const Field& f : kFields<Struct>) {
          change(reinterpret_cast<char*>(&copy) + f.offset, f, name + ", byte " + std::to_string(f.offset));
        }
        value = &copy;
      }
    }
  }
  template <class T>
  struct Pointee {
    using type = char;
  };
  template <class T>
  requires std::is_class_v<T>
  struct Pointee<T*> {
    using type = std::remove_cv_t<T>;
  };
  P value;
  typename Pointee<P>::type copy;
};

template <class R, class... P, class... A>
R mutated(R (*function)(P...), const char* name, A&&... given) {
  if (!mutation.armed) return function(static_cast<P>(given)...);
  mutation.arguments = 0;
  mutation.functions += name + std::string(",");
  std::tuple<std::unique_ptr<Argument<P>>...> arguments{std::make_unique<Argument<P>>(static_cast<P>(given))...};
  return std::apply([&](auto&... argument) { return function(argument->value...); }, arguments);
}

}  // namespace bnns::testing
