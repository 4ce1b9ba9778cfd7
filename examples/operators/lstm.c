// cc -std=c99 lstm.c -o lstm -lbnns && ./lstm
// prints: h = 0.370 0.136 0.069, c at the end 0.139
// One unit, one feature, three steps: the state is carried along.
#include "tensor.h"

int main(void) {
  float x[3] = {1, 0, 0}, h[3], ones[1] = {1}, zeros[1] = {0}, h0[1] = {0}, c0[1] = {0}, hn[1], cn[1];
  BNNSLayerParametersLSTM p;
  memset(&p, 0, sizeof p);
  p.input_size = p.hidden_size = p.batch_size = p.num_layers = 1;
  p.seq_len = 3;
  p.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;                      // sigmoid gates, tanh
  p.input_descriptor.data_desc = tensor(BNNSDataLayoutSNE, x, 1, 1, 3, 0);  // features, batch, steps
  p.output_descriptor.data_desc = tensor(BNNSDataLayoutSNE, h, 1, 1, 3, 0);
  p.input_descriptor.hidden_desc = vec(1, h0);
  p.input_descriptor.cell_state_desc = vec(1, c0);
  p.output_descriptor.hidden_desc = vec(1, hn);
  p.output_descriptor.cell_state_desc = vec(1, cn);
  BNNSLSTMGateDescriptor* gates[4] = {&p.input_gate, &p.forget_gate, &p.candidate_gate, &p.output_gate};
  for (int g = 0; g < 4; g++) {
    gates[g]->iw_desc[0] = vec(1, ones);  // of the input
    gates[g]->hw_desc = vec(1, zeros);    // of the state before: none here
    gates[g]->b_desc = vec(1, zeros);
  }
  int status = BNNSDirectApplyLSTMBatchTrainingCaching(&p, NULL, NULL, 0);  // without a cache: inference
  printf("h = %.3f %.3f %.3f, c at the end %.3f\n", (double)h[0], (double)h[1], (double)h[2], (double)cn[0]);
  return status;
}
