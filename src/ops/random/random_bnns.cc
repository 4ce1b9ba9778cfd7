// The C entry points of the random generator.

#include <new>
#include <string>

#include "bnns/bnns.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/random/random.h"

using namespace bnns;

namespace {

BNNSRandomGenerator make_generator(BNNSRandomGeneratorMethod method, const BNNSFilterParameters* parameters,
                                   uint64_t seed) {
  static_assert(alignof(Generator) <= kAlignment);
  CallTimer timer("create");
  if (method != BNNSRandomGeneratorMethodAES_CTR) {
    fail_invalid("random: method is %s, expected BNNSRandomGeneratorMethodAES_CTR", enum_text(method).text);
  }
  const Options options = read_options(parameters, "random");
  void* memory = allocate(options, sizeof(Generator), "the generator");
  Generator* generator = new (memory) Generator(options, seed);
  if (timer.active()) timer.finish("random aes_ctr", 0);
  return generator;
}

void check_state_buffer(size_t size, const void* state) {
  if (!state) fail_invalid("random: state is NULL, expected %zu bytes", kRandomStateBytes);
  if (size != kRandomStateBytes) {
    fail_invalid("random: state_size is %zu, expected %zu = BNNSRandomGeneratorStateSize", size, kRandomStateBytes);
  }
}

// Runs a fill with its verbose line.
template <class Body>
int fill(const char* function, const char* what, BNNSRandomGenerator handle, const BNNSNDArrayDescriptor* desc,
         Body&& body) noexcept {
  return guarded_status(function, [&] {
    CallTimer timer("random");
    body(generator_from_handle(handle));
    if (timer.active()) timer.finish(std::string(what) + " " + resolve(*desc, "random", "desc").text(), 1, "random");
  });
}

}  // namespace

BNNSRandomGenerator BNNSCreateRandomGenerator(BNNSRandomGeneratorMethod method,
                                              const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSCreateRandomGenerator", BNNSRandomGenerator{},
                 [&] { return make_generator(method, parameters, random_seed()); });
}

BNNSRandomGenerator BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethod method, uint64_t seed,
                                                      const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSCreateRandomGeneratorWithSeed", BNNSRandomGenerator{},
                 [&] { return make_generator(method, parameters, seed); });
}

void BNNSDestroyRandomGenerator(BNNSRandomGenerator handle) noexcept {
  Generator* generator = static_cast<Generator*>(handle);
  if (!generator || !generator->alive()) return;
  generator->retire();
  const Options options = generator->options();
  generator->~Generator();
  release(options, generator);
}

size_t BNNSRandomGeneratorStateSize(BNNSRandomGenerator handle) noexcept {
  return guarded("BNNSRandomGeneratorStateSize", size_t{0}, [&] {
    generator_from_handle(handle);
    return kRandomStateBytes;
  });
}

int BNNSRandomGeneratorGetState(BNNSRandomGenerator handle, size_t state_size, void* state) noexcept {
  return guarded_status("BNNSRandomGeneratorGetState", [&] {
    Generator& generator = generator_from_handle(handle);
    check_state_buffer(state_size, state);
    generator.get_state(static_cast<uint8_t*>(state));
  });
}

int BNNSRandomGeneratorSetState(BNNSRandomGenerator handle, size_t state_size, void* state) noexcept {
  return guarded_status("BNNSRandomGeneratorSetState", [&] {
    Generator& generator = generator_from_handle(handle);
    check_state_buffer(state_size, state);
    generator.set_state(static_cast<const uint8_t*>(state));
  });
}

int BNNSRandomFillUniformFloat(BNNSRandomGenerator handle, BNNSNDArrayDescriptor* desc, float a, float b) noexcept {
  return fill("BNNSRandomFillUniformFloat", "uniform_float", handle, desc,
              [&](Generator& generator) { fill_uniform_float(generator, desc, a, b); });
}

int BNNSRandomFillUniformInt(BNNSRandomGenerator handle, BNNSNDArrayDescriptor* desc, int64_t a, int64_t b) noexcept {
  return fill("BNNSRandomFillUniformInt", "uniform_int", handle, desc,
              [&](Generator& generator) { fill_uniform_int(generator, desc, a, b); });
}

int BNNSRandomFillNormalFloat(BNNSRandomGenerator handle, BNNSNDArrayDescriptor* desc, float mean,
                              float stddev) noexcept {
  return fill("BNNSRandomFillNormalFloat", "normal_float", handle, desc,
              [&](Generator& generator) { fill_normal_float(generator, desc, mean, stddev); });
}

int BNNSRandomFillCategoricalFloat(BNNSRandomGenerator handle, const BNNSNDArrayDescriptor* desc,
                                   const BNNSNDArrayDescriptor* probabilities, bool log_probabilities) noexcept {
  return fill("BNNSRandomFillCategoricalFloat", "categorical_float", handle, desc,
              [&](Generator& generator) { fill_categorical_float(generator, desc, probabilities, log_probabilities); });
}
