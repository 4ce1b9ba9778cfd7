// Random generators, nearest neighbours, and packing of sparse weights.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <optional>

#include "python/src/arrays.h"

namespace openbnns {

namespace {

using Handle = nb::handle;

class Random {
 public:
  explicit Random(std::optional<std::uint64_t> seed)
      : generator_(seed ? BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, *seed, nullptr)
                        : BNNSCreateRandomGenerator(BNNSRandomGeneratorMethodAES_CTR, nullptr)) {
    if (!generator_) refused("RandomGenerator");
  }
  Random(const Random&) = delete;
  ~Random() { BNNSDestroyRandomGenerator(generator_); }

  nb::bytes state() const {
    std::string bytes(BNNSRandomGeneratorStateSize(generator_), '\0');
    check(BNNSRandomGeneratorGetState(generator_, bytes.size(), bytes.data()), "RandomGenerator");
    return nb::bytes(bytes.data(), bytes.size());
  }
  void set_state(const nb::bytes& state) {
    std::string bytes(state.c_str(), state.size());
    check(BNNSRandomGeneratorSetState(generator_, bytes.size(), bytes.data()), "RandomGenerator");
  }
  void uniform(Handle y, float low, float high) {
    Desc d = target(y);
    check(BNNSRandomFillUniformFloat(generator_, &d, low, high), "RandomGenerator");
  }
  void uniform_int(Handle y, std::int64_t low, std::int64_t high) {
    Desc d = target(y);
    check(BNNSRandomFillUniformInt(generator_, &d, low, high), "RandomGenerator");
  }
  void normal(Handle y, float mean, float deviation) {
    Desc d = target(y);
    check(BNNSRandomFillNormalFloat(generator_, &d, mean, deviation), "RandomGenerator");
  }
  void categorical(Handle y, Handle probabilities, bool logarithms) {
    const Desc d = target(y);
    Array made;
    const Desc p = describe(array_of(probabilities, made, "RandomGenerator", "probabilities"), Role::generic,
                            "RandomGenerator", "probabilities");
    check(BNNSRandomFillCategoricalFloat(generator_, &d, &p, logarithms), "RandomGenerator");
  }

 private:
  static Desc target(Handle y) {
    Array made;
    return describe(output_of(y, made, "RandomGenerator", "output"), Role::generic, "RandomGenerator", "output");
  }
  BNNSRandomGenerator generator_;
};

class Neighbors {
 public:
  Neighbors(unsigned capacity, unsigned dimensions, unsigned neighbors, nb::object dtype)
      : dimensions_(dimensions),
        neighbors_(neighbors),
        type_(data_type(dtype)),
        store_(BNNSCreateNearestNeighbors(capacity, dimensions, neighbors, type_, nullptr)) {
    if (!store_) refused("NearestNeighbors");
  }
  Neighbors(const Neighbors&) = delete;
  ~Neighbors() { BNNSDestroyNearestNeighbors(store_); }

  void append(Handle samples) {
    Array made;
    const Array& a = array_of(samples, made, "NearestNeighbors", "samples");
    if (a.type != type_ || !a.packed || a.count % dimensions_ != 0 ||
        a.count / dimensions_ > std::numeric_limits<unsigned>::max()) {
      refuse("NearestNeighbors", "samples has shape " + a.shape_text() + " and dtype " + type_name(a.type) +
                                     ", expected packed " + type_name(type_) + " of (n, " +
                                     std::to_string(dimensions_) + ")");
    }
    check(BNNSNearestNeighborsLoad(store_, static_cast<unsigned>(a.count / dimensions_), a.data), "NearestNeighbors");
    loaded_ += a.count / dimensions_;
  }
  void apply(std::optional<int> index, Handle indices, Handle distances) {
    const std::size_t needed = neighbors_ * (index ? 1 : loaded_);
    void* at = memory(indices, BNNSDataTypeInt32, needed, "output_indices");
    void* far = memory(distances, type_, needed, "output_distances");
    check(BNNSNearestNeighborsGetInfo(store_, index ? *index : -1, static_cast<int*>(at), far), "NearestNeighbors");
  }

 private:
  static void* memory(Handle object, BNNSDataType type, std::size_t needed, const char* label) {
    if (object.is_none()) return nullptr;
    Array made;
    const Array& a = output_of(object, made, "NearestNeighbors", label);
    if (a.type != type || !a.packed || a.count != needed) {
      refuse("NearestNeighbors", std::string(label) + " has shape " + a.shape_text() + " and dtype " +
                                     type_name(a.type) + ", expected " + std::to_string(needed) + " elements of " +
                                     type_name(type));
    }
    return a.data;
  }
  std::size_t dimensions_, neighbors_, loaded_ = 0;
  BNNSDataType type_;
  BNNSNearestNeighbors store_;
};

}  // namespace

void bind_tables(nb::module_& m) {
  using nb::arg;
  nb::class_<Random>(m, "RandomGenerator", "AES in counter mode; the same seed gives the same numbers everywhere.")
      .def(nb::init<std::optional<std::uint64_t>>(), arg("seed").none() = nb::none())
      .def_prop_rw("state", &Random::state, &Random::set_state)
      .def("fill_uniform", &Random::uniform, arg("output"), arg("lower") = 0.0f, arg("upper") = 1.0f)
      .def("fill_uniform_int", &Random::uniform_int, arg("output"), arg("lower"), arg("upper"))
      .def("fill_normal", &Random::normal, arg("output"), arg("mean") = 0.0f, arg("standard_deviation") = 1.0f)
      .def("fill_categorical", &Random::categorical, arg("output"), arg("probabilities"),
           arg("log_probabilities") = false);
  nb::class_<Neighbors>(m, "NearestNeighbors", "A store of samples, and the nearest of them to each.")
      .def(nb::init<unsigned, unsigned, unsigned, nb::object>(), arg("capacity"), arg("dimension_count"),
           arg("neighbor_count"), arg("dtype") = "float32")
      .def("append", &Neighbors::append, arg("samples"))
      .def("apply", &Neighbors::apply, arg("index").none(), arg("output_indices").none() = nb::none(),
           arg("output_distances").none() = nb::none());
}

}  // namespace openbnns
