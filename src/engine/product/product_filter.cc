// ProductFilter: the checks of every call, and the gradients as products.
//   dA = alpha * sum of dC * B     dB = alpha * sum of A * dC     each over the indices that it does not have
// The batch is an index like any other; a trained operand does not have it, so its gradient sums over it.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/engine/product/product.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"

namespace bnns {

// What a call runs, in order. A gradient in a type narrower than f32 that two products add up to is summed in f32
// first: `summed` floats of scratch, which the products point to by offset.
struct ProductFilter::Work {
  size_t products = 0;
  Product product[4];
  size_t summed = 0;

  Product& add(const Product& p) { return product[products++] = p; }
};

// The gradients of one call, checked. count 0: not wanted.
struct ProductFilter::Deltas {
  Tensor c, side[2];
  size_t c_stride = 0, stride[2] = {};
};

ProductFilter::ProductFilter(const Options& options, const ProductProblem& problem)
    : Filter(problem.kind, options), problem_(problem), scratch_(options) {
  if (problem.weights >= 0) weights_ = Parameter(problem.tensor[problem.weights], options, "the weights");
}

Product ProductFilter::make_product(size_t batch) const {
  Product product;
  product.indices = problem_.indices;
  std::copy(problem_.extent, problem_.extent + problem_.indices, product.extent);
  product.extent[0] = batch;
  product.alpha = problem_.alpha;
  return product;
}

// All the memory is there before the first byte is written.
void ProductFilter::run(Work& work) {
  const size_t threads = options_.n_threads ? options_.n_threads : default_threads();
  size_t bytes = 0;
  for (size_t i = 0; i < work.products; ++i) {
    bytes = std::max(bytes, product_scratch_bytes(work.product[i], threads));
  }
  const size_t summed = round_up(checked_mul(work.summed, sizeof(float), "scratch of the product"), kAlignment);
  ScratchShelf::Lease lease(scratch_, checked_add(summed, bytes, "scratch of the product"));
  for (size_t i = 0; i < work.products; ++i) {
    Product& product = work.product[i];
    if (!product.a.data) product.a.data = lease.data();
    if (!product.c.data) product.c.data = lease.data();
    product_run(product, static_cast<char*>(lease.data()) + summed, threads);
  }
}

void ProductFilter::check_inputs(size_t given) const {
  if (given == problem_.inputs()) return;
  fail_invalid(given == 2 ? "%s: this filter takes one input: use the calls without TwoInput"
                          : "%s: this filter takes two inputs: use the TwoInput calls",
               problem_.op);
}

// ---- forward ----------------------------------------------------------------------------------------------------

ProductFilter::Operand ProductFilter::check_operand(ProductSide side, const void* data, size_t stride, size_t batch,
                                                    const char* name) const {
  if (batch) check_data(data, problem_.tensor[side].type, problem_.op, name);
  return {data, input_batch_stride(stride, batch, problem_.tensor[side], problem_.op, name)};
}

void ProductFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  const ProductProblem& p = problem_;
  check_inputs(1);
  const Operand input = check_operand(p.input(), in, in_stride, batch, "in");
  const Operand fixed{weights_.tensor().data, 0};
  const Operand a = p.weights == kSideA ? fixed : input;
  run_forward(batch, a, p.weights == kSideB ? fixed : input, out, out_stride);
}

void ProductFilter::forward_two(const TwoInputCall& call) {
  check_inputs(2);
  const Operand a = check_operand(kSideA, call.in_a, call.in_a_stride, call.batch, "inA");
  const Operand b = check_operand(kSideB, call.in_b, call.in_b_stride, call.batch, "inB");
  run_forward(call.batch, a, b, call.out, call.out_stride);
}

void ProductFilter::run_forward(size_t batch, const Operand& a, const Operand& b, void* out, size_t out_stride) {
  const ProductProblem& p = problem_;
  const Tensor& c = p.tensor[kSideC];
  if (batch) check_data(out, c.type, p.op, "out");
  out_stride = output_batch_stride(out_stride, batch, c, p.op, "out_stride");
  if (batch == 0) return;
  const size_t out_bytes = batch_bytes(batch, out_stride, c, p.op, "out_stride");
  for (const ProductSide side : {kSideA, kSideB}) {
    if (!p.has(side)) continue;
    const Operand& x = side == kSideA ? a : b;
    const bool trained = p.weights == side;
    check_disjoint(out, out_bytes, "out", x.data,
                   batch_bytes(trained ? 1 : batch, x.stride, p.tensor[side], p.op, "in"),
                   trained          ? "the weights"
                   : side == kSideA ? "input A"
                                    : "input B",
                   p.op);
  }
  Work work;
  Product& product = work.add(make_product(batch));
  product.a = indexed(p, kSideA, p.tensor[kSideA], a.data, a.stride);
  if (p.has_b) product.b = indexed(p, kSideB, p.tensor[kSideB], b.data, b.stride);
  product.c = indexed(p, kSideC, c, out, out_stride);
  product.accumulate = p.beta;
  run(work);
}

