// OpenBNNS C++ overlay: the random generator and its state.
#pragma once

#include <limits>
#include <vector>

#include "checks.hpp"

namespace bnns {

enum class RandomGeneratorMethod : std::uint32_t { aesCtr = BNNSRandomGeneratorMethodAES_CTR };

/// What RandomGenerator::state() saves; equal states give equal numbers.
class RandomGeneratorState {
 public:
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  explicit RandomGeneratorState(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

 private:
  std::vector<std::byte> bytes_;
};

/// Swift's BNNS.RandomGenerator. Move-only; locked inside, so threads may share one.
class RandomGenerator {
 public:
  struct Parameters {
    RandomGeneratorMethod method = RandomGeneratorMethod::aesCtr;
    std::optional<std::uint64_t> seed{};  ///< none: a seed of the library's choice
    OptFilterParams filterParameters{};
  };

  explicit RandomGenerator(const Parameters& p)
      : generator_(create(p.method, p.seed, detail::pointer(p.filterParameters))) {
    if (!generator_) {
      detail::refused(-1, "RandomGenerator", p.seed ? "BNNSCreateRandomGeneratorWithSeed" : "BNNSCreateRandomGenerator",
                      Error::Code::unableToCreateLayer);
    }
  }
  explicit RandomGenerator(RandomGeneratorMethod method, std::optional<std::uint64_t> seed = {},
                           const OptFilterParams& filterParameters = {})
      : RandomGenerator(Parameters{method, seed, filterParameters}) {}

  ~RandomGenerator() {
    if (generator_) ::BNNSDestroyRandomGenerator(generator_);
  }
  RandomGenerator(RandomGenerator&& o) noexcept : generator_(std::exchange(o.generator_, nullptr)) {}
  RandomGenerator& operator=(RandomGenerator&& o) noexcept {
    if (auto old = std::exchange(generator_, std::exchange(o.generator_, nullptr))) ::BNNSDestroyRandomGenerator(old);
    return *this;
  }

  RandomGeneratorState state() const {
    constexpr auto where = "RandomGenerator::state";
    std::vector<std::byte> bytes(::BNNSRandomGeneratorStateSize(live(where)));
    if (bytes.empty()) detail::refused(-1, where, "BNNSRandomGeneratorStateSize", Error::Code::layerApplyFail);
    detail::check(::BNNSRandomGeneratorGetState(generator_, bytes.size(), bytes.data()), where,
                  "BNNSRandomGeneratorGetState");
    return RandomGeneratorState(std::move(bytes));
  }
  void setState(const RandomGeneratorState& state) {
    std::vector<std::byte> bytes(state.bytes().begin(), state.bytes().end());  // the C call takes a mutable pointer
    constexpr auto where = "RandomGenerator::setState";
    detail::check(::BNNSRandomGeneratorSetState(live(where), bytes.size(), bytes.data()), where,
                  "BNNSRandomGeneratorSetState");
  }

  // Each fills all samples of an array.

  /// Fills the array with numbers of [lower, upper).
  void fillUniform(const Output& array, float lower, float upper) {
    constexpr auto where = "RandomGenerator::fillUniform";
    fill(array, [&](Desc& d) {
      detail::check(::BNNSRandomFillUniformFloat(live(where), &d, lower, upper), where, "BNNSRandomFillUniformFloat");
    });
  }
  /// Fills the array with integers of the closed range [lower, upper].
  void fillUniform(const Output& array, std::int64_t lower, std::int64_t upper) {
    constexpr auto where = "RandomGenerator::fillUniform";
    if (upper == std::numeric_limits<std::int64_t>::max()) {  // the C range is half open
      detail::mistake(Error::Code::layerApplyFail, where, "the upper end may not be the largest 64-bit integer");
    }
    fill(array, [&](Desc& d) {
      detail::check(::BNNSRandomFillUniformInt(live(where), &d, lower, upper + 1), where, "BNNSRandomFillUniformInt");
    });
  }
  void fillNormal(const Output& array, float mean, float standardDeviation) {
    constexpr auto where = "RandomGenerator::fillNormal";
    fill(array, [&](Desc& d) {
      detail::check(::BNNSRandomFillNormalFloat(live(where), &d, mean, standardDeviation), where,
                    "BNNSRandomFillNormalFloat");
    });
  }
  /// Draws a class, as a float, from each distribution of `probabilities` (not in Swift).
  void fillCategorical(const Output& array, const Input& probabilities, bool logProbabilities = false) {
    constexpr auto where = "RandomGenerator::fillCategorical";
    const std::size_t batch = detail::commonBatch(where, {{"array", array}, {"probabilities", probabilities}});
    for (std::size_t i = 0; i < batch; ++i) {
      const Desc d = detail::sample(array, i), p = detail::sample(probabilities, i);
      detail::check(::BNNSRandomFillCategoricalFloat(live(where), &d, &p, logProbabilities), where,
                    "BNNSRandomFillCategoricalFloat");
    }
  }

  /// Null after a move.
  BNNSRandomGenerator bnnsRandomGenerator() const noexcept { return generator_; }

 private:
  static BNNSRandomGenerator create(RandomGeneratorMethod method, std::optional<std::uint64_t> seed,
                                    const BNNSFilterParameters* options) {
    const auto m = static_cast<BNNSRandomGeneratorMethod>(method);
    const std::uint64_t given = seed.value_or(0);
    return seed ? ::BNNSCreateRandomGeneratorWithSeed(m, given, options) : ::BNNSCreateRandomGenerator(m, options);
  }
  // One call for all samples, or one for each where they lie apart.
  template <class Body>
  static void fill(const Output& array, Body&& body) {
    if (array.batchSize() > 1) {
      if (std::optional<Desc> all = detail::flattened(array)) return body(*all);
    }
    for (std::size_t i = 0; i < array.batchSize(); ++i) {
      Desc d = detail::sample(array, i);
      body(d);
    }
  }
  BNNSRandomGenerator live(const detail::Where& where) const {
    if (!generator_) detail::mistake(Error::Code::layerApplyFail, where, "the generator was moved from");
    return generator_;
  }

  BNNSRandomGenerator generator_ = nullptr;
};

}  // namespace bnns
