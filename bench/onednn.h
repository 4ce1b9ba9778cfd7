// oneDNN as a contender: one primitive that gets and gives the plain arrays of a row. Where it prefers layouts of its
// own, the changes to and from them are part of the call; `alone` is the primitive without them.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/row.h"

#ifdef BNNS_PEER_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>

namespace bnns::bench {

inline dnnl::engine& engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}
inline dnnl::stream& stream() {
  static dnnl::stream s(engine());
  return s;
}

inline dnnl::memory::data_type data_type(Type type) {
  using T = dnnl::memory::data_type;
  return type == Type::bf16 ? T::bf16 : type == Type::f16 ? T::f16 : T::f32;
}

using Dims = dnnl::memory::dims;
inline Dims dims(const std::vector<size_t>& shape) {
  return Dims(shape.begin(), shape.end());
}
// The dense row-major descriptor of a shape, and the one that lets oneDNN choose.
inline dnnl::memory::desc plain(const std::vector<size_t>& shape, Type type = Type::f32) {
  using Tag = dnnl::memory::format_tag;
  constexpr Tag tags[] = {Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde};
  return {dims(shape), data_type(type), tags[shape.size() - 1]};
}
inline dnnl::memory::desc any(const std::vector<size_t>& shape, Type type = Type::f32) {
  return {dims(shape), data_type(type), dnnl::memory::format_tag::any};
}

class Primitive {
 public:
  enum class Way { in, out };
  Primitive(dnnl::primitive primitive, const char* implementation)
      : primitive_(std::move(primitive)), implementation_(implementation) {}

  // An array of the row, which has the layout `user`; the primitive wants it as `wanted`.
  Primitive& use(int argument, const std::string& name, const dnnl::memory::desc& user,
                 const dnnl::memory::desc& wanted, Way way) {
    Side side{argument, name, dnnl::memory(user, engine(), nullptr), {}, way, user == wanted};
    side.wanted = side.same ? side.user : dnnl::memory(wanted, engine());
    arguments_[argument] = side.wanted;
    changes_ |= !side.same;
    sides_.push_back(std::move(side));
    return *this;
  }
  // Memory that stays with the primitive: workspace, statistics.
  Primitive& keep(int argument, const dnnl::memory& memory) {
    arguments_[argument] = memory;
    return *this;
  }

  void call(Data& data) {
    for (Side& s : sides_) {
      s.user.set_data_handle(data[s.name].data());
      if (!s.same && s.way == Way::in) dnnl::reorder(s.user, s.wanted).execute(stream(), s.user, s.wanted);
    }
    primitive_.execute(stream(), arguments_);
    for (Side& s : sides_) {
      if (!s.same && s.way == Way::out) dnnl::reorder(s.wanted, s.user).execute(stream(), s.wanted, s.user);
    }
    stream().wait();
  }
  void alone(Data& data) {
    for (Side& s : sides_) {
      if (s.same) s.user.set_data_handle(data[s.name].data());
    }
    primitive_.execute(stream(), arguments_);
    stream().wait();
  }
  bool changes_layouts() const { return changes_; }
  const std::string& implementation() const { return implementation_; }

 private:
  struct Side {
    int argument;
    std::string name;
    dnnl::memory user, wanted;
    Way way;
    bool same;
  };
  dnnl::primitive primitive_;
  std::string implementation_;
  std::vector<Side> sides_;
  std::unordered_map<int, dnnl::memory> arguments_;
  bool changes_ = false;
};

// Adds the primitive to a case, twice where it changes layouts. Not its reference loops (f16 weight gradients take
// minutes): they are no contest.
inline void contend(Case& c, const std::shared_ptr<Primitive>& primitive, const std::string& result) {
  if (primitive->implementation().rfind("ref", 0) == 0) return;
  c.contenders.push_back({"oneDNN", [primitive](Data& d) { primitive->call(d); }, result});
  if (primitive->changes_layouts()) {
    c.contenders.push_back({"oneDNN without layout changes", [primitive](Data& d) { primitive->alone(d); }, ""});
  }
  c.implementation = primitive->implementation();
}

}  // namespace bnns::bench
#endif
