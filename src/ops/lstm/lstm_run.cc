#include "src/ops/lstm/lstm_run.h"

#include <cmath>
#include <cstring>

#include "src/ops/dropout/dropout.h"

namespace bnns {
namespace {

constexpr uint64_t kCacheMagic = 0x31636d74736c6e62;  // "bnlstmc1"
constexpr size_t kBlockRows = 16;                     // of a task: fewer rows leave the GEMM's tile empty
constexpr size_t kWideStep = size_t{1} << 22;         // multiply-adds of a step, some 50 us: worth a meeting of threads
constexpr size_t kPieceElements = 262144;             // of B that the GEMM core reads in place (tile_plan.cc)

}  // namespace

LstmMemory::LstmMemory(const LstmProblem& p, void* base, bool keep) : keep_(keep), directions_(p.D) {
  const size_t rows = p.T * p.B, layers = keep ? p.L : 1;
  Carver carver(base);
  header = carver.take<LstmCacheHeader>(1);
  h0 = carver.take<float>(p.L * p.D * p.B * p.H);
  c0 = carver.take<float>(p.L * p.D * p.B * p.H);
  y_floats_ = round_up(rows * p.D * p.H, 16);
  y_ = carver.take<float>(y_floats_ * (keep ? p.L : std::min<size_t>(p.L, 2)));
  record_floats_ = round_up(rows * 4 * p.H, 16);
  const size_t records = layers * p.D;
  first_.a = carver.take<float>(records * record_floats_);
  first_.z = keep && !p.from_output ? carver.take<float>(records * record_floats_) : nullptr;
  first_.c = carver.take<float>(records * record_floats_ / 4);
  first_.ch = carver.take<float>(records * record_floats_ / 4);
  bytes_ = carver.used();
}

LstmRecord LstmMemory::record(size_t l, size_t d) const {
  const size_t at = ((keep_ ? l * directions_ : 0) + d) * record_floats_;
  return {first_.a + at, first_.z ? first_.z + at : nullptr, first_.c + at / 4, first_.ch + at / 4};
}

size_t lstm_cache_bytes(const LstmProblem& p) {
  return LstmMemory(p, nullptr, true).bytes();
}

LstmCacheHeader make_lstm_header(const LstmProblem& p, uint32_t seed) {
  LstmCacheHeader header;
  header.magic = kCacheMagic;
  const size_t sizes[] = {p.I, p.H, p.B, p.L, p.T, p.D};
  std::copy(std::begin(sizes), std::end(sizes), header.sizes);
  for (size_t t = 0; p.sequence.data && t < p.T; ++t) {  // FNV-1a over the active sequences
    header.rows ^= static_cast<uint64_t>(load_integer(p.sequence, p.sequence.data, t * p.sequence.stride[0])) + 1;
    header.rows *= 0x100000001b3;
  }
  header.dropout = p.dropout;
  header.seed = seed;
  header.kept = !p.from_output;
  return header;
}

void LstmRows::fill(const LstmProblem& p) {
  total = 0;
  for (size_t t = 0; t < p.T; ++t) {
    first[t] = total;
    total += p.sequence.data ? static_cast<size_t>(load_integer(p.sequence, p.sequence.data, t * p.sequence.stride[0]))
                             : p.B;
  }
  first[p.T] = total;
}

void LstmInput::look(const LstmProblem& p) {
  const LstmView& x = p.at.x;
  const bool one_stride = p.T == 1 || p.B == 1 || x.stride[1] == p.B * x.stride[2];
  staged = p.sequence.data || !one_stride || x.step != 1;
  const FloatType type = x.type == BNNSDataTypeFloat16    ? FloatType::f16
                         : x.type == BNNSDataTypeBFloat16 ? FloatType::bf16
                                                          : FloatType::f32;
  // A copy's address comes later; of a plan only the strides are looked at.
  lens = staged ? strided_lens(nullptr, FloatType::f32, static_cast<ptrdiff_t>(p.I), 1)
                : strided_lens(x.data, type, static_cast<ptrdiff_t>(p.B == 1 ? x.stride[1] : x.stride[2]), 1);
}

void LstmInput::load(const LstmProblem& p, const LstmRows& rows, float* buffer, size_t n_threads) {
  if (!staged) return;
  parallel_for(p.T, threads_for(n_threads, p.T, rows.total * p.I * sizeof(float)), [&](size_t t, size_t) {
    for (size_t b = 0; b < rows.active(t); ++b) p.at.x.load(0, t, b, buffer + (rows.first[t] + b) * p.I);
  });
  lens.data = buffer;
}

// One decision per element, numbered row by row; the layer is the pass of dropout's generator.
void lstm_drop(const LstmCacheHeader& header, size_t l, size_t rows, size_t width, const float* x, float* y,
               size_t n_threads) {
  const double rate = static_cast<double>(header.dropout);
  const auto threshold = static_cast<uint32_t>(std::ceil(rate * 0x1p32));
  const auto scale = static_cast<float>(1 / (1 - rate));
  const size_t total = rows * width, tasks = div_up(total, kDropoutBlock);
  parallel_for(tasks, threads_for(n_threads, tasks, 3 * total * sizeof(float)), [&](size_t task, size_t) {
    uint32_t buffer[kDropoutBlock + 2 * kDropoutGroup];
    const size_t first = task * kDropoutBlock, n = std::min(kDropoutBlock, total - first);
    const uint32_t* words = dropout_words(header.seed, l + 1, first, n, buffer);
    dropout_select(words, threshold, scale, x + first, y + first, n);
  });
}

LstmTasks::LstmTasks(const LstmProblem& p, size_t threads)
    : blocks(div_up(p.B, kBlockRows)), block_rows(div_up(p.B, blocks)) {
  blocks = div_up(p.B, block_rows);
  count = p.D * blocks;
  const size_t step = block_rows * 4 * p.H * p.H;  // multiply-adds
  // Many threads, few tasks and long steps: one task after the other with all threads inside is faster.
  const bool wide = step >= kWideStep && threads >= 2 * count;
  workers = wide ? 1 : threads_for(threads, count, count * p.T * step / 2);
  inside = wide ? threads : 1;
}

LstmPanels::LstmPanels(size_t depth, size_t columns)
    : depth(depth),
      columns(columns),
      width(std::min(round_up(columns, 16), std::max<size_t>(64, kPieceElements / depth / 64 * 64))) {}

void LstmPanels::pack_from(const float* w, size_t row_stride, size_t depth_stride) const {
  const Lens source =
      strided_lens(w, FloatType::f32, static_cast<ptrdiff_t>(row_stride), static_cast<ptrdiff_t>(depth_stride));
  for (size_t piece = 0; piece < pieces(); ++piece) {
    const Range rows{piece * width, std::min(columns, (piece + 1) * width)};
    pack_strided(source, rows, {0, depth}, {data + piece * piece_floats(), width + 16, piece_floats()});
  }
}

void LstmPanels::plan(LstmEngine* engine, const LstmRows& rows, const LstmProblem& p, size_t a_stride,
                      size_t c_stride) const {
  const LstmTasks& tasks = engine->tasks;
  const Lens a = strided_lens(nullptr, FloatType::f32, static_cast<ptrdiff_t>(a_stride), 1);
  for (size_t t = 0; t < p.T; ++t) {
    if (t > 0 && rows.active(t) == rows.active(t - 1)) continue;
    for (size_t first = 0; first < p.B; first += tasks.block_rows) {
      const size_t m = rows.active(t, {first, std::min(p.B, first + tasks.block_rows)});
      for (size_t piece = 0; piece < pieces(); ++piece) {
        const GemmProblem product{m, std::min(width, columns - piece * width), depth, GemmInit::overwrite};
        const GemmOutput c{nullptr, c_stride, 1};
        engine->step_bytes =
            std::max(engine->step_bytes, gemm_workspace_bytes(product, a, lens(piece), c, tasks.inside));
      }
    }
  }
}

void LstmPanels::multiply(const LstmEngine& engine, size_t worker, size_t m, const float* a, size_t a_stride, float* c,
                          size_t c_stride, bool accumulate) const {
  for (size_t piece = 0; piece < pieces(); ++piece) {
    const GemmProblem product{m, std::min(width, columns - piece * width), depth,
                              accumulate ? GemmInit::accumulate : GemmInit::overwrite};
    gemm(product, strided_lens(a, FloatType::f32, static_cast<ptrdiff_t>(a_stride), 1), lens(piece),
         {c + piece * width, c_stride, 1}, nullptr, {}, engine.steps + worker * engine.step_bytes, engine.tasks.inside);
  }
}

void lstm_join_input_weights(const LstmProblem& p, size_t l, size_t d, float* w, size_t n_threads) {
  const size_t K = p.input_width(l), layer = p.input_weights_layer(l);
  parallel_for(4 * p.H, threads_for(n_threads, 4 * p.H, 4 * p.H * K * sizeof(float)),
               [&](size_t r, size_t) { p.input_weights(p.at, r / p.H, l).load(layer, d, r % p.H, w + r * K); });
}

void lstm_join_state_weights(const LstmProblem& p, const LstmView (&gates)[kGates], size_t l, size_t d, float* w,
                             size_t n_threads) {
  parallel_for(4 * p.H, threads_for(n_threads, 4 * p.H, 4 * p.H * p.H * sizeof(float)), [&](size_t r, size_t) {
    const LstmView& gate = gates[r / p.H];
    gate.present() ? gate.load(l, d, r % p.H, w + r * p.H) : void(std::fill_n(w + r * p.H, p.H, 0.0f));
  });
}

}  // namespace bnns
