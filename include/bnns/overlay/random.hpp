// OpenBNNS C++ overlay: the random generator and its state.
#pragma once

#include <limits>
#include <vector>

#include "types.hpp"

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
      detail::refused(-1, p.seed ? "BNNSCreateRandomGeneratorWithSeed" : "BNNSCreateRandomGenerator",
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
    std::vector<std::byte> bytes(::BNNSRandomGeneratorStateSize(live("RandomGenerator::state")));
    if (bytes.empty()) detail::refused(-1, "BNNSRandomGeneratorStateSize", Error::Code::layerApplyFail);
    detail::check(::BNNSRandomGeneratorGetState(generator_, bytes.size(), bytes.data()), "BNNSRandomGeneratorGetState");
    return RandomGeneratorState(std::move(bytes));
  }
  void setState(const RandomGeneratorState& state) {
    std::vector<std::byte> bytes(state.bytes().begin(), state.bytes().end());  // the C call takes a mutable pointer
    detail::check(::BNNSRandomGeneratorSetState(live("RandomGenerator::setState"), bytes.size(), bytes.data()),
                  "BNNSRandomGeneratorSetState");
  }

  /// Fills the array with numbers of [lower, upper).
  void fillUniform(const Desc& array, float lower, float upper) {
    Desc d = array;
    detail::check(::BNNSRandomFillUniformFloat(live("RandomGenerator::fillUniform"), &d, lower, upper),
                  "BNNSRandomFillUniformFloat");
  }
  /// Fills the array with integers of the closed range [lower, upper].
  void fillUniform(const Desc& array, std::int64_t lower, std::int64_t upper) {
    if (upper == std::numeric_limits<std::int64_t>::max()) {  // the C range is half open
      detail::mistake(Error::Code::layerApplyFail, "RandomGenerator::fillUniform",
                      "the upper end may not be the largest 64-bit integer");
    }
    Desc d = array;
    detail::check(::BNNSRandomFillUniformInt(live("RandomGenerator::fillUniform"), &d, lower, upper + 1),
                  "BNNSRandomFillUniformInt");
  }
  void fillNormal(const Desc& array, float mean, float standardDeviation) {
    Desc d = array;
    detail::check(::BNNSRandomFillNormalFloat(live("RandomGenerator::fillNormal"), &d, mean, standardDeviation),
                  "BNNSRandomFillNormalFloat");
  }
  /// Draws a class, as a float, from each distribution of `probabilities` (not in Swift).
  void fillCategorical(const Desc& array, const Desc& probabilities, bool logProbabilities = false) {
    detail::check(::BNNSRandomFillCategoricalFloat(live("RandomGenerator::fillCategorical"), &array, &probabilities,
                                                   logProbabilities),
                  "BNNSRandomFillCategoricalFloat");
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
  BNNSRandomGenerator live(const char* where) const {
    if (!generator_) detail::mistake(Error::Code::layerApplyFail, where, "the generator was moved from");
    return generator_;
  }

  BNNSRandomGenerator generator_ = nullptr;
};

}  // namespace bnns
