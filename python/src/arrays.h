// Arrays of Python as descriptors: NumPy, PyTorch and whatever else has the buffer protocol or DLPack, without copying.
//
// `Array` is what Python sees: memory of a Python object with its shape, or a shape alone. Calls take an Array or the
// object itself. A layer's call compares each array with what the layer was made for (`Expected`); nothing reaches the
// library that it could read or write outside of the object's memory.
#pragma once

#include <bnns/bnns.h>
#include <bnns/bnns_extensions.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <string>

#include "python/src/error.h"

namespace openbnns {

using Desc = BNNSNDArrayDescriptor;

// Which layout an array gets where its user named none.
enum class Role { generic, image, matrix, kernel, vector };

struct Array {
  nb::object owner{};    // the Python object; none for a shape alone
  nb::ndarray<> hold{};  // its memory, exported: it cannot be freed or resized meanwhile
  void* data = nullptr;
  BNNSDataType type = BNNSDataTypeFloat32;
  std::size_t rank = 0, count = 1;        // count: elements
  std::size_t shape[8]{}, stride[8]{};    // as NumPy has them, strides in elements
  bool read_only = false, packed = true;  // packed: in C order, without gaps
  bool accumulate = false;                // as a gradient: added to
  std::uint32_t layout = 0;               // 0: by role

  std::string shape_text() const;
};

// openbnns.Error of the function `where`, with the reason that the library left.
[[noreturn]] void refused(const std::string& where);
inline void check(int status, const char* where) {
  if (status != 0) refused(where);
}
// Runs a call of the library without Python's lock; openbnns.Error where it does not return 0.
template <class Call>
void unlocked(const char* where, Call&& call) {
  int status = 0;
  {
    nb::gil_scoped_release released;
    status = call();
  }
  check(status, where);
}

// The array behind a Python object: the Array that it is, or one made into `made`.
const Array& array_of(nb::handle object, Array& made, const char* where, const char* label);
// The same for something that is written.
const Array& output_of(nb::handle object, Array& made, const char* where, const char* label);
Array make_array(nb::handle object, const char* where, const char* label);
BNNSDataType data_type(nb::handle name);
const char* type_name(BNNSDataType type);
std::size_t element_size(BNNSDataType type);  // bytes

// The descriptor of a whole array, with strides where it has gaps.
Desc describe(const Array& array, Role role, const char* where, const char* label);

// What a layer was made for, and what each of its calls must bring.
struct Expected {
  Expected() = default;
  explicit Expected(const Desc& desc, const Array& array);
  Desc desc{};
  Array form{};  // shape of one sample, for comparing and for messages
  bool given() const { return desc.layout != 0; }
};

// Instead of a number of samples: one thing that is no sample, such as weights.
constexpr std::size_t kWhole = ~std::size_t{0};

struct Bound {
  void* data = nullptr;
  std::size_t stride = 0;  // elements from sample to sample
  nb::ndarray<> hold{};    // another thread cannot free or resize the memory during the call
};
// The memory of `batch` samples, or of one thing that is no sample (kWhole). None is allowed where `optional`.
Bound bind(nb::handle object, const Expected& expected, std::size_t batch, bool written, bool optional,
           const char* where, const char* label);

// A gradient: the layer's descriptor with the memory of the argument.
struct Gradient {
  Gradient(nb::handle object, const Expected& expected, std::size_t batch, bool written, bool optional,
           const char* where, const char* label);
  Desc desc{};
  std::size_t stride = 0, bytes = 0;  // bytes: of the whole thing, 0 for samples
  nb::ndarray<> hold{};
  Desc* get() { return desc.data ? &desc : nullptr; }
  // The gradient of no samples: zeros, or nothing added.
  void clear();
};

void bind_arrays(nb::module_& m);
void bind_filters(nb::module_& m);
void bind_layers(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_fused(nb::module_& m);
void bind_sequence(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_tables(nb::module_& m);
void bind_group(nb::module_& m);

}  // namespace openbnns
