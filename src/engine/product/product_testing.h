// What the tests of matmul, contraction and Gram share: batches of tensors in any layout and type between guard pages,
// and a contraction that is run through the C interface and compared with the reference, exactly.
#pragma once

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "src/engine/product/product_ref.h"
#include "tests/support/layouts.h"

namespace bnns::testing {

// A batch of tensors. Elements are addressed by logical index (spec 1.2: a row-major matrix is indexed (row, column)).
class Samples {
 public:
  Samples(BNNSDataLayout layout, const std::vector<size_t>& logical, BNNSDataType type, size_t unit, size_t pad,
          size_t batch, size_t gap)
      : layout_(layout),
        shape_(layout, size_order(layout, logical), type, unit, pad),
        logical_(logical),
        batch_(batch),
        element_((unsigned(type) & 0x7fff) / 8),
        span_(shape_.bytes() / element_),
        stride_(span_ + gap) {
    const size_t bytes = batch ? ((batch - 1) * stride_ + span_) * element_ : 0;
    memory_ = std::make_unique<Guarded<unsigned char>>(bytes);
    std::memset(memory_->data(), 0xcd, bytes);
  }

  void* data() { return memory_->data(); }
  size_t bytes() const { return memory_->size(); }
  size_t stride() const { return stride_; }
  size_t batch() const { return batch_; }
  BNNSDataType type() const { return shape_.type(); }
  const std::vector<size_t>& logical() const { return logical_; }
  BNNSNDArrayDescriptor descriptor(bool accumulate = false) {
    BNNSNDArrayDescriptor d = shape_.descriptor();
    d.data = data();
    d.flags = accumulate ? BNNSNDArrayFlagBackpropAccumulate : BNNSNDArrayFlagBackpropSet;
    return d;
  }

  double get(size_t n, const Coordinates& at) const {
    const unsigned char* p = memory_->data() + offset(n, at);
    if (element_ == 4) return load<float>(p);
    if (element_ == 1) return load<int8_t>(p);
    return type() == BNNSDataTypeFloat16 ? half_to_float(load<uint16_t>(p)) : bfloat16_to_float(load<uint16_t>(p));
  }
  void set(size_t n, const Coordinates& at, double value) {
    unsigned char* p = memory_->data() + offset(n, at);
    if (element_ == 4) return store(p, float(value));
    if (element_ == 1) return store(p, int8_t(value));
    store(p, type() == BNNSDataTypeFloat16 ? float_to_half(float(value)) : float_to_bfloat16(float(value)));
  }
  // What the type makes of a value.
  double rounded(double value) const {
    if (element_ == 4) return float(value);
    if (element_ == 1) return value;
    return type() == BNNSDataTypeFloat16 ? half_to_float(float_to_half(float(value)))
                                         : bfloat16_to_float(float_to_bfloat16(float(value)));
  }
  template <class F>
  void for_each(F&& f) {
    for (size_t n = 0; n < batch_; ++n) {
      for_each_coordinate(logical_, [&](const Coordinates& at) { f(n, at); });
    }
  }
  void fill(double value) {
    for_each([&](size_t n, const Coordinates& at) { set(n, at, value); });
  }
  void fill_integers(Random& random, int bound) {
    for_each([&](size_t n, const Coordinates& at) { set(n, at, random.integer(-bound, bound)); });
  }
  // As a tensor of the reference: the letters, then '#' for the batch. Without a batch, '#' is left out.
  ref::Lettered lettered(const std::string& letters, bool with_batch) {
    std::vector<size_t> size = logical_;
    if (letters.empty()) size.clear();  // a number, whatever its layout
    if (with_batch) size.push_back(batch_);
    ref::Lettered t(letters + (with_batch ? "#" : ""), size);
    size_t i = 0;
    for_each([&](size_t n, const Coordinates& at) { t.value[i++] = get(n, at); });
    return t;
  }
  bool gaps_untouched() const {
    std::vector<bool> used(bytes(), false);
    for (size_t n = 0; n < batch_; ++n) {
      for_each_coordinate(logical_, [&](const Coordinates& at) {
        for (size_t b = 0; b < element_; ++b) used[offset(n, at) + b] = true;
      });
    }
    for (size_t i = 0; i < bytes(); ++i) {
      if (!used[i] && memory_->data()[i] != 0xcd) return false;
    }
    return true;
  }
  std::vector<unsigned char> snapshot() const { return {memory_->data(), memory_->data() + bytes()}; }

