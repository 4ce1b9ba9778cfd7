// A multi-head attention for tests: every tensor in a layout, stride and type of its own, the same values in the
// reference, and calls that bring results back in logical order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/ops/attention/attention_ref.h"
#include "tests/support/layouts.h"
#include "tests/support/testing.h"

namespace bnns::testing {

using FilterHandle = std::unique_ptr<void, decltype(&BNNSFilterDestroy)>;
using Values = std::vector<double>;

// How a tensor lies in memory. order 0: the layout in which the last index is fastest, 1: the first; others by rank.
struct Memory {
  unsigned order = 0;
  BNNSDataType type = BNNSDataTypeFloat32;
  size_t unit = 1, pad = 0;
};

// A batch of matrices, or one tensor without a batch, with exact bounds and guarded ends.
class AttentionTensor {
 public:
  // (rows, columns), batch times.
  static AttentionTensor target(size_t batch, size_t rows, size_t columns, const Memory& m) {
    AttentionTensor t;
    t.logical_ = {batch, rows, columns};
    const BNNSDataLayout layouts[] = {BNNSDataLayout2DFirstMajor, BNNSDataLayout2DLastMajor,
                                      BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutColumnMajorMatrix};
    t.layout_ = layouts[m.order % 4];
    t.has_batch_ = true;
    switch (m.order % 4) {
      case 0:
        t.make(BNNSDataLayout3DFirstMajor, {batch, rows, columns}, {0, 1, 2}, m);
        break;
      case 2:
        t.make(BNNSDataLayout3DLastMajor, {columns, rows, batch}, {2, 1, 0}, m);
        break;
      default:
        t.make(BNNSDataLayout3DLastMajor, {rows, columns, batch}, {2, 0, 1}, m);
    }
    return t;
  }
  // (d, k, h)
  static AttentionTensor weights(size_t d, size_t k, size_t h, const Memory& m) {
    const BNNSDataLayout layouts[] = {BNNSDataLayout3DLastMajor, BNNSDataLayout3DFirstMajor, BNNSDataLayoutMHA_DHK,
                                      BNNSDataLayoutImageCHW};
    return plain(layouts[m.order % 4], {d, k, h}, {0, 1, 2}, m);
  }
  // (rows, columns)
  static AttentionTensor matrix(size_t rows, size_t columns, const Memory& m) {
    if (m.order % 4 == 2) return plain(BNNSDataLayoutRowMajorMatrix, {columns, rows}, {1, 0}, m);
    const BNNSDataLayout layouts[] = {
        BNNSDataLayout2DFirstMajor, BNNSDataLayout2DLastMajor, {}, BNNSDataLayoutColumnMajorMatrix};
    return plain(layouts[m.order % 4], {rows, columns}, {0, 1}, m);
  }
  static AttentionTensor vector(size_t n, const Memory& m) { return plain(BNNSDataLayoutVector, {n}, {0}, m); }
  static AttentionTensor generic(std::vector<size_t> size, const Memory& m) {
    const unsigned layout = unsigned(size.size()) << 16 | (m.order % 2 ? 0x8000u : 0x8001u);
    std::vector<size_t> axes;
    for (size_t k = 0; k < size.size(); ++k) axes.push_back(k);
    return plain(static_cast<BNNSDataLayout>(layout), size, axes, m);
  }

  size_t count() const { return tensor_->count(); }
  void* data() { return tensor_->data(); }
  BNNSDataType type() const { return tensor_->type(); }
  size_t batch_stride() const { return stride_of(0); }
  bool gaps_untouched() const { return tensor_->gaps_untouched(); }
  std::vector<unsigned char> snapshot() const { return tensor_->snapshot(); }

  BNNSNDArrayDescriptor descriptor() {
    BNNSNDArrayDescriptor d = tensor_->descriptor();
    if (!has_batch_) return d;
    // One sample: what is left without the batch, which is always the slowest axis.
    BNNSNDArrayDescriptor sample = d;
    sample.layout = layout_;
    const size_t first = layout_ == BNNSDataLayout2DFirstMajor ? 1 : 0;
    sample.size[0] = d.size[first], sample.size[1] = d.size[first + 1], sample.size[2] = 0;
    sample.stride[2] = 0;
    return sample;
  }

  // Values in logical order, as the type holds them.
  Values set(const Values& values) {
    size_t i = 0;
    Values stored;
    each([&](const Coordinates& at) { stored.push_back(tensor_->set(at, values[i++])); });
    return stored;
  }
  Values get() const {
    Values values;
    each([&](const Coordinates& at) { values.push_back(tensor_->get(at)); });
    return values;
  }

