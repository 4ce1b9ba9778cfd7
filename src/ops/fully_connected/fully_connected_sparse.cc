// Sparse weights: checks, the private copy, and forward.

#include "src/ops/fully_connected/fully_connected_sparse.h"

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/simd/convert.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "fully_connected";
constexpr size_t kOutputBlock = 64;  // outputs of a task
constexpr size_t kFewSamples = 4;    // fewer are multiplied one by one instead of side by side

// The packed arrays, for reading.
struct Packed {
  SparseHeader header;
  SparseOffsets offsets;
  const char* base;
  explicit Packed(const void* data)
      : header(sparse_header(data)), offsets(header), base(static_cast<const char*>(data)) {}
  uint32_t start(size_t o) const { return reinterpret_cast<const uint32_t*>(base + offsets.starts)[o]; }
  uint32_t column(size_t k) const {
    return header.column_bytes == 2 ? reinterpret_cast<const uint16_t*>(base + offsets.columns)[k]
                                    : reinterpret_cast<const uint32_t*>(base + offsets.columns)[k];
  }
};

void check_rows(const Packed& packed) {
  const SparseHeader& h = packed.header;
  if (packed.start(0) != 0 || packed.start(h.outputs) != h.nonzeros) {
    fail_invalid("%s: w_desc.data does not hold sparse weights as a Sparsify call left them", kOp);
  }
  for (size_t o = 0; o < h.outputs; ++o) {
    if (packed.start(o) > packed.start(o + 1)) {
      fail_invalid("%s: w_desc.data: row %zu of the sparse weights ends before it starts", kOp, o);
    }
  }
  for (size_t k = 0; k < h.nonzeros; ++k) {
    if (packed.column(k) >= h.inputs) {
      fail_invalid("%s: w_desc.data: a column of the sparse weights is %u, expected less than %u", kOp,
                   packed.column(k), h.inputs);
    }
  }
}

}  // namespace

FullyConnectedProblem make_sparse_fully_connected_problem(const BNNSLayerParametersFullyConnected* layer) {
  const void* data = layer->w_desc.data;
  check_data(data, BNNSDataTypeFloat32, kOp, "w_desc", ".data");
  const SparseHeader h = sparse_header(data);
  const BNNSDataType type = static_cast<BNNSDataType>(h.type);
  const bool sound = h.magic != 0 && is_float(type) && (h.column_bytes == 2 || h.column_bytes == 4) &&
                     h.nonzeros <= UINT32_MAX && SparseOffsets(h).end == h.bytes;
  if (!sound) fail_invalid("%s: w_desc.data does not hold sparse weights as a Sparsify call left them", kOp);
  // The rest is checked as for dense weights of that shape.
  BNNSLayerParametersFullyConnected dense = *layer;
  std::memset(&dense.w_desc, 0, sizeof dense.w_desc);
  dense.w_desc.layout = BNNSDataLayoutRowMajorMatrix;
  dense.w_desc.size[0] = h.inputs;
  dense.w_desc.size[1] = h.outputs;
  dense.w_desc.data_type = BNNSDataTypeFloat32;
  dense.w_desc.data = layer->w_desc.data;
  const FullyConnectedProblem p = make_fully_connected_problem(&dense);
  if (p.integer) fail_unsupported("%s: activation IntegerLinearSaturate with sparse weights", kOp);
  return p;
}

SparseFullyConnectedFilter::SparseFullyConnectedFilter(const Options& options, const FullyConnectedProblem& problem)
    : Filter(kKind, options),
      problem_(problem),
      bias_(problem.has_bias() ? Parameter(problem.b, options, "the bias") : Parameter()),
      scratch_(options) {
  const Packed packed(problem.w.data);
  check_rows(packed);
  const size_t rows = problem.outputs + 1, n = packed.header.nonzeros;
  weights_ = Buffer(options, (rows + 2 * n) * sizeof(uint32_t), "the sparse weights");
  uint32_t* starts = weights_.as<uint32_t>();
  float* values = reinterpret_cast<float*>(starts + rows + n);
  for (size_t o = 0; o < rows; ++o) starts[o] = packed.start(o);
  for (size_t k = 0; k < n; ++k) starts[rows + k] = packed.column(k);
  const void* from = packed.base + packed.offsets.values;
  switch (static_cast<BNNSDataType>(packed.header.type)) {
    case BNNSDataTypeFloat16:
      half_to_float(static_cast<const uint16_t*>(from), values, n);
      break;
    case BNNSDataTypeBFloat16:
      bfloat16_to_float(static_cast<const uint16_t*>(from), values, n);
      break;
    default:
      std::memcpy(values, from, n * sizeof(float));
  }
  starts_ = starts;
  columns_ = starts + rows;
  values_ = values;
  problem_.w.data = nullptr;  // the caller's memory is not used again
}

void SparseFullyConnectedFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  const FullyConnectedProblem& p = problem_;
  in_stride = input_batch_stride(in_stride, batch, p.x, kOp, "in_stride");
  out_stride = output_batch_stride(out_stride, batch, p.y, kOp, "out_stride");
  if (batch == 0) return;
  check_data(in, p.x.type, kOp, "in");
  check_data(out, p.y.type, kOp, "out");
  check_disjoint(in, batch_bytes(batch, in_stride, p.x, kOp, "in_stride"), "in", out,
                 batch_bytes(batch, out_stride, p.y, kOp, "out_stride"), "out", kOp);

  // Scratch: bias, samples as f32 (side by side in groups of `lanes`), and results unless y is dense f32.
  const size_t lanes = sparse_lanes(), left = batch % lanes;
  const size_t grouped = left >= kFewSamples ? batch + lanes - left : batch - left;  // padded to whole groups
  const Elements x(p.x), y(p.y), b = p.has_bias() ? Elements(p.b) : Elements();
  const bool in_place = y.direct(), read_place = x.direct();
  const size_t singles = batch > grouped ? batch - grouped : 0;
  const char* what = "samples of a sparse layer";
  const size_t x_floats = checked_mul(grouped + (read_place ? 0 : singles), p.inputs, what);
  const size_t y_floats = in_place ? 0 : checked_mul(batch, p.outputs, what);
  const size_t bias_floats = p.has_bias() ? p.outputs : 0;
  const SoftmaxRows rows(p.y);
  const size_t row_threads = threads_for(options_.n_threads, batch, batch * p.outputs * sizeof(float));
  const size_t row_floats = p.activation.is_rowwise() && rows.step > 1 ? rows.n * row_threads : 0;
  const ScratchShelf::Lease lease(scratch_,
                                  checked_mul(x_floats + y_floats + bias_floats + row_floats, sizeof(float), what));
  float *x_room = lease.as<float>(), *y_room = x_room + x_floats, *row_room = y_room + y_floats + bias_floats;
  const float* bias = p.has_bias() ? b.read(bias_.tensor().data, 0, p.outputs, y_room + y_floats) : nullptr;
  float* results = in_place ? static_cast<float*>(out) : y_room;
  const size_t result_stride = in_place ? out_stride : p.outputs;

  const size_t groups = grouped / lanes;
  parallel_for(groups, threads_for(options_.n_threads, groups, grouped * p.inputs), [&](size_t group, size_t) {
    float* to = x_room + group * lanes * p.inputs;
    float room[kBlock];
    for (size_t lane = 0; lane < lanes; ++lane) {
      const size_t n = group * lanes + lane;
      const void* sample = element_at(in, p.x.type, std::min(n, batch - 1) * in_stride);
      for (size_t i = 0; i < p.inputs; i += kBlock) {
        const size_t m = std::min(kBlock, p.inputs - i);
        const float* v = x.read(sample, i, m, room);
        for (size_t k = 0; k < m; ++k) to[(i + k) * lanes + lane] = n < batch ? v[k] : 0;
      }
    }
  });
  for (size_t n = grouped; n < batch && !read_place; ++n) {
    x.read(element_at(in, p.x.type, n * in_stride), 0, p.inputs, x_room + n * p.inputs);
  }
  const SparseRows weights{starts_, columns_, values_, bias};
  const size_t blocks = div_up(p.outputs, kOutputBlock), units = groups + singles, tasks = units * blocks;
  const size_t work = size_t{starts_[p.outputs]} * batch;
  parallel_for(tasks, threads_for(options_.n_threads, tasks, work), [&](size_t task, size_t) {
    const size_t unit = task / blocks, begin = task % blocks * kOutputBlock;
    const size_t end = std::min(p.outputs, begin + kOutputBlock);
    if (unit < groups) {
      const size_t n = unit * lanes;
      sparse_multiply(weights, begin, end, x_room + n * p.inputs, lanes, std::min(lanes, batch - n),
                      results + n * result_stride, result_stride);
      return;
    }
    const size_t n = grouped + unit - groups;
    const float* sample = read_place ? static_cast<const float*>(in) + n * in_stride : x_room + n * p.inputs;
    sparse_multiply(weights, begin, end, sample, 1, 1, results + n * result_stride, result_stride);
  });
  parallel_for(batch, row_threads, [&](size_t n, size_t worker) {
    float* values = results + n * result_stride;
    if (!p.activation.is_rowwise()) {
      if (!p.activation.is_identity()) activation_forward(p.activation, values, values, p.outputs);
    } else {
      for (size_t r = 0; r < rows.rows; ++r) {
        float* row = values + rows.first(r);
        if (rows.step == 1) {
          activation_forward(p.activation, row, row, rows.n);
          continue;
        }
        float* room = row_room + worker * rows.n;
        for (size_t i = 0; i < rows.n; ++i) room[i] = row[i * rows.step];
        activation_forward(p.activation, room, room, rows.n);
        for (size_t i = 0; i < rows.n; ++i) row[i * rows.step] = room[i];
      }
    }
    y.write(element_at(out, p.y.type, n * out_stride), 0, p.outputs, values);
  });
}

void SparseFullyConnectedFilter::backward(const BackwardCall&) {
  fail_unsupported("%s: sparse weights are for inference; make the layer with dense weights to train it", kOp);
}

}  // namespace bnns