 private:
  static std::vector<size_t> size_order(BNNSDataLayout layout, std::vector<size_t> logical) {
    if (layout == BNNSDataLayoutRowMajorMatrix) std::swap(logical[0], logical[1]);
    return logical;
  }
  size_t offset(size_t n, const Coordinates& at) const {
    Coordinates c = at;
    if (layout_ == BNNSDataLayoutRowMajorMatrix) std::swap(c[0], c[1]);
    return (n * stride_ + shape_.offset(c)) * element_;
  }
  template <class T>
  static T load(const unsigned char* p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  template <class T>
  static void store(unsigned char* p, T value) {
    std::memcpy(p, &value, sizeof value);
  }

  BNNSDataLayout layout_;
  LayoutTensor shape_;  // one sample: addresses only
  std::vector<size_t> logical_;
  size_t batch_, element_, span_, stride_;
  std::unique_ptr<Guarded<unsigned char>> memory_;
};

// A call in words: which tensors, which letters.
struct ProductCase {
  std::string letters[3];
  Samples *a = nullptr, *b = nullptr, *c = nullptr;  // b null: one operand, or self
  bool self = false;
  int weights = -1;  // 0 or 1: that operand has one sample
  float alpha = 1, beta = 0;
};

inline ref::Lettered one() {
  ref::Lettered t("", {});
  t.value = {1.0};
  return t;
}

// C equals the reference, rounded to its type; exact data are the caller's business. old is C before the call.
inline ::testing::AssertionResult equals(Samples& got, const ref::Lettered& want) {
  size_t i = 0;
  ::testing::AssertionResult result = ::testing::AssertionSuccess();
  got.for_each([&](size_t n, const Coordinates& at) {
    const double g = got.get(n, at), w = got.rounded(want.value[i++]);
    if (result && !(g == w)) {
      result = ::testing::AssertionFailure()
               << "sample " << n << ", element " << i - 1 << ": got " << g << ", want " << w;
    }
  });
  if (result && !got.gaps_untouched()) result = ::testing::AssertionFailure() << "a gap was written";
  return result;
}

// Runs forward and compares.
inline ::testing::AssertionResult forward_equals(BNNSFilter filter, const ProductCase& p) {
  ref::Lettered a = p.a->lettered(p.letters[0], p.weights != 0);
  ref::Lettered b = p.b      ? p.b->lettered(p.letters[1], p.weights != 1)
                    : p.self ? p.a->lettered(p.letters[1], true)
                             : one();
  Random random(5);
  if (p.beta != 0) {
    p.c->fill_integers(random, 3);
  } else {
    p.c->fill(NAN);  // overwrite must not read it (BC13)
  }
  ref::Lettered c = p.c->lettered(p.letters[2], true);
  if (p.beta == 0) c.value.assign(c.value.size(), 0.0);
  ref::contract(p.alpha, a, b, c);
  const size_t batch = p.c->batch();
  const bool two = p.b && p.weights < 0;
  Samples* input = p.weights == 0 ? p.b : p.a;
  const int status =
      two ? BNNSFilterApplyTwoInputBatch(filter, batch, p.a->data(), p.a->stride(), p.b->data(), p.b->stride(),
                                         p.c->data(), p.c->stride())
          : BNNSFilterApplyBatch(filter, batch, input->data(), input->stride(), p.c->data(), p.c->stride());
  if (status != 0) return ::testing::AssertionFailure() << "forward failed: " << BNNSExtLastError();
  return equals(*p.c, c);
}

// Runs backward with dc (in the place of C) and compares both gradients; da and db have the shapes of a and b.
inline ::testing::AssertionResult backward_equals(BNNSFilter filter, const ProductCase& p, Samples& dc, Samples& da,
                                                  Samples* db, bool accumulate) {
  ref::Lettered a = p.a->lettered(p.letters[0], p.weights != 0);
  ref::Lettered b = p.b      ? p.b->lettered(p.letters[1], p.weights != 1)
                    : p.self ? p.a->lettered(p.letters[1], true)
                             : one();
  ref::Lettered g = dc.lettered(p.letters[2], true);
  Random random(6);
  for (Samples* d : {&da, db}) {
    if (!d) continue;
    if (accumulate) {
      d->fill_integers(random, 3);
    } else {
      d->fill(NAN);
    }
  }
  ref::Lettered want_a = da.lettered(p.letters[0], p.weights != 0);
  ref::Lettered want_b = db       ? db->lettered(p.letters[1], p.weights != 1)
                         : p.self ? da.lettered(p.letters[1], true)
                                  : one();
  for (ref::Lettered* t : {&want_a, &want_b}) {
    if (!accumulate || (t == &want_b && p.self)) t->value.assign(t->value.size(), 0.0);
  }
  ref::contract_backward(p.alpha, a, b, g, want_a, want_b);
  if (p.self) {  // both are gradients of the same tensor, element by element
    for (size_t i = 0; i < want_a.value.size(); ++i) want_a.value[i] += want_b.value[i];
  }
  const size_t batch = p.c->batch();
  BNNSNDArrayDescriptor g_desc = dc.descriptor(), a_desc = da.descriptor(accumulate), b_desc = {};
  if (db) b_desc = db->descriptor(accumulate);
  int status;
  if (p.b && p.weights < 0) {
    status = BNNSFilterApplyBackwardTwoInputBatch(filter, batch, p.a->data(), p.a->stride(), &a_desc, da.stride(),
                                                  p.b->data(), p.b->stride(), &b_desc, db->stride(), nullptr, 0,
                                                  &g_desc, dc.stride(), nullptr, nullptr);
  } else {
    const bool a_trained = p.weights == 0;
    Samples* input = a_trained ? p.b : p.a;
    status = BNNSFilterApplyBackwardBatch(filter, batch, input->data(), input->stride(), a_trained ? &b_desc : &a_desc,
                                          (a_trained ? db : &da)->stride(), nullptr, 0, &g_desc, dc.stride(),
                                          p.weights < 0 ? nullptr
                                          : a_trained   ? &a_desc
                                                        : &b_desc,
                                          nullptr);
  }
  if (status != 0) return ::testing::AssertionFailure() << "backward failed: " << BNNSExtLastError();
  const ::testing::AssertionResult result = equals(da, want_a);
  if (!result) return ::testing::AssertionFailure() << "dA: " << result.message();
  if (!db) return ::testing::AssertionSuccess();
  const ::testing::AssertionResult second = equals(*db, want_b);
  if (!second) return ::testing::AssertionFailure() << "dB: " << second.message();
  return ::testing::AssertionSuccess();
}

}  // namespace bnns::testing
