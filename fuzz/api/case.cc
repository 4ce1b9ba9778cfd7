#include "fuzz/api/case.h"

#include <bnns/bnns_extensions.h>

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/tensor/tensor.h"

namespace bnns::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 16;  // of one block; of all blocks eight times as much

constexpr BNNSDataType kTypes[] = {BNNSDataTypeFloat16, BNNSDataTypeBFloat16, BNNSDataTypeInt8,    BNNSDataTypeInt16,
                                   BNNSDataTypeInt32,   BNNSDataTypeInt64,    BNNSDataTypeUInt8,   BNNSDataTypeUInt16,
                                   BNNSDataTypeUInt32,  BNNSDataTypeUInt64,   BNNSDataTypeInt4,    BNNSDataTypeUInt1,
                                   BNNSDataTypeBoolean, BNNSDataTypeIndexed8, BNNSDataTypeIndexed2};

// A value of the enumeration that holds the old one, or any of the first few numbers.
uint32_t wild_word(Bytes& bytes, uint32_t old) {
  const uint32_t values[] = {0, 1, old + 1, old - 1, old ^ 0x8001, UINT32_MAX, bytes.byte(), bytes.number<uint32_t>()};
  return values[bytes.below(std::size(values))];
}

}  // namespace

Case::Case(Bytes& from) : bytes(from), batch(from.from(1, 3)) {
  const uint8_t how = bytes.byte();
  options.flags = how & 1;  // BNNSFlagsUseClientPtr
  options.n_threads = 1 + (how >> 1 & 1);
  if (how > 250) options.flags = bytes.number<uint32_t>();
}

BNNSDataType Case::type() {
  const size_t k = bytes.byte();
  return k < std::size(kTypes) ? kTypes[k] : BNNSDataTypeFloat32;
}

BNNSActivation Case::activation() {
  BNNSActivation a{};
  const size_t k = bytes.byte();
  a.function = static_cast<BNNSActivationFunction>(k < 36 ? k : 0);
  a.alpha = static_cast<float>(int8_t(bytes.byte())) / 32, a.beta = static_cast<float>(int8_t(bytes.byte())) / 32;
  return a;
}

Array Case::array(BNNSDataLayout layout, std::initializer_list<size_t> sizes) {
  Array d{};
  d.layout = layout, d.data_type = type();
  size_t k = 0;
  for (const size_t size : sizes) d.size[k++] = size;
  return d;
}

Array Case::image(size_t width, size_t height, size_t channels) {
  return array(BNNSDataLayoutImageCHW, {width, height, channels});
}

Array Case::tensor(const std::vector<size_t>& sizes) {
  Array d{};
  d.layout = static_cast<BNNSDataLayout>(sizes.size() << 16 | 0x8000 | bytes.below(2));
  d.data_type = type();
  std::copy(sizes.begin(), sizes.end(), d.size);
  return d;
}

size_t Case::wild(size_t old) {
  const size_t values[] = {0,
                           1,
                           2,
                           old + 1,
                           old - 1,
                           old * 2,
                           1u << 31,
                           size_t{1} << 32,
                           SIZE_MAX,
                           SIZE_MAX / 4 + 1,
                           bytes.byte(),
                           bytes.byte(),
                           bytes.number<uint16_t>(),
                           bytes.number<size_t>()};
  return values[bytes.below(std::size(values))];
}

void Case::vary(Array& d) {
  const size_t axis = bytes.below(BNNS_MAX_TENSOR_DIMENSION);
  switch (bytes.below(10)) {
    case 0:
      d.layout = static_cast<BNNSDataLayout>(wild_word(bytes, d.layout));
      break;
    case 1:
    case 2:
    case 3:
      d.size[axis % 4] = wild(d.size[axis % 4]);
      break;
    case 4:
      d.stride[axis % 4] = wild(d.size[axis % 4]);
      break;
    case 5:  // every row with a gap
      for (size_t k = 0, next = 1; k < 4 && d.size[k] != 0; ++k) d.stride[k] = next, next *= d.size[k] + axis % 3;
      break;
    case 6:
      d.data_type = type();
      break;
    case 7:
      d.data_type = static_cast<BNNSDataType>(wild_word(bytes, d.data_type));
      break;
    case 8:
      d.data_scale = bytes.number<float>(), d.data_bias = bytes.number<float>();
      break;
    default:
      d.flags = static_cast<BNNSNDArrayFlags>(axis);
  }
}

void Case::vary() {
  const size_t times = bytes.byte();
  const size_t all = arrays_.size() + sizes_.size() + floats_.size() + words_.size();
  for (size_t k = 0; k < times % 4 && all > 0; ++k) {
    size_t at = bytes.number<uint16_t>() % all;
    if (at < arrays_.size()) {
      vary(*arrays_[at]);
    } else if ((at -= arrays_.size()) < sizes_.size()) {
      *sizes_[at] = wild(*sizes_[at]);
    } else if ((at -= sizes_.size()) < floats_.size()) {
      *floats_[at] = bytes.number<float>();
    } else {
      uint32_t& word = *words_[at - floats_.size()];
      word = wild_word(bytes, word);
    }
  }
  arrays_.clear(), sizes_.clear(), floats_.clear(), words_.clear();
}

