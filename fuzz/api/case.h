// One filter and its calls, drawn from bytes. A kind of layer is written as a plausible one; vary() then makes some of
// its numbers wild; memory is given for what the descriptors say after that, to the byte, so that AddressSanitizer sees
// whatever a call touches beside it. Each call must leave its inputs as they were, and everything if it is refused.
#pragma once

#include <bnns/bnns.h>

#include <memory>
#include <optional>
#include <vector>

#include "fuzz/bytes.h"

namespace bnns::fuzz {

using Array = BNNSNDArrayDescriptor;

class Case {
 public:
  explicit Case(Bytes& bytes);
  Bytes& bytes;
  BNNSFilterParameters options{};
  size_t batch;

  // A structure of zeros that lives as long as the case.
  template <class T>
  T& make() {
    auto owned = std::make_shared<T>();
    kept_.push_back(owned);
    std::memset(owned.get(), 0, sizeof(T));
    return *owned;
  }

  BNNSDataType type();          // mostly Float32
  BNNSActivation activation();  // mostly Identity
  Array array(BNNSDataLayout layout, std::initializer_list<size_t> sizes);
  Array image(size_t width, size_t height, size_t channels);
  Array vector(size_t n) { return array(BNNSDataLayoutVector, {n}); }
  // Of any rank with these sizes, first or last index fastest.
  Array tensor(const std::vector<size_t>& sizes);

  // What vary() may change.
  void add(Array& d) { arrays_.push_back(&d); }
  void add(size_t& n) { sizes_.push_back(&n); }
  void add(float& x) { floats_.push_back(&x); }
  void add(BNNSActivation& a) {
    add_word(a.function), add(a.alpha), add(a.beta), add_word(a.iscale), add_word(a.ishift);
  }
  template <class Enumerator>
  void add_word(Enumerator& e) {
    static_assert(sizeof e == 4);
    words_.push_back(reinterpret_cast<uint32_t*>(&e));
  }
  template <class... T>
  void add(T&... all) requires(sizeof...(T) > 1) {
    (add(all), ...);
  }
  void vary();

  // Elements and bytes that `samples` of an array cover, and a stride for them; nothing where they are too many for the
  // harness. What the library must refuse gets a little memory.
  struct Extent {
    size_t stride, bytes;
  };
  std::optional<Extent> extent(const Array& d, size_t samples);

  // Memory that lives as long as the case: read by the calls, or written; nullptr where it would be too large.
  void* input(size_t size);
  void* output(size_t size);
  // A pointer and a stride for samples of an array.
  struct Samples {
    void* data = nullptr;
    size_t stride = 0;
  };
  Samples input(const Array& d, size_t samples);
  Samples output(const Array& d, size_t samples);
  // Data for a descriptor: weights, a bias, a gradient. False where they would be too large.
  bool give(Array& d);
  bool give_delta(Array& d, size_t samples, size_t* stride);  // an output

  bool too_large() const { return too_large_; }

  // Runs a call, which returns 0 or not, and checks what it may have written.
  template <class Call>
  int call(const char* name, Call&& run) {
    if (too_large_) return -1;
    before();
    const int status = run();
    after(name, status);
    return status;
  }

 private:
  struct Block {
    std::unique_ptr<char[]> data;
    size_t size;
    bool written;
    std::vector<char> before;
  };
  void* block(size_t size, bool written);
  void before();
  void after(const char* name, int status);
  void vary(Array& d);
  size_t wild(size_t old);

  bool too_large_ = false;
  size_t total_ = 0;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<Array*> arrays_;
  std::vector<size_t*> sizes_;
  std::vector<float*> floats_;
  std::vector<uint32_t*> words_;
  std::vector<Block> blocks_;
};

// A filter, or nothing: then the reason must be there.
class Filter {
 public:
  explicit Filter(BNNSFilter filter);
  ~Filter() { BNNSFilterDestroy(filter_); }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;
  explicit operator bool() const { return filter_ != nullptr; }
  operator BNNSFilter() const { return filter_; }

 private:
  BNNSFilter filter_;
};

// Forward and backward by the calls for one input; w and b where the layer has them.
void run_plain(Case& c, BNNSFilter filter, const Array& i, const Array& o, const Array* w = nullptr,
               const Array* b = nullptr);

// The kinds, by file.
using Kind = void (*)(Case&);
extern const std::vector<Kind> kWindows, kElementwise, kMovers, kProducts, kOld;

}  // namespace bnns::fuzz
