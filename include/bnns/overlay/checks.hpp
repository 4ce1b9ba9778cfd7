// OpenBNNS C++ overlay: whether the arguments of a call fit the layer.
//
// The C calls see bare pointers for most arrays; the descriptors are known here only. A layer keeps the numbers it
// needs (type, elements of a sample), and every call compares: nothing is allocated unless a call is refused.
#pragma once

#include "arguments.hpp"

namespace bnns::detail {

// What an argument of a layer must be. Zeros: not known, and not compared.
struct Expected {
  BNNSDataType type{};
  std::size_t count = 0;  // elements of a sample
  std::size_t span = 0;   // and the memory they cover
  std::size_t gaps = 0;   // and how

  Expected() = default;
  Expected(const Desc& d) : type(d.data_type) {
    const SampleSize s = sampleSize(d);
    count = s.count, span = s.span, gaps = gapPattern(d, s);
  }
  Expected(const OptDesc& d) : Expected(d ? Expected(*d) : Expected()) {}
};

inline std::string typeName(BNNSDataType type) {
  const std::uint32_t bits = static_cast<std::uint32_t>(type);
  if (bits == BNNSDataTypeBoolean) return "Boolean";
  if (bits == BNNSDataTypeBFloat16) return "BFloat16";
  const char* kind = (bits & ~0xffu) == BNNSDataTypeFloatBit     ? "Float"
                     : (bits & ~0xffu) == BNNSDataTypeIntBit     ? "Int"
                     : (bits & ~0xffu) == BNNSDataTypeUIntBit    ? "UInt"
                     : (bits & ~0xffu) == BNNSDataTypeIndexedBit ? "Indexed"
                                                                 : "data type ";
  return kind + std::to_string(*kind == 'd' ? bits : bits & 0xffu);
}

// "input has", "labels have".
inline std::string subject(const char* label, const char* one, const char* many) {
  const std::string name = label;
  return name + (name.ends_with('s') ? many : one);
}

// "1 sample", "2 samples".
inline std::string counted(std::size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

inline void* requireData(const Where& where, const char* label, const Argument& a) {
  if (!a.descriptor().data) badArray(where, std::string(label) + ": the descriptor has no data");
  return a.descriptor().data;
}

[[noreturn]] inline void tooFewSamples(const Where& where, const char* label, std::size_t samples, std::size_t batch) {
  badArray(where, subject(label, " holds ", " hold ") + counted(samples, "sample") + ", the batch is " +
                      std::to_string(batch));
}
inline void requireCapacity(const Where& where, const char* label, const Argument& a, std::size_t batch) {
  if (a.capacity() < batch) tooFewSamples(where, label, a.capacity(), batch);
}

// Of weights and other arrays that the samples share: there is one.
inline constexpr std::size_t noBatch = static_cast<std::size_t>(-1);
inline bool holds(const Argument& a, std::size_t batch) noexcept {
  return a.capacity() >= (batch == noBatch ? 1 : batch);
}

// The first thing that does not fit, in words.
[[noreturn]] inline void misfit(const Where& where, const char* label, const Argument& a, const Expected& e,
                                std::size_t batch, bool compareType) {
  const SampleSize& s = a.sampleSize();
  if (compareType && e.type != 0 && a.descriptor().data_type != e.type) {
    badArray(where, subject(label, " is ", " are ") + typeName(a.descriptor().data_type) + ", the layer takes " +
                        typeName(e.type));
  }
  if (s.count != e.count && e.count != 0) {
    badArray(where, subject(label, " has ", " have ") + counted(s.count, "element") +
                        (batch == noBatch ? ", the layer takes " : " a sample, the layer takes ") +
                        std::to_string(e.count));
  }
  if (!holds(a, batch) && batch == noBatch) badArray(where, subject(label, " holds ", " hold ") + "0 samples");
  if (!holds(a, batch)) tooFewSamples(where, label, a.capacity(), batch);
  badArray(where, subject(label, " spreads ", " spread ") + std::to_string(s.count) + " elements over " +
                      std::to_string(s.span) + ", the layer over " + std::to_string(e.span) +
                      ": the strides of the shapes differ");
}

// What the C call takes of an array that it knows by its data only. It uses the strides of the layer, so that the type,
// the count and the extent in memory must be the layer's.
struct Data {
  void* data = nullptr;
  std::size_t stride = 0;
};
inline Data fit(const Where& where, const char* label, const Argument& a, const Expected& e, std::size_t batch) {
  const Desc& d = a.descriptor();
  const SampleSize& s = a.sampleSize();
  const bool fits = (d.data_type == e.type || e.type == 0) &&
                    ((s.count == e.count && s.span == e.span && gapPattern(d, s) == e.gaps) || e.count == 0) &&
                    holds(a, batch);
  if (!fits) misfit(where, label, a, e, batch, true);
  return {d.data, s.stride};
}
inline Data fitting(const Where& where, const char* label, const Argument& a, const Expected& e, std::size_t batch) {
  requireData(where, label, a);
  return fit(where, label, a, e, batch);
}
// The same of an array that some layers do not read: without data it is left out.
inline Data fittingIfGiven(const Where& where, const char* label, const Argument& a, const Expected& e,
                           std::size_t batch) {
  if (!a.descriptor().data) return {};
  return fit(where, label, a, e, batch);
}

// A gradient, which the C call takes with its descriptor: layout, strides and type may be its own.
struct Described {
  Desc* descriptor = nullptr;  // the C calls take pointers to mutable descriptors but write through their data only
  std::size_t stride = 0;
};
inline Described described(const Where& where, const char* label, const Argument& a, const Expected& e,
                           std::size_t batch = noBatch) {
  requireData(where, label, a);
  const SampleSize& s = a.sampleSize();
  if ((s.count != e.count && e.count != 0) || !holds(a, batch)) misfit(where, label, a, e, batch, false);
  return {const_cast<Desc*>(&a.descriptor()), s.stride};
}
inline Described describedIfGiven(const Where& where, const char* label, const OptOutput& a, const Expected& e,
                                  std::size_t batch = noBatch) {
  if (!a) return {};
  return described(where, label, a, e, batch);
}

// ---- Functions without a layer and without a batch size

struct Named {
  const char* label;
  const Argument& argument;
};

// A function that has no meaning for several samples.
inline void requireOneSample(const Where& where, const char* label, std::size_t batchSize) {
  if (batchSize == 1) return;
  badArray(where, subject(label, " holds ", " hold ") + std::to_string(batchSize) + " samples, the function takes one" +
                      (batchSize == 0 ? "" : ": make the batch an axis of the shape"));
}
inline void requireOneSample(const Where& where, std::initializer_list<Named> arguments) {
  for (const Named& n : arguments) requireOneSample(where, n.label, n.argument.batchSize());
}

// The batch that all arguments stand for.
inline std::size_t commonBatch(const Where& where, std::initializer_list<Named> arguments) {
  const Named& first = *arguments.begin();
  for (const Named& n : arguments) {
    if (n.argument.batchSize() == first.argument.batchSize()) continue;
    badArray(where, subject(first.label, " holds ", " hold ") + counted(first.argument.batchSize(), "sample") + ", " +
                        n.label + " " + std::to_string(n.argument.batchSize()));
  }
  return first.argument.batchSize();
}

// One sample of an argument.
inline Desc sample(const Argument& a, std::size_t index) {
  Desc d = a.descriptor();
  if (index > 0) {
    d.data = static_cast<std::byte*>(d.data) + index * a.sampleSize().stride * bytesPerElement(d.data_type, "sample");
  }
  return d;
}

// All samples as one vector, where they lie in memory without gaps.
inline std::optional<Desc> flattened(const Argument& a) {
  const SampleSize& s = a.sampleSize();
  if (s.count != s.stride) return {};
  Desc d = a.descriptor();
  d.layout = BNNSDataLayoutVector;
  for (std::size_t k = 0; k < 8; ++k) d.size[k] = d.stride[k] = 0;
  d.size[0] = s.count * a.batchSize();
  return d;
}

// A function of one array after the other. body(input, output) takes descriptors of a sample.
template <class Body>
void eachSample(const Where& where, const Named& in, const Named& out, Body&& body) {
  const std::size_t batch = commonBatch(where, {in, out});
  for (std::size_t i = 0; i < batch; ++i) body(sample(in.argument, i), sample(out.argument, i));
}

// A function of each element: one call for all samples where both arrays have one shape without gaps.
template <class Body>
void eachElement(const Where& where, const Named& in, const Named& out, Body&& body) {
  const Desc &x = in.argument.descriptor(), &y = out.argument.descriptor();
  bool sameShape =
      in.argument.batchSize() > 1 && in.argument.batchSize() == out.argument.batchSize() && x.layout == y.layout;
  for (std::size_t k = 0; k < 8; ++k) sameShape = sameShape && x.size[k] == y.size[k];
  if (sameShape) {
    const std::optional<Desc> allX = flattened(in.argument), allY = flattened(out.argument);
    if (allX && allY) return body(*allX, *allY);
  }
  eachSample(where, in, out, body);
}

}  // namespace bnns::detail