std::optional<Case::Extent> Case::extent(const Array& d, size_t samples) {
  try {
    const Tensor t = resolve(d, "fuzz", "array");
    const size_t stride = samples > 1 && bytes.chance(64) ? t.sample_stride() + bytes.below(3) : 0;
    const size_t step = stride != 0 ? stride : t.sample_stride();
    if (t.span > kMostBytes || step > kMostBytes) return std::nullopt;
    // An axis of one element may have any stride. Some kernels form the address behind it and never use it, which is no
    // harm, and an overflow of a pointer for UndefinedBehaviorSanitizer.
    for (size_t k = 0; k < t.rank; ++k) {
      if (t.stride[k] > size_t{1} << 40) return std::nullopt;
    }
    return Extent{stride, (((samples - 1) * step + t.span) * type_bits(t.type) + 7) / 8};
  } catch (const Error&) {
    return Extent{0, 256};
  }
}

void* Case::block(size_t size, bool written) {
  if (size > kMostBytes || (total_ += size) > 8 * kMostBytes) {
    too_large_ = true;
    return nullptr;
  }
  // Of exactly this size; operator new aligns it as malloc does.
  Block& made = blocks_.emplace_back(Block{std::unique_ptr<char[]>(new char[size]), size, written, {}});
  const uint8_t how = bytes.byte();
  for (size_t k = 0; k < size; ++k) made.data[k] = static_cast<char>(0xa5);
  if (!written || how % 4 == 0) {
    if (how < 224) {  // numbers of f32 near 1, small bytes for integers
      for (size_t k = 0; k < size; ++k) made.data[k] = static_cast<char>(k % 4 == 3 ? 0x3f : (k * 37 + how) % 128);
      if (how % 3 == 0) std::memset(made.data.get(), how % 2, size);
    } else {
      const std::string pattern = std::to_string(bytes.number<uint64_t>()) + std::string(1, static_cast<char>(how));
      for (size_t k = 0; k < size; ++k) made.data[k] = pattern[k % pattern.size()];
    }
  }
  return made.data.get();
}

void* Case::input(size_t size) {
  return block(size, false);
}
void* Case::output(size_t size) {
  return block(size, true);
}

Case::Samples Case::input(const Array& d, size_t samples) {
  const auto e = extent(d, samples);
  if (!e) too_large_ = true;
  return e ? Samples{input(e->bytes), e->stride} : Samples{};
}
Case::Samples Case::output(const Array& d, size_t samples) {
  const auto e = extent(d, samples);
  if (!e) too_large_ = true;
  return e ? Samples{output(e->bytes), e->stride} : Samples{};
}

bool Case::give(Array& d) {
  d.data = input(d, 1).data;
  if ((d.data_type & BNNSDataTypeIndexedBit) != 0)
    d.table_data = input(256 * 4), d.table_data_type = BNNSDataTypeFloat32;
  return d.data != nullptr;
}

bool Case::give_delta(Array& d, size_t samples, size_t* stride) {
  const Samples s = output(d, samples);
  d.data = s.data;
  if (stride != nullptr) *stride = s.stride;
  return d.data != nullptr;
}

void Case::before() {
  for (Block& each : blocks_) each.before.assign(each.data.get(), each.data.get() + each.size);
  BNNSExtClearLastError();
}

void Case::after(const char* name, int status) {
  if (status != 0 && status != -1) found(std::string(name) + " returned " + std::to_string(status));
  if (status != 0 && *BNNSExtLastError() == '\0') found(std::string(name) + " was refused without a reason");
  for (const Block& each : blocks_) {
    if (each.written && status == 0) continue;
    if (std::memcmp(each.data.get(), each.before.data(), each.size) == 0) continue;
    found(std::string(name) + (status != 0 ? " was refused and has written: " : " has written to an input ") +
          BNNSExtLastError());
  }
}

Filter::Filter(BNNSFilter filter) : filter_(filter) {
  if (filter == nullptr && *BNNSExtLastError() == '\0') found("a layer was refused without a reason");
}

void run_plain(Case& c, BNNSFilter filter, const Array& i, const Array& o, const Array* w, const Array* b) {
  const auto x = c.input(i, c.batch), y = c.output(o, c.batch);
  c.call("apply", [&] { return BNNSFilterApplyBatch(filter, c.batch, x.data, x.stride, y.data, y.stride); });
  Array dx = i, dy = o, dw = w ? *w : Array{}, db = b ? *b : Array{};
  c.add(dx, dy);
  if (w) c.add(dw);
  if (b) c.add(db);
  c.vary();
  const size_t wanted = c.bytes.byte();
  const auto g = c.input(dy, c.batch);
  dy.data = g.data;
  size_t dx_stride = 0;
  c.give_delta(dx, c.batch, &dx_stride);
  if (w) c.give_delta(dw, 1, nullptr);
  if (b) c.give_delta(db, 1, nullptr);
  c.call("backward", [&] {
    return BNNSFilterApplyBackwardBatch(filter, c.batch, wanted & 1 ? nullptr : x.data, x.stride,
                                        wanted & 2 ? nullptr : &dx, dx_stride, wanted & 4 ? nullptr : y.data, y.stride,
                                        &dy, g.stride, w && !(wanted & 8) ? &dw : nullptr,
                                        b && !(wanted & 16) ? &db : nullptr);
  });
}

}  // namespace bnns::fuzz