 private:
  static AttentionTensor plain(BNNSDataLayout layout, std::vector<size_t> size, std::vector<size_t> axes,
                               const Memory& m) {
    AttentionTensor t;
    t.layout_ = layout;
    for (size_t axis : axes) t.logical_.push_back(size[axis]);
    t.make(layout, size, axes, m);
    return t;
  }
  // axes[l] is the size axis of logical index l.
  void make(BNNSDataLayout layout, std::vector<size_t> size, std::vector<size_t> axes, const Memory& m) {
    axes_ = axes;
    tensor_ = std::make_shared<LayoutTensor>(layout, size, m.type, m.unit, m.pad);
  }
  size_t stride_of(size_t logical) const {
    Coordinates at(axes_.size(), 0);
    if (logical_[logical] == 1) return 0;  // one sample: any stride will do
    at[axes_[logical]] = 1;
    return tensor_->offset(at);
  }
  template <class F>
  void each(F&& f) const {
    // for_each_coordinate runs the first index fastest: give it the logical indices backwards.
    for_each_coordinate({logical_.rbegin(), logical_.rend()}, [&](const Coordinates& back) {
      Coordinates at(axes_.size());
      for (size_t l = 0; l < axes_.size(); ++l) at[axes_[l]] = back[axes_.size() - 1 - l];
      f(at);
    });
  }

  BNNSDataLayout layout_ = {};
  bool has_batch_ = false;
  std::vector<size_t> logical_, axes_;
  std::shared_ptr<LayoutTensor> tensor_;
};

struct AttentionOptions {
  size_t batch = 2, queries = 3, keys = 4, heads = 2, key_size = 3, value_size = 2, model = 5, key_model = 4,
         value_model = 6;
  bool bias = true, rows = false, zero_row = false, key_mask = false;
  int add = 0;  // 0, or the rank of X
  bool add_bool = false;
  float dropout = 0;
  uint32_t seed = 17;
  Memory memory;      // of everything
  bool self = false;  // K and V are Q
  size_t threads = 1;

  std::string text() const {
    return "b" + std::to_string(batch) + " l" + std::to_string(queries) + " s" + std::to_string(keys) + " h" +
           std::to_string(heads) + " k" + std::to_string(key_size) + " v" + std::to_string(value_size) + " model" +
           std::to_string(model) + "," + std::to_string(key_model) + "," + std::to_string(value_model) +
           (bias ? " bias" : "") + (rows ? " rows" : "") + (zero_row ? " zero" : "") + (key_mask ? " mask" : "") +
           " add" + std::to_string(add) + (add_bool ? "b" : "") + " order" + std::to_string(memory.order) + " type" +
           std::to_string(unsigned(memory.type)) + " unit" + std::to_string(memory.unit) + " pad" +
           std::to_string(memory.pad);
  }
};

class AttentionSetup {
 public:
  AttentionOptions o;
  ref::Attention a;  // the values
  AttentionTensor q, k, v, y, wq, wk, wv, wo, bq, bk, bv, bo, key_row, value_row, mask, add;
  Values dy_values;

