// Losses with their gradients in one call, beside PyTorch's forward and backward of the same loss.

#include "bench/description.h"

namespace bnns::bench {
namespace {

struct Loss {
  const char* name;
  BNNSLossFunction function;
  bool one_hot;  // labels: one 1 per row, else numbers in [-1, 1)
};
constexpr Loss kSoftmax = {"softmax cross-entropy", BNNSLossFunctionSoftmaxCrossEntropy, true};
constexpr Loss kOthers[] = {{"sigmoid cross-entropy", BNNSLossFunctionSigmoidCrossEntropy, true},
                            {"mean square error", BNNSLossFunctionMeanSquareError, false},
                            {"Huber", BNNSLossFunctionHuber, false},
                            {"mean absolute error", BNNSLossFunctionMeanAbsoluteError, false}};

void complete(Row& r, const Loss& loss, size_t batch, size_t n, Type type) {
  r.bytes = 3.0 * double(kTypeBytes[int(type)]) * double(batch * n);
  r.fill = [=](Data& d) {
    d.add("x", {batch, n}, type).fill(4), d.add("labels", {batch, n}, type), d.add("dx", {batch, n}, type);
    d.add("loss", {1}, type);
    if (!loss.one_hot) d["labels"].fill(1, 3);
    for (size_t b = 0; loss.one_hot && b < batch; ++b) d["labels"].set(b * n + b * 7919 % n, 1);
  };
  r.open = [=](Case& c, size_t threads) {
    BNNSLayerParametersLossHuber p;
    std::memset(&p, 0, sizeof p);
    p.function = loss.function;
    p.reduction = BNNSLossReductionMean;
    p.i_desc = describe(BNNSDataLayoutVector, {n}, type);
    p.o_desc = describe(BNNSDataLayoutVector, {1}, type);
    p.huber_delta = loss.function == BNNSLossFunctionHuber ? 1.0f : 0.0f;
    const BNNSFilterParameters o = options(threads);
    const Filter filter = own(BNNSFilterCreateLayerLoss(&p, &o));
    const auto call = [=](Data& d) {
      auto delta = describe(BNNSDataLayoutVector, {n}, type, d["dx"].data());
      check(BNNSLossFilterApplyBatch(filter.get(), batch, d["x"].data(), n, d["labels"].data(), n, nullptr, 0,
                                     d["loss"].data(), &delta, n));
    };
    c.contenders.push_back({"ours", call, "dx"});
  };
}

void add(const Loss& loss, size_t batch, size_t n, bool quick) {
  Row r;
  r.family = "loss", r.op = loss.name, r.direction = "forward and gradient";
  r.shape = std::to_string(batch) + "x" + std::to_string(n);
  r.quick = quick;
  complete(r, loss, batch, n, Type::f32);
  rows().push_back(std::move(r));
}

Row make(const Description& d) {
  constexpr const char* ops[] = {"softmax", "sigmoid", "square", "huber", "absolute"};
  const size_t op = find_name(ops, d.op);
  const Loss& loss = op == 0 ? kSoftmax : kOthers[op - 1];
  Row r = start(d);
  complete(r, loss, d("n"), d("c"), d.type);
  r.op = loss.name;
  return r;
}

}  // namespace

void add_loss_rows() {
  makers()["loss"] = make;
  add(kSoftmax, 1, 10, true);
  add(kSoftmax, 32, 10, true);
  add(kSoftmax, 128, 10, true);
  add(kSoftmax, 128, 1000, true);
  add(kSoftmax, 32, 50257, false);
  for (const Loss& loss : kOthers) {
    add(loss, 128, 10, false);
    add(loss, 128, 1000, true);
  }
}

}  // namespace bnns::bench
