// FullyConnectedFilter::backward. With g = dY * act' (N x O):
//   dW[O,I] = g[N,O]' X[N,I]     db[O] = column sums of g     dX[N,I] = g[N,O] W[O,I]
// g is dY itself where there is no activation and dY can be read in place.

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/log.h"
#include "src/core/parallel.h"
#include "src/ops/fully_connected/fully_connected.h"
#include "src/simd/sums.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "fully_connected";

}  // namespace

struct FullyConnectedFilter::Gradients {
  Tensor dy, dx, dw, db;
  size_t in_stride = 0, out_stride = 0, dy_stride = 0, dx_stride = 0;
  bool recompute = false;  // act' needs the pre-activation, which needs X and W
};

// Everything that can be wrong is found here, before anything is written.
FullyConnectedFilter::Gradients FullyConnectedFilter::check_backward(const BackwardCall& call) const {
  const FullyConnectedProblem& p = problem_;
  if (p.integer) fail_unsupported("%s: integer layers have no gradient", kOp);
  Gradients wanted;
  const size_t batch = call.batch;
  const bool from_output = !p.activation.is_identity() && has_derivative_from_output(p.activation);
  wanted.recompute = !p.activation.is_identity() && !from_output;

  wanted.dy = resolve_delta(call.out_delta, p.y, kOp, "out_delta");
  wanted.dy_stride = input_batch_stride(call.out_delta_stride, batch, wanted.dy, kOp, "out_delta_stride");
  const size_t dy_bytes = batch_bytes(batch, wanted.dy_stride, wanted.dy, kOp, "out_delta_stride");
  wanted.out_stride = input_batch_stride(call.out_stride, batch, p.y, kOp, "out_stride");
  wanted.in_stride = input_batch_stride(call.in_stride, batch, p.x, kOp, "in_stride");
  const size_t in_bytes = call.in ? batch_bytes(batch, wanted.in_stride, p.x, kOp, "in_stride") : 0;
  if (batch && from_output) check_data(call.out, p.y.type, kOp, "out");
  if (batch && wanted.recompute && !call.in) {
    fail_invalid("%s: in is NULL, but the derivative of %s needs the layer's input", kOp,
                 activation_name(p.activation.function));
  }
  if (batch && (wanted.recompute || call.weights_delta)) check_data(call.in, p.x.type, kOp, "in");

  if (call.in_delta) {
    wanted.dx = resolve_delta(call.in_delta, p.x, kOp, "in_delta");
    check_distinct(wanted.dx, kOp, "in_delta");
    wanted.dx_stride = output_batch_stride(call.in_delta_stride, batch, wanted.dx, kOp, "in_delta_stride");
    const size_t dx_bytes = batch_bytes(batch, wanted.dx_stride, wanted.dx, kOp, "in_delta_stride");
    check_disjoint(wanted.dx.data, dx_bytes, "in_delta", wanted.dy.data, dy_bytes, "out_delta", kOp);
  }
  if (call.weights_delta) {
    wanted.dw = resolve_delta(call.weights_delta, p.w, kOp, "weights_delta");
    check_distinct(wanted.dw, kOp, "weights_delta");
    Tensor& dw = wanted.dw;
    if (dw.layout != p.w.layout) {  // as many elements in another layout: the same memory order, dense
      if (!dw.dense) fail_invalid("%s: weights_delta has another layout than w_desc; expected it dense then", kOp);
      const BNNSDataType type = dw.type;
      const bool accumulate = dw.accumulate;
      void* data = dw.data;
      dw = p.w;
      dw.type = type, dw.accumulate = accumulate, dw.data = data;
      const size_t fast = dw.axis[0], slow = dw.axis[1];
      dw.stride[fast] = 1, dw.stride[slow] = dw.size[fast];
      dw.span = dw.count, dw.dense = true;
    }
    check_disjoint(dw.data, dw.span_bytes(), "weights_delta", wanted.dy.data, dy_bytes, "out_delta", kOp);
    check_disjoint(dw.data, dw.span_bytes(), "weights_delta", call.in, in_bytes, "in", kOp);
    check_disjoint(dw.data, dw.span_bytes(), "weights_delta", weights_.tensor().data, p.w.span_bytes(), "w_desc.data",
                   kOp);
  }
  if (call.bias_delta) {
    wanted.db =
        resolve_delta(call.bias_delta, p.has_bias() ? p.b : vector_tensor(p.outputs, nullptr), kOp, "bias_delta");
    check_disjoint(wanted.db.data, wanted.db.span_bytes(), "bias_delta", wanted.dy.data, dy_bytes, "out_delta", kOp);
  }
  return wanted;
}