// ---- backward ---------------------------------------------------------------------------------------------------

void ProductFilter::backward(const BackwardCall& call) {
  const ProductProblem& p = problem_;
  check_inputs(1);
  const ProductSide input = p.input();
  Deltas d;
  if (call.bias_delta) fail_invalid("%s: bias_delta is given, expected NULL: there is no bias", p.op);
  if (call.weights_delta && p.weights < 0) {
    fail_invalid("%s: weights_delta is given, expected NULL: no operand is trained", p.op);
  }
  d.c = resolve_delta_view(call.out_delta, p.tensor[kSideC], p.op, "out_delta");
  d.c_stride = input_batch_stride(call.out_delta_stride, call.batch, d.c, p.op, "out_delta_stride");
  // in is needed for the gradient of whatever it is multiplied with.
  const bool needs_input = call.batch && ((call.in_delta && p.self) || call.weights_delta);
  Operand operand[2];
  operand[input].stride = input_batch_stride(call.in_stride, call.batch, p.tensor[input], p.op, "in_stride");
  operand[input].data = call.in;
  if (needs_input) check_data(call.in, p.tensor[input].type, p.op, "in");
  if (p.self) operand[kSideB] = operand[kSideA];
  if (p.weights >= 0) operand[p.weights].data = weights_.tensor().data;
  if (call.in_delta) {
    d.side[input] = resolve_delta_view(call.in_delta, p.tensor[input], p.op, "in_delta");
    check_distinct(d.side[input], p.op, "in_delta");
    d.stride[input] = output_batch_stride(call.in_delta_stride, call.batch, d.side[input], p.op, "in_delta_stride");
  }
  if (call.weights_delta) {
    d.side[p.weights] = resolve_delta_view(call.weights_delta, p.tensor[p.weights], p.op, "weights_delta");
    check_distinct(d.side[p.weights], p.op, "weights_delta");
  }
  run_backward(call.batch, operand, d);
}

void ProductFilter::backward_two(const TwoInputBackwardCall& call) {
  const ProductProblem& p = problem_;
  check_inputs(2);
  if (call.bias_delta) fail_invalid("%s: bias_delta is given, expected NULL: there is no bias", p.op);
  if (call.weights_delta) fail_invalid("%s: weights_delta is given, expected NULL: no operand is trained", p.op);
  Deltas d;
  d.c = resolve_delta_view(call.out_delta, p.tensor[kSideC], p.op, "out_delta");
  d.c_stride = input_batch_stride(call.out_delta_stride, call.batch, d.c, p.op, "out_delta_stride");
  const Operand operand[2] = {
      {call.in_a, input_batch_stride(call.in_a_stride, call.batch, p.tensor[kSideA], p.op, "inA_stride")},
      {call.in_b, input_batch_stride(call.in_b_stride, call.batch, p.tensor[kSideB], p.op, "inB_stride")}};
  if (call.in_a_delta) {
    d.side[kSideA] = resolve_delta_view(call.in_a_delta, p.tensor[kSideA], p.op, "inA_delta");
    check_distinct(d.side[kSideA], p.op, "inA_delta");
    d.stride[kSideA] =
        output_batch_stride(call.in_a_delta_stride, call.batch, d.side[kSideA], p.op, "inA_delta_stride");
    if (call.batch) check_data(call.in_b, p.tensor[kSideB].type, p.op, "inB");
  }
  if (call.in_b_delta) {
    d.side[kSideB] = resolve_delta_view(call.in_b_delta, p.tensor[kSideB], p.op, "inB_delta");
    check_distinct(d.side[kSideB], p.op, "inB_delta");
    d.stride[kSideB] =
        output_batch_stride(call.in_b_delta_stride, call.batch, d.side[kSideB], p.op, "inB_delta_stride");
    if (call.batch) check_data(call.in_a, p.tensor[kSideA].type, p.op, "inA");
  }
  run_backward(call.batch, operand, d);
}

