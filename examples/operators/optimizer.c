// cc -std=c99 optimizer.c -o optimizer -lbnns && ./optimizer
// prints: SGD = 0.5 2.5
// prints: Adam = 0.400 2.600
// One step of SGD and one of Adam.
#include "tensor.h"

int main(void) {
  float w[2] = {1, 2}, g[2] = {5, -5}, m[4] = {0, 0, 0, 0};
  BNNSNDArrayDescriptor parameter = vec(2, w), gradient = vec(2, g), moment[2] = {vec(2, m), vec(2, m + 2)};
  BNNSNDArrayDescriptor *parameters[1] = {&parameter}, *moments[2] = {&moment[0], &moment[1]};
  const BNNSNDArrayDescriptor* gradients[1] = {&gradient};

  BNNSOptimizerSGDMomentumFields sgd;
  memset(&sgd, 0, sizeof sgd);
  sgd.learning_rate = 0.1f;
  sgd.gradient_scale = 1;  // a gradient_scale of 0 would mean that nothing is learnt
  int status = BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &sgd, 1, parameters, gradients, NULL, NULL);
  show("SGD", w, 2);

  BNNSOptimizerAdamFields adam;
  memset(&adam, 0, sizeof adam);
  adam.learning_rate = 0.1f;
  adam.beta1 = 0.9f;
  adam.beta2 = 0.999f;
  adam.epsilon = 1e-8f;
  adam.gradient_scale = 1;
  adam.time_step = 1;  // you count the steps, from 1
  status |= BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam, 1, parameters, gradients, moments, NULL);
  printf("Adam = %.3f %.3f\n", (double)w[0], (double)w[1]);
  return status;
}