// g = dY * act'. On entry g holds the pre-activation if it was recomputed.
void FullyConnectedFilter::upstream_gradient(const BackwardCall& call, const Gradients& wanted, float* g) {
  const FullyConnectedProblem& p = problem_;
  const Elements dy(wanted.dy), y(p.y);
  const bool rowwise = p.activation.is_rowwise();
  const Activation stored = as_stored(p.activation, p.y.type);
  const SoftmaxRows rows(p.y);
  const size_t block = rowwise ? p.outputs : std::min(kBlock, p.outputs);
  const size_t threads = threads_for(options_.n_threads, call.batch, call.batch * p.outputs * sizeof(float));
  // dY, Y and, for softmax rows that are not contiguous, one row of each
  const size_t room_floats = 2 * block + (rowwise && rows.step > 1 ? 2 * rows.n : 0);
  ScratchShelf::Lease lease(scratch_, threads * room_floats * sizeof(float));
  parallel_for(call.batch, threads, [&](size_t n, size_t worker) {
    float* room = lease.as<float>() + worker * room_floats;
    const void* dy_sample = element_at(wanted.dy.data, wanted.dy.type, n * wanted.dy_stride);
    const void* y_sample = call.out ? element_at(call.out, p.y.type, n * wanted.out_stride) : nullptr;
    for (size_t first = 0; first < p.outputs; first += block) {
      const size_t m = std::min(block, p.outputs - first);
      float* to = g + n * p.outputs + first;
      const float* upstream = dy.read(dy_sample, first, m, room);
      if (p.activation.is_identity()) {
        std::memcpy(to, upstream, m * sizeof(float));
      } else if (wanted.recompute) {
        activation_backward_from_input(p.activation, to, upstream, to, m);
      } else {
        const float* values = y.read(y_sample, first, m, room + block);
        if (!rowwise) {
          activation_backward_from_output(stored, values, upstream, to, m);
          continue;
        }
        float *y_row = room + 2 * block, *dy_row = y_row + rows.n;
        for (size_t r = 0; r < rows.rows; ++r) {
          const size_t at = rows.first(r);
          if (rows.step == 1) {
            activation_backward_from_output(p.activation, values + at, upstream + at, to + at, rows.n);
            continue;
          }
          for (size_t i = 0; i < rows.n; ++i) {
            y_row[i] = values[at + i * rows.step];
            dy_row[i] = upstream[at + i * rows.step];
          }
          activation_backward_from_output(p.activation, y_row, dy_row, dy_row, rows.n);
          for (size_t i = 0; i < rows.n; ++i) to[at + i * rows.step] = dy_row[i];
        }
      }
    }
  });
}