void ProductFilter::check_deltas_disjoint(size_t batch, const Operand (&operand)[2], const Deltas& d) const {
  const ProductProblem& p = problem_;
  static constexpr const char* kDeltaNames[] = {"the gradient of A", "the gradient of B"};
  static constexpr const char* kInputNames[] = {"input A", "input B"};
  const auto samples = [&](size_t side) { return p.weights == static_cast<int>(side) ? 1 : batch; };
  const auto delta_bytes = [&](size_t side) {
    return batch_bytes(samples(side), d.stride[side], d.side[side], p.op, "the gradient's stride");
  };
  const size_t c_bytes = batch_bytes(batch, d.c_stride, d.c, p.op, "out_delta_stride");
  for (size_t side = 0; side < 2; ++side) {
    if (!d.side[side].count) continue;
    const void* data = d.side[side].data;
    check_disjoint(data, delta_bytes(side), kDeltaNames[side], d.c.data, c_bytes, "out_delta", p.op);
    for (size_t other = 0; other < 2; ++other) {
      if (!operand[other].data) continue;
      check_disjoint(data, delta_bytes(side), kDeltaNames[side], operand[other].data,
                     batch_bytes(samples(other), operand[other].stride, p.tensor[other], p.op, "in_stride"),
                     kInputNames[other], p.op);
    }
  }
  if (d.side[kSideA].count && d.side[kSideB].count) {
    check_disjoint(d.side[kSideA].data, delta_bytes(kSideA), kDeltaNames[kSideA], d.side[kSideB].data,
                   delta_bytes(kSideB), kDeltaNames[kSideB], p.op);
  }
}

namespace {

// An empty batch: the sum over it is 0.
void clear(const Tensor& dx) {
  const Elements elements(dx);
  float buffer[kBlock];
  for (size_t first = 0; first < dx.count; first += kBlock) {
    const size_t n = std::min(kBlock, dx.count - first);
    float* to = elements.target(dx.data, first, buffer);
    std::fill_n(to, n, 0.0f);
    elements.write(dx.data, first, n, to);
  }
}

// A dense f32 tensor of the same axes.
Tensor dense_like(const Tensor& t) {
  Tensor result = t;
  result.type = BNNSDataTypeFloat32;
  result.data = nullptr;
  size_t stride = 1;
  for (size_t j = 0; j < t.rank; ++j) {
    result.stride[t.axis[j]] = stride;
    stride *= t.size[t.axis[j]];
  }
  result.span = t.count;
  result.dense = true;
  return result;
}

}  // namespace

void ProductFilter::run_backward(size_t batch, const Operand (&operand)[2], const Deltas& d) {
  const ProductProblem& p = problem_;
  check_deltas_disjoint(batch, operand, d);
  if (batch == 0) {
    if (p.weights >= 0 && d.side[p.weights].count && !d.side[p.weights].accumulate) clear(d.side[p.weights]);
    return;
  }
  Work work;
  const IndexedTensor dc = indexed(p, kSideC, d.c, d.c.data, d.c_stride);
  // side's gradient, written to dx by the indices of side
  const auto add_gradient = [&](ProductSide side, const Tensor& dx, size_t stride, bool accumulate) {
    Product& product = work.add(make_product(batch));
    product.a = dc;
    const ProductSide other = side == kSideA ? kSideB : kSideA;
    if (p.has_b) product.b = indexed(p, other, p.tensor[other], operand[other].data, operand[other].stride);
    product.c = indexed(p, side, dx, dx.data, stride);
    product.accumulate = accumulate;
  };
  Tensor summed;
  if (!p.self) {
    for (const ProductSide side : {kSideA, kSideB}) {
      if (d.side[side].count) add_gradient(side, d.side[side], d.stride[side], d.side[side].accumulate);
    }
  } else if (const Tensor& dx = d.side[kSideA]; dx.count != 0) {
    // A stands in both places; the second product finds its axes by B's indices.
    const bool narrow = !dx.is(BNNSDataTypeFloat32);
    summed = narrow ? dense_like(dx) : dx;
    const size_t stride = narrow ? dx.count : d.stride[kSideA];
    add_gradient(kSideA, summed, stride, !narrow && dx.accumulate);
    add_gradient(kSideB, summed, stride, true);
    if (narrow) {
      work.summed = checked_mul(batch, dx.count, "scratch of the product");
      Product& product = work.add(make_product(batch));
      product.alpha = 1;
      product.a = indexed(p, kSideA, summed, nullptr, stride);
      product.c = indexed(p, kSideA, dx, dx.data, d.stride[kSideA]);
      product.accumulate = dx.accumulate;
    }
  }
  run(work);
}

}  // namespace bnns