  AttentionSetup(const AttentionOptions& options, uint64_t seed) : o(options) {
    Random random(seed);
    const auto normals = [&](size_t n, double scale) {
      Values values(n);
      for (double& x : values) x = scale * random.normal();
      return values;
    };
    const Memory& m = o.memory;
    a.batch = o.batch, a.queries = o.queries, a.keys = o.keys, a.heads = o.heads, a.key_size = o.key_size;
    a.value_size = o.value_size, a.model = o.model, a.key_model = o.key_model, a.value_model = o.value_model;
    a.zero_row = o.zero_row;
    q = AttentionTensor::target(o.batch, o.queries, o.model, m), a.q = q.set(normals(q.count(), 1));
    k = AttentionTensor::target(o.batch, o.keys, o.key_model, m), a.k = k.set(normals(k.count(), 1));
    v = AttentionTensor::target(o.batch, o.keys, o.value_model, m), a.v = v.set(normals(v.count(), 1));
    if (o.self) k = v = q, a.k = a.v = a.q;
    y = AttentionTensor::target(o.batch, o.queries, o.model, m);
    const auto weights = [&](AttentionTensor* w, size_t d, size_t n) {
      *w = AttentionTensor::weights(d, n, o.heads, m);
      return w->set(normals(w->count(), 1 / std::sqrt(double(d))));
    };
    a.wq = weights(&wq, o.model, o.key_size), a.wk = weights(&wk, o.key_model, o.key_size);
    a.wv = weights(&wv, o.value_model, o.value_size);
    wo = AttentionTensor::matrix(o.heads * o.value_size, o.model, m);
    a.wo = wo.set(normals(wo.count(), 1 / std::sqrt(double(o.heads * o.value_size))));
    const auto pairs = [&](AttentionTensor* t, size_t n) {
      *t = AttentionTensor::matrix(n, o.heads, m);
      return t->set(normals(t->count(), 0.5));
    };
    if (o.bias) {
      a.bq = pairs(&bq, o.key_size), a.bk = pairs(&bk, o.key_size), a.bv = pairs(&bv, o.value_size);
      bo = AttentionTensor::vector(o.model, {0, m.type, m.unit, m.pad}), a.bo = bo.set(normals(o.model, 0.5));
    }
    if (o.rows) a.key_row = pairs(&key_row, o.key_size), a.value_row = pairs(&value_row, o.value_size);
    if (o.key_mask) {
      mask = AttentionTensor::generic({o.batch, o.keys}, {0, BNNSDataTypeBoolean, m.unit, m.pad});
      Values flags(o.batch * o.keys);
      for (size_t i = 0; i < flags.size(); ++i) flags[i] = random.below(3) == 0;
      for (size_t j = 0; j < o.keys; ++j) flags[j] = 1;  // the first sample sees nothing
      mask.set(flags);
      for (double f : flags) a.key_mask.push_back(char(f));
    }
    if (o.add) set_add(random);
    dy_values = normals(o.batch * o.queries * o.model, 1);
  }

  BNNSLayerParametersMultiheadAttention layer() {
    BNNSLayerParametersMultiheadAttention layer;
    std::memset(static_cast<void*>(&layer), 0, sizeof layer);
    layer.query.target_desc = without_data(q), layer.key.target_desc = without_data(k);
    layer.value.target_desc = without_data(v), layer.output.target_desc = without_data(y);
    layer.query.weights = wq.descriptor(), layer.key.weights = wk.descriptor();
    layer.value.weights = wv.descriptor(), layer.output.weights = wo.descriptor();
    if (o.bias) {
      layer.query.bias = bq.descriptor(), layer.key.bias = bk.descriptor();
      layer.value.bias = bv.descriptor(), layer.output.bias = bo.descriptor();
    }
    if (o.rows) layer.key_attn_bias = key_row.descriptor(), layer.value_attn_bias = value_row.descriptor();
    layer.add_zero_attn = o.zero_row;
    layer.dropout = o.dropout, layer.seed = o.seed;
    return layer;
  }

  FilterHandle make() {
    const BNNSLayerParametersMultiheadAttention parameters = layer();
    BNNSFilterParameters options;
    std::memset(&options, 0, sizeof options);
    options.n_threads = o.threads;
    FilterHandle filter(BNNSFilterCreateLayerMultiheadAttention(&parameters, &options), &BNNSFilterDestroy);
    EXPECT_TRUE(filter) << BNNSExtLastError();
    return filter;
  }

  int forward(BNNSFilter filter, size_t* cache_size = nullptr, void* cache = nullptr, size_t* workspace_size = nullptr,
              void* workspace = nullptr) {
    BNNSNDArrayDescriptor keys, x;
    return BNNSApplyMultiheadAttention(filter, o.batch, q.data(), q.batch_stride(), k.data(), k.batch_stride(),
                                       mask_descriptor(&keys), o.key_mask ? mask.batch_stride() : 0, v.data(),
                                       v.batch_stride(), y.data(), y.batch_stride(), add_descriptor(&x), cache_size,
                                       cache, workspace_size, workspace);
  }

  size_t cache_bytes(BNNSFilter filter) {
    size_t bytes = 0;
    EXPECT_EQ(forward(filter, &bytes), 0) << BNNSExtLastError();
    EXPECT_GE(bytes, 1u);
    return bytes;
  }

  const BNNSNDArrayDescriptor* mask_descriptor(BNNSNDArrayDescriptor* room) {
    if (!o.key_mask) return nullptr;
    const BNNSNDArrayDescriptor both = mask.descriptor();
    *room = vector_descriptor(o.keys, both.data, BNNSDataTypeBoolean);
    room->stride[0] = both.stride[0];
    return room;
  }
  const BNNSNDArrayDescriptor* add_descriptor(BNNSNDArrayDescriptor* room) {
    if (!o.add) return nullptr;
    *room = add.descriptor();
    return room;
  }

