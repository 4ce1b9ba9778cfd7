// The C entry points of the LSTM.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/filter/nan_check.h"
#include "src/ops/dropout/dropout.h"
#include "src/ops/lstm/lstm.h"

namespace {

// BNNS_CHECK_NAN for a view with the extents of its three indices.
void check(const bnns::LstmProblem& problem, const bnns::LstmView& view, const char* field, size_t a, size_t b,
           size_t c) {
  if (!view.present()) return;
  bnns::Tensor t = bnns::vector_tensor(view.width, view.data);
  t.type = view.type;
  t.rank = 4;
  const size_t sizes[] = {view.width, c, b, a}, strides[] = {view.step, view.stride[2], view.stride[1], view.stride[0]};
  t.count = 1;
  for (uint8_t k = 0; k < 4; ++k) {
    t.size[k] = sizes[k], t.stride[k] = strides[k], t.axis[k] = k;
    t.count *= sizes[k];
  }
  t.dense = false;
  bnns::check_written(problem.text(), field, t, view.data);
}

}  // namespace

size_t BNNSComputeLSTMTrainingCacheCapacity(const BNNSLayerParametersLSTM* layer_params) noexcept {
  return bnns::guarded("BNNSComputeLSTMTrainingCacheCapacity", SIZE_MAX,
                       [&] { return bnns::lstm_cache_bytes(bnns::make_lstm_sizes(layer_params)); });
}

int BNNSDirectApplyLSTMBatchTrainingCaching(const BNNSLayerParametersLSTM* layer_params,
                                            const BNNSFilterParameters* filter_params, void* training_cache_ptr,
                                            const size_t training_cache_capacity) noexcept {
  return bnns::guarded_status("BNNSDirectApplyLSTMBatchTrainingCaching", [&] {
    const bnns::CallTimer timer("direct");
    const bnns::Options options = bnns::read_options(filter_params, bnns::kLstm);
    const bnns::LstmProblem problem = bnns::make_lstm_problem(layer_params);
    const bool drops = training_cache_ptr && problem.dropout > 0;
    const uint32_t seed = drops ? bnns::seed_from_system() : 0;
    bnns::lstm_forward(problem, options, training_cache_ptr, training_cache_capacity, seed);
    if (timer.active()) timer.finish(problem.text(), problem.B, bnns::kLstm);
    if (bnns::nan_check_wanted()) check(problem, problem.at.y, "output_desc.data_desc", 1, problem.T, problem.B);
  });
}

int BNNSDirectApplyLSTMBatchBackward(const BNNSLayerParametersLSTM* layer_params,
                                     const BNNSLayerParametersLSTM* layer_delta_params,
                                     const BNNSFilterParameters* filter_params, const void* training_cache_ptr,
                                     const size_t training_cache_capacity) noexcept {
  return bnns::guarded_status("BNNSDirectApplyLSTMBatchBackward", [&] {
    const bnns::CallTimer timer("direct_backward");
    const bnns::Options options = bnns::read_options(filter_params, bnns::kLstm);
    const bnns::LstmProblem problem = bnns::make_lstm_problem(layer_params);
    const bnns::LstmTensors deltas = bnns::make_lstm_gradients(problem, layer_delta_params);
    bnns::lstm_backward(problem, deltas, options, training_cache_ptr, training_cache_capacity);
    if (timer.active()) timer.finish(problem.text(), problem.B, bnns::kLstm);
    if (!bnns::nan_check_wanted()) return;
    check(problem, deltas.x, "gradient of input_desc.data_desc", 1, problem.T, problem.B);
    for (const bnns::LstmView& hw : deltas.hw)
      check(problem, hw, "gradient of hw_desc", problem.L, problem.D, problem.H);
  });
}
