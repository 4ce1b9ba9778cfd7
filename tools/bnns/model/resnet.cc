#include "tools/bnns/model/resnet.h"

namespace bnns::tool {
namespace {

struct BlockSizes {
  ConvNorm::Sizes first, second, shortcut;
  bool projected;
};

struct Plan {
  ConvNorm::Sizes stem;
  std::array<BlockSizes, ResNet::kBlocks> blocks;
  std::vector<NamedArray> shapes;
};

std::string block_name(std::size_t k) {
  return "layer" + std::to_string(k + 1) + ".0.";
}

Plan plan_of(const Inputs& x, std::size_t classes) {
  Plan plan{{x.rows, x.columns, x.channels, ResNet::kChannels[0]}, {}, {}};
  ConvNorm::add_shapes(plan.shapes, "conv1", "bn1", plan.stem);
  ConvNorm::Sizes in = plan.stem;
  for (std::size_t k = 0; k < ResNet::kBlocks; ++k) {
    BlockSizes& b = plan.blocks[k];
    const std::size_t out = ResNet::kChannels[k], stride = k == 0 ? 1 : 2;
    b.first = {in.out_rows(), in.out_columns(), in.out, out, 3, stride};
    b.second = {b.first.out_rows(), b.first.out_columns(), out, out, 3, 1, false};
    b.shortcut = {b.first.rows, b.first.columns, in.out, out, 1, stride, false};
    b.projected = stride != 1 || in.out != out;
    const std::string name = block_name(k);
    ConvNorm::add_shapes(plan.shapes, name + "conv1", name + "bn1", b.first);
    ConvNorm::add_shapes(plan.shapes, name + "conv2", name + "bn2", b.second);
    if (b.projected) ConvNorm::add_shapes(plan.shapes, name + "downsample.0", name + "downsample.1", b.shortcut);
    in = b.second;
  }
  plan.shapes.push_back({"fc.weight", describe(BNNSDataLayoutRowMajorMatrix, {in.out, classes})});
  plan.shapes.push_back({"fc.bias", vector(classes)});
  return plan;
}

}  // namespace

ResNet::ResNet(const Inputs& inputs, std::size_t classes, std::size_t max_batch, std::uint64_t seed,
               std::size_t threads)
    : Network(plan_of(inputs, classes).shapes, classes, max_batch, threads) {
  const Generator generator = make_generator(seed);
  const Plan plan = plan_of(inputs, classes);
  std::size_t next = 0;
  const auto make = [&](ConvNorm& layer, const ConvNorm::Sizes& sizes, const std::string& norm) {
    layer.create(parameters_, next, sizes, norm, options_, generator.get());
    next += ConvNorm::kParameters;
  };
  const auto room = [&](Value& value, std::size_t size) {
    value.y.resize(max_batch * size);
    value.dy.resize(max_batch * size);
  };
  make(stem_, plan.stem, "bn1");
  room(stem_out_, plan.stem.outputs());
  for (std::size_t k = 0; k < kBlocks; ++k) {
    Block& b = blocks_[k];
    const BlockSizes& sizes = plan.blocks[k];
    const std::string name = block_name(k);
    make(b.first, sizes.first, name + "bn1");
    make(b.second, sizes.second, name + "bn2");
    b.projected = sizes.projected;
    if (b.projected) make(b.shortcut, sizes.shortcut, name + "downsample.1");
    const std::size_t outputs = sizes.second.outputs();
    for (Value* value : {&b.middle, &b.sum, &b.out}) room(*value, outputs);
    if (b.projected) room(b.side, outputs);
    BNNSArithmeticBinary operands{};
    operands.in1 = operands.in2 = operands.out = vector(outputs);
    operands.in1_type = operands.in2_type = operands.out_type = BNNSSample;
    BNNSLayerParametersArithmetic add{};
    add.arithmetic_function = BNNSArithmeticAdd;
    add.arithmetic_function_fields = &operands;
    add.activation.function = BNNSActivationFunctionRectifiedLinear;
    b.add = created("BNNSFilterCreateLayerArithmetic", BNNSFilterCreateLayerArithmetic(&add, &options_));
  }
  const ConvNorm::Sizes& top = plan.blocks[kBlocks - 1].second;
  room(mean_, top.out);
  BNNSLayerParametersPooling pooling{};
  pooling.i_desc = image(top.columns, top.rows, top.out);
  pooling.o_desc = image(1, 1, top.out);
  pooling.pooling_function = BNNSPoolingFunctionAverageCountExcludePadding;
  pooling.k_width = pooling.x_stride = top.columns;
  pooling.k_height = pooling.y_stride = top.rows;
  pooling_ = created("BNNSFilterCreateLayerPooling", BNNSFilterCreateLayerPooling(&pooling, &options_));
  last_ = next;
  full_ = create_last(last_, top.out, generator.get());
}

std::vector<ConvNorm*> ResNet::layers() {
  std::vector<ConvNorm*> all{&stem_};
  for (Block& b : blocks_) {
    all.push_back(&b.first);
    all.push_back(&b.second);
    if (b.projected) all.push_back(&b.shortcut);
  }
  return all;
}

std::vector<NamedArray> ResNet::state() {
  std::vector<NamedArray> all = Network::state();
  for (ConvNorm* layer : layers()) layer->add_moving(all);
  return all;
}

std::vector<BNNSNDArrayDescriptor> ResNet::statistics() {
  std::vector<BNNSNDArrayDescriptor> all;
  for (ConvNorm* layer : layers()) layer->add_moving(all);
  return all;
}

void ResNet::forward(const float* x, std::size_t batch, bool training) {
  stem_.forward(x, batch, stem_out_.y.data(), training);
  const float* in = stem_out_.y.data();
  for (Block& b : blocks_) {
    b.first.forward(in, batch, b.middle.y.data(), training);
    b.second.forward(b.middle.y.data(), batch, b.sum.y.data(), training);
    if (b.projected) b.shortcut.forward(in, batch, b.side.y.data(), training);
    const void* terms[] = {b.sum.y.data(), b.projected ? b.side.y.data() : in};
    const std::size_t size = b.second.sizes().outputs(), strides[] = {size, size};
    check("BNNSArithmeticFilterApplyBatch",
          BNNSArithmeticFilterApplyBatch(b.add.get(), batch, 2, terms, strides, b.out.y.data(), size));
    in = b.out.y.data();
  }
  const ConvNorm::Sizes& top = blocks_[kBlocks - 1].second.sizes();
  check("BNNSPoolingFilterApplyBatch",
        BNNSPoolingFilterApplyBatch(pooling_.get(), batch, in, top.outputs(), mean_.y.data(), top.out, nullptr, 0));
  apply_last(full_, mean_.y.data(), top.out, batch);
}

void ResNet::backward(Block& b, Value& in, std::size_t batch) {
  const std::size_t size = b.second.sizes().outputs(), strides[] = {size, size};
  const void* terms[] = {b.sum.y.data(), b.projected ? b.side.y.data() : in.y.data()};
  BNNSNDArrayDescriptor dsum = vector(size, b.sum.dy.data()), dout = vector(size, b.out.dy.data());
  BNNSNDArrayDescriptor dside = vector(size, b.projected ? b.side.dy.data() : in.dy.data());
  BNNSNDArrayDescriptor* deltas[] = {&dsum, &dside};
  check("BNNSArithmeticFilterApplyBackwardBatch",
        BNNSArithmeticFilterApplyBackwardBatch(b.add.get(), batch, 2, terms, strides, deltas, strides, b.out.y.data(),
                                               size, &dout, size));
  if (b.projected) {
    b.shortcut.backward(in.y.data(), batch, b.side.y.data(), b.side.dy.data(), in.dy.data());
    gradients_ready(b.shortcut.first(), ConvNorm::kParameters);
  }
  b.second.backward(b.middle.y.data(), batch, b.sum.y.data(), b.sum.dy.data(), b.middle.dy.data());
  gradients_ready(b.second.first(), ConvNorm::kParameters);
  // The gradient of the other side is there already.
  b.first.backward(in.y.data(), batch, b.middle.y.data(), b.middle.dy.data(), in.dy.data(), true);
  gradients_ready(b.first.first(), ConvNorm::kParameters);
}

void ResNet::backward(const float* x, std::size_t batch) {
  Block& last = blocks_[kBlocks - 1];
  const ConvNorm::Sizes& top = last.second.sizes();
  apply_last_backward(full_, last_, mean_.y.data(), mean_.dy.data(), top.out, batch);
  BNNSNDArrayDescriptor dmean = image(1, 1, top.out, mean_.dy.data());
  BNNSNDArrayDescriptor dtop = image(top.columns, top.rows, top.out, last.out.dy.data());
  check("BNNSPoolingFilterApplyBackwardBatch",
        BNNSPoolingFilterApplyBackwardBatch(pooling_.get(), batch, nullptr, 0, &dtop, top.outputs(), nullptr, 0, &dmean,
                                            top.out, nullptr, nullptr, 0));
  for (std::size_t k = kBlocks; k-- > 0;) backward(blocks_[k], k == 0 ? stem_out_ : blocks_[k - 1].out, batch);
  stem_.backward(x, batch, stem_out_.y.data(), stem_out_.dy.data(), nullptr);  // the pictures need no gradient
  gradients_ready(stem_.first(), ConvNorm::kParameters);
}

}  // namespace bnns::tool