 private:
  static BNNSNDArrayDescriptor without_data(AttentionTensor& t) {
    BNNSNDArrayDescriptor d = t.descriptor();
    d.data = nullptr;
    return d;
  }
  void set_add(Random& random) {
    const BNNSDataType type = o.add_bool ? BNNSDataTypeBoolean : o.memory.type;
    const Memory m{o.memory.order, type, o.memory.unit, o.memory.pad};
    std::vector<size_t> size = {o.queries, o.keys};
    if (o.add >= 3) size.insert(size.begin(), o.heads);
    if (o.add >= 4) size.insert(size.begin(), o.batch);
    add = o.add == 2 ? AttentionTensor::matrix(o.queries, o.keys, m) : AttentionTensor::generic(size, m);
    Values values(add.count());
    for (double& x : values) x = o.add_bool ? random.below(4) == 0 : random.normal();
    const Values stored = add.set(values);
    for (size_t b = 0; b < o.batch; ++b)
      for (size_t h = 0; h < o.heads; ++h)
        for (size_t i = 0; i < o.queries; ++i)
          for (size_t j = 0; j < o.keys; ++j) {
            const size_t outer = o.add == 4 ? b * o.heads + h : o.add == 3 ? h : 0;
            const double x = stored[(outer * o.queries + i) * o.keys + j];
            a.add.push_back(o.add_bool ? (x != 0 ? -INFINITY : 0) : x);
          }
  }
};

// The gradients of a call, each in a tensor of its own.
struct AttentionOutputs {
  AttentionTensor dy, q, k, v, wq, wk, wv, wo, bq, bk, bv, bo, key_row, value_row;
  BNNSMHAProjectionParameters query, key, value, output;
  BNNSNDArrayDescriptor key_row_d, value_row_d;

  explicit AttentionOutputs(AttentionSetup& s, bool accumulate = false, double start = 0.25) {
    const AttentionOptions& o = s.o;
    const Memory& m = o.memory;
    dy = AttentionTensor::target(o.batch, o.queries, o.model, m);
    s.dy_values = dy.set(s.dy_values);
    q = AttentionTensor::target(o.batch, o.queries, o.model, m);
    k = AttentionTensor::target(o.batch, o.keys, o.key_model, m);
    v = AttentionTensor::target(o.batch, o.keys, o.value_model, m);
    wq = AttentionTensor::weights(o.model, o.key_size, o.heads, m);
    wk = AttentionTensor::weights(o.key_model, o.key_size, o.heads, m);
    wv = AttentionTensor::weights(o.value_model, o.value_size, o.heads, m);
    wo = AttentionTensor::matrix(o.heads * o.value_size, o.model, m);
    bq = AttentionTensor::matrix(o.key_size, o.heads, m), bk = AttentionTensor::matrix(o.key_size, o.heads, m);
    bv = AttentionTensor::matrix(o.value_size, o.heads, m);
    bo = AttentionTensor::vector(o.model, {0, m.type, m.unit, m.pad});
    key_row = AttentionTensor::matrix(o.key_size, o.heads, m);
    value_row = AttentionTensor::matrix(o.value_size, o.heads, m);
    for (AttentionTensor* t : all()) t->set(Values(t->count(), accumulate ? start : NAN));
    for (BNNSMHAProjectionParameters* p : {&query, &key, &value, &output}) std::memset(p, 0, sizeof *p);
    const auto flagged = [&](AttentionTensor& t) {
      BNNSNDArrayDescriptor d = t.descriptor();
      d.flags = accumulate ? BNNSNDArrayFlagBackpropAccumulate : BNNSNDArrayFlagBackpropSet;
      return d;
    };
    const auto target = [&](AttentionTensor& t) {
      BNNSNDArrayDescriptor d = flagged(t);
      d.stride[2] = t.batch_stride();
      return d;
    };
    query = {target(q), flagged(wq), flagged(bq)}, key = {target(k), flagged(wk), flagged(bk)};
    value = {target(v), flagged(wv), flagged(bv)}, output = {target(dy), flagged(wo), flagged(bo)};
    key_row_d = flagged(key_row), value_row_d = flagged(value_row);
  }

  std::vector<AttentionTensor*> all() {
    return {&q, &k, &v, &wq, &wk, &wv, &wo, &bq, &bk, &bv, &bo, &key_row, &value_row};
  }

