// A row of the table that `make bench` prints: one call of ours beside the same call of the peers, on the same data.
//
// A file `<operator>_versus.cc` in the operator's folder adds its rows; bench/rows.cc offers all of them to
// bench/bench.py, which takes the contenders in turn. oneDNN's calls are made here, PyTorch's in bench/peers_torch.py
// from the arrays and attributes of the row. `bnns bench` times the first contender of the same rows, ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/check.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/half.h"

namespace bnns::bench {

enum class Type : uint8_t { f32, bf16, f16, u64, i8 };
constexpr const char* kTypeNames[] = {"f32", "bf16", "f16", "u64", "i8"};
constexpr size_t kTypeBytes[] = {4, 2, 2, 8, 1};
constexpr BNNSDataType kTypeCodes[] = {BNNSDataTypeFloat32, BNNSDataTypeBFloat16, BNNSDataTypeFloat16,
                                       BNNSDataTypeUInt64, BNNSDataTypeInt8};

inline size_t product(const std::vector<size_t>& shape) {
  size_t n = 1;
  for (const size_t s : shape) {
    if (__builtin_mul_overflow(n, s, &n)) throw std::runtime_error("the problem is too large");
  }
  return n;
}

// Memory of its own, page-aligned, already touched.
class Array {
 public:
  Array() = default;
  Array(std::vector<size_t> shape, Type type) : shape_(std::move(shape)), type_(type) {
    if (count() > kMostBytes / kTypeBytes[int(type)]) throw std::runtime_error("an array of more than 16 GB");
    const size_t bytes = (count() * kTypeBytes[int(type)] + 4095) / 4096 * 4096;
    memory_.reset(static_cast<char*>(std::aligned_alloc(4096, bytes ? bytes : 4096)));
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_.get(), 0, bytes);
  }
  size_t count() const { return product(shape_); }
  size_t bytes() const { return count() * kTypeBytes[int(type_)]; }
  const std::vector<size_t>& shape() const { return shape_; }
  Type type() const { return type_; }
  template <class T = float>
  T* as() const {
    return reinterpret_cast<T*>(memory_.get());
  }
  void* data() const { return memory_.get(); }
  void set(size_t i, float value) {
    if (type_ == Type::f32) as<float>()[i] = value;
    if (type_ == Type::bf16) as<uint16_t>()[i] = float_to_bfloat16(value);
    if (type_ == Type::f16) as<uint16_t>()[i] = float_to_half(value);
    if (type_ == Type::i8) as<int8_t>()[i] = static_cast<int8_t>(value);
    if (type_ == Type::u64) as<uint64_t>()[i] = static_cast<uint64_t>(value);
  }
  float get(size_t i) const {
    if (type_ == Type::bf16) return bfloat16_to_float(as<uint16_t>()[i]);
    if (type_ == Type::f16) return half_to_float(as<uint16_t>()[i]);
    if (type_ == Type::i8) return as<int8_t>()[i];
    if (type_ == Type::u64) return static_cast<float>(as<uint64_t>()[i]);
    return as<float>()[i];
  }
  // Uniform in [-1, 1), the same numbers in every set of a row.
  void fill(float scale = 1, uint32_t state = 12345) {
    for (size_t i = 0; i < count(); ++i) {
      state = state * 1664525 + 1013904223;
      set(i, scale * (float(state >> 8) * (1.0f / 8388608) - 1.0f));
    }
  }

 private:
  static constexpr size_t kMostBytes = size_t{1} << 34;
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::vector<size_t> shape_;
  Type type_ = Type::f32;
  std::unique_ptr<char[], Free> memory_;
};

// The arrays of one call, by name.
class Data {
 public:
  Array& add(const std::string& name, std::vector<size_t> shape, Type type = Type::f32) {
    return arrays_[name] = Array(std::move(shape), type);
  }
  Array& operator[](const std::string& name) { return arrays_.at(name); }
  const std::map<std::string, Array>& arrays() const { return arrays_; }
  size_t bytes() const {
    size_t total = 0;
    for (const auto& [name, array] : arrays_) total += array.bytes();
    return total;
  }

 private:
  std::map<std::string, Array> arrays_;
};

using Call = std::function<void(Data&)>;
struct Contender {
  std::string name;  // "ours", "oneDNN", "oneDNN without layout changes", "ours f32", "plain loop"
  Call call;
  std::string result;  // the array that it writes, compared with ours; empty: not compared
};

// A row with its data. The data come in several sets when they are too large for the caches to be warm in real life:
// the calls go from set to set, so that they come from memory.
struct Case {
  std::vector<Data> sets;
  std::vector<Contender> contenders;  // ours first
  std::string implementation;         // what oneDNN says it runs
};

struct Row {
  std::string family, op, direction, shape, type = "f32";
  double operations = 0, bytes = 0;          // multiplications and additions; bytes that must move, each array once
  bool quick = false;                        // part of QUICK=1
  std::map<std::string, double> attributes;  // what PyTorch needs to know
  std::function<void(Data&)> fill;           // makes one set
  std::function<void(Case&, size_t threads)> open;
};
std::vector<Row>& rows();
void add_operator_rows();  // those of all operators, and the makers of rows from descriptions
std::vector<Data> fill_sets(const Row& r);
void add_pooling_rows();
void add_convolution_rows();
void add_fully_connected_rows();
void add_normalization_rows();
void add_loss_rows();
void add_optimizer_rows();
void add_step_rows();
void add_overhead_rows();
void add_veclib_rows();
// Operators whose rows come from descriptions only.
void add_activation_rows();
void add_arithmetic_rows();
void add_attention_rows();
void add_embedding_rows();
void add_gather_rows();
void add_gram_rows();
void add_lstm_rows();
void add_matmul_rows();
void add_padding_rows();
void add_permute_rows();
void add_reduction_rows();
void add_resize_rows();
void add_tile_rows();
void add_topk_rows();

// The passes of a layer with weights, and the array that each writes.
enum class Pass : uint8_t { forward, input, weights };
constexpr Pass kPasses[] = {Pass::forward, Pass::input, Pass::weights};
constexpr const char* kPassNames[] = {"forward", "input gradient", "weight gradient"};
constexpr const char* kPassResults[] = {"y", "dx", "dw"};

using Filter = std::shared_ptr<void>;
inline Filter own(BNNSFilter filter) {
  if (!filter) check(-1);
  return Filter(filter, BNNSFilterDestroy);
}

inline BNNSNDArrayDescriptor describe(BNNSDataLayout layout, const std::vector<size_t>& size, Type type = Type::f32,
                                      void* data = nullptr) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = layout;
  for (size_t k = 0; k < size.size(); ++k) d.size[k] = size[k];
  d.data = data;
  d.data_type = kTypeCodes[int(type)];
  return d;
}

inline BNNSFilterParameters options(size_t threads) {
  BNNSFilterParameters f;
  std::memset(&f, 0, sizeof f);
  f.n_threads = threads;
  f.flags = BNNSFlagsUseClientPtr;
  return f;
}

}  // namespace bnns::bench
