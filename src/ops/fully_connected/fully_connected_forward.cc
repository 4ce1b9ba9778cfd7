// FullyConnectedFilter::forward: Y[N,O] = X[N,I] W[O,I]', bias per column, activation in the GEMM's epilogue while the
// block of Y is in cache.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/log.h"
#include "src/core/parallel.h"
#include "src/ops/fully_connected/fully_connected.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "fully_connected";

// What the epilogue does to a finished block of Y.
struct Finish {
  const Activation& activation;
  const MatrixResult& result;

  float* row(size_t n) const { return result.output().data + n * result.output().row_stride; }
  static void run(void* context, Range rows, Range columns) {
    const Finish& finish = *static_cast<const Finish*>(context);
    for (size_t n = rows.begin; n < rows.end && !finish.activation.is_identity(); ++n) {
      float* y = finish.row(n) + columns.begin;
      activation_forward(finish.activation, y, y, columns.size());
    }
    finish.result.store(rows, columns);
  }
};

}  // namespace

SoftmaxRows::SoftmaxRows(const Tensor& y) : n(y.size[0]), step(1), rows(y.count / y.size[0]) {
  for (size_t j = 0; y.axis[j] != 0; ++j) step *= y.size[y.axis[j]];
}

size_t FullyConnectedFilter::product_threads() const {
  return std::min(options_.n_threads ? options_.n_threads : default_threads(), kMaxThreads);
}

MatrixOperand FullyConnectedFilter::weight_operand(size_t batch) const {
  const Tensor& w = weights_.tensor();
  // A batch is scaled by rows of x; more of them than rows of W, and W is the smaller one to convert.
  return batch <= problem_.outputs ? MatrixOperand::unscaled(w, problem_.output_axis)
                                   : MatrixOperand(w, problem_.output_axis);
}

void FullyConnectedFilter::multiply(const GemmProblem& product, const Lens& a, const Lens& b, const GemmOutput& c,
                                    const float* bias, const GemmEpilogue& epilogue) {
  const size_t threads = product_threads();
  ScratchShelf::Lease workspace(scratch_, gemm_workspace_bytes(product, a, b, c, threads));
  gemm(product, a, b, c, bias, epilogue, workspace.data(), threads);
}

void FullyConnectedFilter::linear(size_t batch, const Lens& x, const Lens& w, float* y) {
  const FullyConnectedProblem& p = problem_;
  ScratchShelf::Lease lease(scratch_, p.has_bias() ? p.outputs * sizeof(float) : 0);
  const float* bias = nullptr;
  if (p.has_bias()) bias = Elements(p.b).read(bias_.tensor().data, 0, p.outputs, lease.as<float>());
  multiply({batch, p.outputs, p.inputs, bias ? GemmInit::bias_columns : GemmInit::overwrite}, x, w, {y, p.outputs, 1},
           bias, {});
}

void FullyConnectedFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  const FullyConnectedProblem& p = problem_;
  in_stride = input_batch_stride(in_stride, batch, p.x, kOp, "in_stride");
  out_stride = output_batch_stride(out_stride, batch, p.y, kOp, "out_stride");
  if (batch == 0) return;
  check_data(in, p.x.type, kOp, "in");
  check_data(out, p.y.type, kOp, "out");
  check_disjoint(in, batch_bytes(batch, in_stride, p.x, kOp, "in_stride"), "in", out,
                 batch_bytes(batch, out_stride, p.y, kOp, "out_stride"), "out", kOp);
  if (recording())
    count_work(product_of(batch, p.x.span_bytes() + p.y.span_bytes()) + product_of(p.w.span_bytes()),
               2 * product_of(batch, p.inputs, p.outputs));
  if (p.integer) return forward_integer(batch, in, in_stride, out, out_stride);

  MatrixOperand x(p.x, in, batch, in_stride), w = weight_operand(batch);
  x.multiply_by(w.factor());
  MatrixResult y(p.y, out, batch, out_stride);
  const Elements bias_elements = p.has_bias() ? Elements(p.b) : Elements();
  const size_t bias_floats = p.has_bias() && !bias_elements.direct() ? p.outputs : 0;
  ScratchShelf::Lease lease(
      scratch_, (bias_floats + x.scratch_floats() + w.scratch_floats() + y.scratch_floats()) * sizeof(float));
  float* room = lease.as<float>();
  const float* bias = p.has_bias() ? bias_elements.read(bias_.tensor().data, 0, p.outputs, room) : nullptr;
  room += bias_floats;
  x.prepare(room, options_.n_threads);
  w.prepare(room += x.scratch_floats(), options_.n_threads);
  y.use(room + w.scratch_floats());

  Finish finish{p.activation, y};
  const GemmProblem product{batch, p.outputs, p.inputs, bias ? GemmInit::bias_columns : GemmInit::overwrite};
  if (!p.activation.is_rowwise()) {
    const bool plain = p.activation.is_identity() && y.scratch_floats() == 0;
    multiply(product, x.lens(), w.lens(), p.activation.is_identity() ? y.output_or_bf16() : y.output(), bias,
             plain ? GemmEpilogue{} : GemmEpilogue{Finish::run, &finish});
    return;
  }
  const SoftmaxRows rows(p.y);
  const size_t threads = threads_for(options_.n_threads, batch, batch * p.outputs * sizeof(float));
  ScratchShelf::Lease row_lease(scratch_, rows.step > 1 ? rows.n * threads * sizeof(float) : 0);
  multiply(product, x.lens(), w.lens(), y.output(), bias, {});
  parallel_for(batch, threads, [&](size_t n, size_t worker) {
    for (size_t r = 0; r < rows.rows; ++r) {
      float* values = finish.row(n) + rows.first(r);
      if (rows.step == 1) {
        activation_forward(p.activation, values, values, rows.n);
        continue;
      }
      float* row = row_lease.as<float>() + worker * rows.n;
      for (size_t i = 0; i < rows.n; ++i) row[i] = values[i * rows.step];
      activation_forward(p.activation, row, row, rows.n);
      for (size_t i = 0; i < rows.n; ++i) values[i * rows.step] = row[i];
    }
    y.store({n, n + 1}, {0, p.outputs});
  });
}

// Exact integer sums of the raw values, then saturate((iscale * sum + ioffset) >> ishift). Plain loops: the integer
// form is for compatibility.
void FullyConnectedFilter::forward_integer(size_t batch, const void* in, size_t in_stride, void* out,
                                           size_t out_stride) const {
  const FullyConnectedProblem& p = problem_;
  const Tensor& w = weights_.tensor();
  const Elements x_elements(p.x), y_elements(p.y), b_elements = p.has_bias() ? Elements(p.b) : Elements();
  const size_t output_stride = w.stride[p.output_axis], input_stride = w.stride[1 - p.output_axis];
  parallel_for(batch, threads_for(options_.n_threads, batch, batch * p.w.count), [&](size_t n, size_t) {
    const void* xs = element_at(in, p.x.type, n * in_stride);
    void* ys = element_at(out, p.y.type, n * out_stride);
    for (size_t o = 0; o < p.outputs; ++o) {
      WideInteger sum = p.has_bias() ? load_integer(p.b, bias_.tensor().data, b_elements.offset(o)) : 0;
      for (size_t i = 0; i < p.inputs; ++i) {
        sum += WideInteger{load_integer(p.x, xs, x_elements.offset(i))} *
               load_integer(w, w.data, o * output_stride + i * input_stride);
      }
      store_saturated(p.y, ys, y_elements.offset(o), p.saturation(sum));
    }
  });
}

}  // namespace bnns