  int backward(AttentionSetup& s, BNNSFilter filter, size_t cache_size = 0, void* cache = nullptr,
               size_t* workspace_size = nullptr, void* workspace = nullptr) {
    BNNSNDArrayDescriptor keys, x;
    return BNNSApplyMultiheadAttentionBackward(
        filter, s.o.batch, s.q.data(), s.q.batch_stride(), &query, s.k.data(), s.k.batch_stride(),
        s.mask_descriptor(&keys), s.o.key_mask ? s.mask.batch_stride() : 0, &key, s.v.data(), s.v.batch_stride(),
        &value, s.add_descriptor(&x), s.o.rows ? &key_row_d : nullptr, s.o.rows ? &value_row_d : nullptr, nullptr, 0,
        &output, cache_size, cache, workspace_size, workspace);
  }
};

// The reference's results and what each element's error may be. With u = 2^-24, n the terms of all sums that follow one
// another, and R the logits, whose error changes probabilities by that factor:
//   bound = u (n + 16) (1 + max|R|) scale, and half a unit in the last place of the type where it is stored.
// scale is the largest element of the tensors of one kind (targets, weights, biases, rows): a key bias alone moves all
// logits of a query alike, so its gradient is what remains of cancelled terms. Rounding errors differ in sign and grow
// like the root of n, so n leaves room for what sums lose by cancellation; a term left out does not fit in it.
struct AttentionExpected {
  ref::AttentionResults f;
  ref::AttentionDeltas g;
  double relative = 0, type_epsilon = 0;

  explicit AttentionExpected(const AttentionSetup& s) {
    const ref::Attention& a = s.a;
    f = ref::attention_forward(a);
    g = ref::attention_backward(a, f, s.dy_values);
    double largest = 0;
    for (size_t bh = 0; bh < a.batch * a.heads; ++bh)
      for (size_t i = 0; i < a.queries; ++i)
        for (size_t j = 0; j < a.rows(); ++j) {
          double r = 0;
          for (size_t k = 0; k < a.key_size; ++k) {
            r += f.q[(bh * a.queries + i) * a.key_size + k] * f.k[(bh * a.rows() + j) * a.key_size + k];
          }
          largest = std::max(largest, std::fabs(r) / std::sqrt(double(a.key_size)));
        }
    const double n = double(a.model + a.key_model + a.value_model + a.key_size + a.rows() + a.heads * a.value_size +
                            a.batch * (a.queries + a.rows()));
    relative = 0x1p-24 * (n + 16) * (1 + largest);
    type_epsilon = s.o.memory.type == BNNSDataTypeFloat16    ? 0x1p-11
                   : s.o.memory.type == BNNSDataTypeBFloat16 ? 0x1p-8
                                                             : 0;
  }

  static double largest_of(std::initializer_list<const Values*> tensors) {
    double largest = 0;
    for (const Values* values : tensors) {
      for (double x : *values) largest = std::max(largest, std::fabs(x));
    }
    return largest;
  }

  ::testing::AssertionResult matches(const Values& got, const Values& want, double scale, double start = 0) const {
    Values sum = want;
    for (double& x : sum) x += start;
    return within(got, sum, want.size(), [&](size_t i) {
      const double error = relative * (scale + std::fabs(start));
      return error + type_epsilon * (std::fabs(sum[i]) + error) + (type_epsilon ? 0x1p-24 : 0);
    });
  }

  void check_forward(const AttentionSetup& s) const { EXPECT_TRUE(matches(s.y.get(), f.y, largest_of({&f.y}))) << "y"; }
  void check_backward(AttentionSetup& s, const AttentionOutputs& d, double start = 0) const {
    const auto check = [&](const char* name, const AttentionTensor& t, const Values& want, double scale) {
      EXPECT_TRUE(matches(t.get(), want, scale, start)) << name;
      EXPECT_TRUE(t.gaps_untouched()) << name;
    };
    const double targets = largest_of({&g.q, &g.k, &g.v}), biases = largest_of({&g.bq, &g.bk, &g.bv});
    const double weights = largest_of({&g.wq, &g.wk, &g.wv}), rows = largest_of({&g.key_row, &g.value_row});
    check("dq", d.q, g.q, targets), check("dk", d.k, g.k, targets), check("dv", d.v, g.v, targets);
    check("dwq", d.wq, g.wq, weights), check("dwk", d.wk, g.wk, weights), check("dwv", d.wv, g.wv, weights);
    check("dbq", d.bq, g.bq, biases), check("dbk", d.bk, g.bk, biases), check("dbv", d.bv, g.bv, biases);
    check("dwo", d.wo, g.wo, largest_of({&g.wo})), check("dbo", d.bo, g.bo, largest_of({&g.bo}));
    if (s.o.rows) check("key_row", d.key_row, g.key_row, rows), check("value_row", d.value_row, g.value_row, rows);
  }
};

}  // namespace bnns::testing
