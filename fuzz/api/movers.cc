// Permute, padding, resize, Gram, embedding.
#include "fuzz/api/case.h"

namespace bnns::fuzz {
namespace {

void permute(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersPermute>();
  std::vector<size_t> sizes(b.from(1, 5)), to(sizes.size());
  for (size_t& n : sizes) n = b.from(1, 5);
  for (size_t k = 0; k < sizes.size(); ++k) p.permutation[k] = k;
  for (size_t k = sizes.size(); k > 1; --k) std::swap(p.permutation[k - 1], p.permutation[b.below(k)]);
  for (size_t k = 0; k < sizes.size(); ++k) to[k] = sizes[p.permutation[k]];
  p.i_desc = c.tensor(sizes), p.o_desc = c.tensor(to), p.o_desc.data_type = p.i_desc.data_type;
  c.add(p.i_desc, p.o_desc, p.permutation[0], p.permutation[1], p.permutation[2]);
  c.vary();
  const Filter filter(BNNSFilterCreateLayerPermute(&p, &c.options));
  if (!filter) return;
  const auto x = c.input(p.i_desc, c.batch), y = c.output(p.o_desc, c.batch);
  c.call("permute", [&] { return BNNSFilterApplyBatch(filter, c.batch, x.data, x.stride, y.data, y.stride); });
  Array dx = p.i_desc, dy = p.o_desc;
  c.add(dx, dy);
  c.vary();
  size_t dx_stride = 0;
  const auto g = c.input(dy, c.batch);
  dy.data = g.data;
  c.give_delta(dx, c.batch, &dx_stride);
  c.call("permute backward",
         [&] { return BNNSPermuteFilterApplyBackwardBatch(filter, c.batch, &dx, dx_stride, &dy, g.stride); });
}

void padding(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersPadding>();
  std::vector<size_t> sizes(b.from(1, 4)), to(sizes.size());
  for (size_t k = 0; k < sizes.size(); ++k) {
    sizes[k] = b.from(1, 6);
    p.padding_size[k][0] = b.below(4), p.padding_size[k][1] = b.below(4);
    to[k] = sizes[k] + p.padding_size[k][0] + p.padding_size[k][1];
    c.add(p.padding_size[k][0], p.padding_size[k][1]);
  }
  p.i_desc = c.tensor(sizes), p.o_desc = p.i_desc;
  std::copy(to.begin(), to.end(), p.o_desc.size);
  p.padding_mode = static_cast<BNNSPaddingMode>(b.below(3)), p.padding_value = b.number<uint32_t>();
  c.add(p.i_desc, p.o_desc), c.add_word(p.padding_mode);
  c.vary();
  const Filter filter(BNNSFilterCreateLayerPadding(&p, &c.options));
  if (filter) run_plain(c, filter, p.i_desc, p.o_desc);
}

void resize(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersResize>();
  p.method = static_cast<BNNSInterpolationMethod>(b.below(2));
  p.i_desc = c.image(b.from(1, 9), b.from(1, 9), b.from(1, 3)), p.o_desc = p.i_desc;
  p.o_desc.size[0] = b.from(1, 20), p.o_desc.size[1] = b.from(1, 20);
  p.align_corners = b.chance(128);
  c.add(p.i_desc, p.o_desc), c.add_word(p.method);
  c.vary();
  const Filter filter(BNNSFilterCreateLayerResize(&p, &c.options));
  if (filter) run_plain(c, filter, p.i_desc, p.o_desc);
}

void gram(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersGram>();
  const size_t channels = b.from(1, 9);
  p.alpha = 1;
  p.i_desc = c.image(b.from(1, 5), b.from(1, 5), channels), p.o_desc = c.tensor({channels, channels});
  c.add(p.i_desc, p.o_desc, p.alpha);
  c.vary();
  const Filter filter(BNNSFilterCreateLayerGram(&p, &c.options));
  if (filter) run_plain(c, filter, p.i_desc, p.o_desc);
}

void embedding(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersEmbedding>();
  const size_t width = b.from(1, 9), count = b.from(1, 9);
  p.i_desc = c.vector(count), p.i_desc.data_type = b.chance(128) ? BNNSDataTypeUInt32 : BNNSDataTypeUInt8;
  // Many rows, so that the bytes of the indices name some.
  p.dictionary = c.array(BNNSDataLayout2DLastMajor, {width, b.chance(128) ? 256 : b.from(1, 20)});
  p.o_desc = c.array(BNNSDataLayout2DLastMajor, {width, count}), p.o_desc.data_type = p.dictionary.data_type;
  p.padding_idx = b.chance(128) ? SIZE_MAX : b.byte();
  p.max_norm = b.chance(64) ? 1.0f : 0.0f, p.norm_type = static_cast<float>(b.below(4));
  p.flags = static_cast<BNNSEmbeddingFlags>(b.below(2));
  c.add(p.i_desc, p.o_desc, p.dictionary, p.padding_idx, p.max_norm, p.norm_type), c.add_word(p.flags);
  c.vary();
  p.dictionary.data = p.max_norm != 0 ? c.output(p.dictionary, 1).data : c.input(p.dictionary, 1).data;
  const Filter filter(BNNSFilterCreateLayerEmbedding(&p, &c.options));
  if (filter) run_plain(c, filter, p.i_desc, p.o_desc, &p.dictionary);
}

}  // namespace

const std::vector<Kind> kMovers = {permute, padding, resize, gram, embedding};

}  // namespace bnns::fuzz