void FullyConnectedFilter::backward(const BackwardCall& call) {
  const FullyConnectedProblem& p = problem_;
  const Gradients wanted = check_backward(call);
  const size_t batch = call.batch;
  for (const bool wants : {call.weights_delta != nullptr, call.in_delta != nullptr}) {
    if (wants && recording())
      count_work(product_of(batch, p.x.span_bytes() + p.y.span_bytes()) + product_of(p.w.span_bytes()),
                 2 * product_of(batch, p.inputs, p.outputs));
  }

  MatrixOperand x, w, g(wanted.dy, wanted.dy.data, batch, wanted.dy_stride);
  if (call.weights_delta || wanted.recompute) x = MatrixOperand(p.x, call.in, batch, wanted.in_stride);
  if (call.in_delta || wanted.recompute) w = MatrixOperand(weights_.tensor(), p.output_axis);
  MatrixResult dw, dx;
  if (call.weights_delta) dw = MatrixResult(wanted.dw, p.output_axis);
  if (call.in_delta) dx = MatrixResult(wanted.dx, wanted.dx.data, batch, wanted.dx_stride);
  Elements db;
  if (call.bias_delta) db = Elements(wanted.db);

  // The GEMM core reads dY in place if it can; db needs rows of f32.
  const bool plain_rows = wanted.dy.is(BNNSDataTypeFloat32) && Elements(wanted.dy).direct();
  const bool own_g = !p.activation.is_identity() || g.scratch_floats() || (call.bias_delta && !plain_rows);
  const size_t g_floats = own_g ? checked_mul(batch, p.outputs, kOp) : 0;
  const size_t db_floats = call.bias_delta && !db.direct() ? p.outputs : 0;
  ScratchShelf::Lease lease(scratch_, (g_floats + db_floats + x.scratch_floats() + w.scratch_floats() +
                                       std::max(dw.scratch_floats(), dx.scratch_floats())) *
                                          sizeof(float));
  float* g_room = lease.as<float>();
  float* db_room = g_room + g_floats;
  float* room = db_room + db_floats;
  x.prepare(room, options_.n_threads);
  w.prepare(room += x.scratch_floats(), options_.n_threads);
  room += w.scratch_floats();  // dW and dX take turns here

  Lens upstream = g.lens();
  if (own_g) {
    if (wanted.recompute) linear(batch, x.lens(), w.lens(), g_room);
    upstream_gradient(call, wanted, g_room);
    // db alone needs f32: the products read dY itself where it is g, so that two bf16 operands stay bf16.
    if (!p.activation.is_identity() || g.scratch_floats()) {
      upstream = strided_lens(g_room, FloatType::f32, static_cast<ptrdiff_t>(p.outputs), 1);
    }
  }
  // The workspace of both products before either writes.
  dw.use(room), dx.use(room);
  const GemmProblem dw_product{p.outputs, p.inputs, batch, dw.init()},
      dx_product{batch, p.inputs, p.outputs, dx.init()};
  const size_t threads = product_threads();
  size_t bytes = 0;
  if (call.weights_delta) {
    bytes = gemm_workspace_bytes(dw_product, transposed(upstream), transposed(x.lens()), dw.output_or_bf16(), threads);
  }
  if (call.in_delta) {
    bytes =
        std::max(bytes, gemm_workspace_bytes(dx_product, upstream, transposed(w.lens()), dx.output_or_bf16(), threads));
  }
  ScratchShelf::Lease workspace(scratch_, bytes);
  if (call.weights_delta) {
    gemm(dw_product, transposed(upstream), transposed(x.lens()), dw.output_or_bf16(), nullptr, dw.epilogue(),
         workspace.data(), threads);
  }
  if (call.bias_delta) {
    const float* rows = own_g ? g_room : static_cast<const float*>(wanted.dy.data);
    float* to = db_floats ? db_room : static_cast<float*>(wanted.db.data);
    column_sums(rows, batch, own_g ? p.outputs : wanted.dy_stride, p.outputs, !db_floats && wanted.db.accumulate, to);
    if (db_floats && wanted.db.accumulate)
      db.accumulate(wanted.db.data, 0, p.outputs, to);
    else if (db_floats)
      db.write(wanted.db.data, 0, p.outputs, to);
  }
  if (call.in_delta) {
    gemm(dx_product, upstream, transposed(w.lens()), dx.output_or_bf16(), nullptr, dx.epilogue(), workspace.data(),
         threads);
  }
}

}  // namespace bnns
