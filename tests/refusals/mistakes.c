// Likely mistakes of a program in C, one per process. refusals_test.py runs them and reads stderr.
//   mistakes --list        "number operator field" per line
//   mistakes N [REPEAT]    makes mistake N; exit code 0 if the call was refused each time
//   mistakes callback      makes mistake 0 with a log callback, which writes to stdout
//   mistakes probe         makes many refusals of many kinds
//   mistakes fine          a call that is right, for the environment's settings

#pragma GCC diagnostic ignored "-Wnonnull"  // NULL where it is forbidden is one of the mistakes

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"

static float data[4096];

static BNNSNDArrayDescriptor vector(size_t n, void* at) {
  BNNSNDArrayDescriptor d;
  memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = n;
  d.data_type = BNNSDataTypeFloat32;
  d.data = at;
  return d;
}

static BNNSNDArrayDescriptor matrix(size_t columns, size_t rows, void* at) {
  BNNSNDArrayDescriptor d = vector(columns, at);
  d.layout = BNNSDataLayoutRowMajorMatrix;
  d.size[1] = rows;
  return d;
}

static BNNSNDArrayDescriptor image(size_t width, size_t height, size_t channels, void* at) {
  BNNSNDArrayDescriptor d = matrix(width, height, at);
  d.layout = BNNSDataLayoutImageCHW;
  d.size[2] = channels;
  return d;
}

static BNNSNDArrayDescriptor kernels(size_t k, size_t in, size_t out, void* at) {
  BNNSNDArrayDescriptor d = image(k, k, in, at);
  d.layout = BNNSDataLayoutConvolutionWeightsOIHW;
  d.size[3] = out;
  return d;
}

// The right layers, which each mistake spoils in one place.
static BNNSLayerParametersFullyConnected dense(void) {
  BNNSLayerParametersFullyConnected layer;
  memset(&layer, 0, sizeof layer);
  layer.i_desc = vector(4, NULL);
  layer.o_desc = vector(3, NULL);
  layer.w_desc = matrix(4, 3, data);
  layer.bias = vector(3, data + 100);
  return layer;
}

static BNNSLayerParametersConvolution convolution(void) {
  BNNSLayerParametersConvolution layer;
  memset(&layer, 0, sizeof layer);
  layer.i_desc = image(8, 8, 2, NULL);
  layer.o_desc = image(6, 6, 4, NULL);
  layer.w_desc = kernels(3, 2, 4, data);
  layer.x_stride = layer.y_stride = 1;
  return layer;
}

static BNNSLayerParametersPooling pooling(void) {
  BNNSLayerParametersPooling layer;
  memset(&layer, 0, sizeof layer);
  layer.i_desc = image(8, 8, 2, NULL);
  layer.o_desc = image(4, 4, 2, NULL);
  layer.pooling_function = BNNSPoolingFunctionMax;
  layer.k_width = layer.k_height = layer.x_stride = layer.y_stride = 2;
  return layer;
}

static BNNSLayerParametersLossSoftmaxCrossEntropy loss(void) {
  BNNSLayerParametersLossSoftmaxCrossEntropy layer;
  memset(&layer, 0, sizeof layer);
  layer.function = BNNSLossFunctionSoftmaxCrossEntropy;
  layer.i_desc = vector(10, NULL);
  layer.o_desc = vector(1, NULL);
  layer.reduction = BNNSLossReductionMean;
  return layer;
}

static BNNSLayerParametersNormalization normalization(void) {
  BNNSLayerParametersNormalization layer;
  memset(&layer, 0, sizeof layer);
  layer.i_desc = layer.o_desc = image(4, 4, 2, NULL);
  layer.beta_desc = layer.gamma_desc = vector(2, data);
  layer.momentum = 0.9f;
  return layer;
}

static BNNSFilter make_dense(void) {
  const BNNSLayerParametersFullyConnected layer = dense();
  return BNNSFilterCreateLayerFullyConnected(&layer, NULL);
}

// Each returns 1 if the call was refused.
static int dense_refused(BNNSLayerParametersFullyConnected layer) {
  return BNNSFilterCreateLayerFullyConnected(&layer, NULL) == NULL;
}
static int convolution_refused(BNNSLayerParametersConvolution layer) {
  return BNNSFilterCreateLayerConvolution(&layer, NULL) == NULL;
}
static int pooling_refused(BNNSLayerParametersPooling layer) {
  return BNNSFilterCreateLayerPooling(&layer, NULL) == NULL;
}

static int weights_too_narrow(void) {
  BNNSLayerParametersFullyConnected layer = dense();
  layer.w_desc.size[0] = 3;
  return dense_refused(layer);
}
static int weights_transposed(void) {
  BNNSLayerParametersFullyConnected layer = dense();
  layer.w_desc = matrix(3, 4, data);
  return dense_refused(layer);
}
static int weights_as_vector(void) {
  BNNSLayerParametersFullyConnected layer = dense();
  layer.w_desc = vector(12, data);
  return dense_refused(layer);
}
static int weights_missing(void) {
  BNNSLayerParametersFullyConnected layer = dense();
  layer.w_desc.data = NULL;
  return dense_refused(layer);
}
static int type_forgotten(void) {
  BNNSLayerParametersFullyConnected layer = dense();
  layer.i_desc.data_type = (BNNSDataType)0;
  return dense_refused(layer);
}
static int layout_forgotten(void) {
  BNNSLayerParametersFullyConnected layer = dense();
  layer.o_desc.layout = (BNNSDataLayout)0;
  return dense_refused(layer);
}
static int size_forgotten(void) {
  BNNSLayerParametersFullyConnected layer = dense();
  layer.i_desc.size[0] = 0;
  return dense_refused(layer);
}
static int bias_too_short(void) {
  BNNSLayerParametersFullyConnected layer = dense();
  layer.bias.size[0] = 4;
  return dense_refused(layer);
}
static int layer_is_null(void) {
  return BNNSFilterCreateLayerFullyConnected(NULL, NULL) == NULL;
}
static int activation_unknown(void) {
  BNNSLayerParametersFullyConnected layer = dense();
  layer.activation.function = (BNNSActivationFunction)77;
  return dense_refused(layer);
}
static int flags_unknown(void) {
  const BNNSLayerParametersFullyConnected layer = dense();
  BNNSFilterParameters parameters;
  memset(&parameters, 0, sizeof parameters);
  parameters.flags = 6;
  return BNNSFilterCreateLayerFullyConnected(&layer, &parameters) == NULL;
}
static int image_as_vector(void) {
  BNNSLayerParametersConvolution layer = convolution();
  layer.i_desc = vector(128, NULL);
  return convolution_refused(layer);
}
static int kernels_as_matrix(void) {
  BNNSLayerParametersConvolution layer = convolution();
  layer.w_desc = matrix(18, 4, data);
  return convolution_refused(layer);
}
static int kernels_of_other_channels(void) {
  BNNSLayerParametersConvolution layer = convolution();
  layer.w_desc.size[2] = 3;
  return convolution_refused(layer);
}
static int output_without_padding(void) {
  BNNSLayerParametersConvolution layer = convolution();
  layer.o_desc = image(8, 8, 4, NULL);
  return convolution_refused(layer);
}
static int stride_of_other_output(void) {
  BNNSLayerParametersConvolution layer = convolution();
  layer.x_stride = 2;
  return convolution_refused(layer);
}
static int groups_do_not_divide(void) {
  BNNSLayerParametersConvolution layer = convolution();
  layer.groups = 3;
  return convolution_refused(layer);
}
static int pooling_of_other_channels(void) {
  BNNSLayerParametersPooling layer = pooling();
  layer.o_desc.size[2] = 4;
  return pooling_refused(layer);
}
static int window_forgotten(void) {
  BNNSLayerParametersPooling layer = pooling();
  layer.k_width = 0;
  return pooling_refused(layer);
}
static int pooling_unknown(void) {
  BNNSLayerParametersPooling layer = pooling();
  layer.pooling_function = (BNNSPoolingFunction)9;
  return pooling_refused(layer);
}
static int loss_unknown(void) {
  BNNSLayerParametersLossSoftmaxCrossEntropy layer = loss();
  layer.function = (BNNSLossFunction)0;
  return BNNSFilterCreateLayerLoss(&layer, NULL) == NULL;
}
static int labels_missing(void) {
  const BNNSLayerParametersLossSoftmaxCrossEntropy layer = loss();
  return BNNSLossFilterApplyBatch(BNNSFilterCreateLayerLoss(&layer, NULL), 2, data, 10, NULL, 10, NULL, 0, data + 200,
                                  NULL, 0) != 0;
}
static int weights_of_other_count(void) {
  const BNNSLayerParametersLossSoftmaxCrossEntropy layer = loss();
  return BNNSLossFilterApplyBatch(BNNSFilterCreateLayerLoss(&layer, NULL), 2, data, 10, data + 100, 10, data + 300, 7,
                                  data + 200, NULL, 0) != 0;
}
static int moving_mean_too_short(void) {
  BNNSLayerParametersNormalization layer = normalization();
  layer.moving_mean_desc = vector(1, data);
  layer.moving_variance_desc = vector(2, data);
  return BNNSFilterCreateLayerNormalization(BNNSBatchNorm, &layer, NULL) == NULL;
}
static int gradient_before_training(void) {
  const BNNSLayerParametersNormalization layer = normalization();
  BNNSNDArrayDescriptor dx = image(4, 4, 2, data), dy = image(4, 4, 2, data + 500);
  BNNSFilter filter = BNNSFilterCreateLayerNormalization(BNNSBatchNorm, &layer, NULL);
  return BNNSNormalizationFilterApplyBackwardBatch(filter, 1, &dx, 32, data + 900, 32, &dy, 32, NULL, NULL) != 0;
}
static int handle_is_null(void) {
  return BNNSFilterApply(NULL, data, data + 100) != 0;
}
static int wrong_kind_of_filter(void) {
  return BNNSPoolingFilterApplyBatch(make_dense(), 1, data, 0, data + 100, 0, NULL, 0) != 0;
}
static int input_missing(void) {
  return BNNSFilterApplyBatch(make_dense(), 2, NULL, 4, data + 100, 3) != 0;
}
static int output_stride_too_short(void) {
  return BNNSFilterApplyBatch(make_dense(), 2, data, 4, data + 100, 2) != 0;
}
static int gradient_of_other_size(void) {
  BNNSNDArrayDescriptor dx = vector(4, data), dy = vector(4, data + 300);
  return BNNSFilterApplyBackwardBatch(make_dense(), 2, data + 500, 4, &dx, 4, NULL, 0, &dy, 4, NULL, NULL) != 0;
}
static int integers_to_an_optimizer(void) {
  BNNSNDArrayDescriptor w = vector(4, data), g = vector(4, data + 300);
  BNNSNDArrayDescriptor* parameters[] = {&w};
  const BNNSNDArrayDescriptor* gradients[] = {&g};
  BNNSOptimizerSGDMomentumFields fields;
  memset(&fields, 0, sizeof fields);
  fields.learning_rate = 0.1f;
  fields.gradient_scale = 1;
  w.data_type = BNNSDataTypeInt32;
  return BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &fields, 1, parameters, gradients, NULL, NULL) != 0;
}
static int accumulators_missing(void) {
  BNNSNDArrayDescriptor w = vector(4, data), g = vector(4, data + 300);
  BNNSNDArrayDescriptor* parameters[] = {&w};
  const BNNSNDArrayDescriptor* gradients[] = {&g};
  BNNSOptimizerSGDMomentumFields fields;
  memset(&fields, 0, sizeof fields);
  fields.learning_rate = 0.1f;
  fields.gradient_scale = 1;
  fields.momentum = 0.9f;
  return BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &fields, 1, parameters, gradients, NULL, NULL) != 0;
}
static int copy_of_other_shape(void) {
  BNNSNDArrayDescriptor to = matrix(3, 4, data), from = matrix(4, 3, data + 300);
  return BNNSCopy(&to, &from, NULL) != 0;
}
static int softmax_of_integers(void) {
  BNNSLayerParametersActivation layer;
  memset(&layer, 0, sizeof layer);
  layer.i_desc = layer.o_desc = vector(10, NULL);
  layer.i_desc.data_type = BNNSDataTypeIndexed8;
  layer.activation.function = BNNSActivationFunctionSoftmax;
  return BNNSFilterCreateLayerActivation(&layer, NULL) == NULL;
}

// What stderr must name: the operator, or the entry point where a handle is not one, and the field with its value.
static const struct {
  int (*make)(void);
  const char *name, *says;
} mistakes[] = {
    {weights_too_narrow, "fully_connected", "w_desc.size[0] is 3"},
    {weights_transposed, "fully_connected", "w_desc.size[1] is 4"},
    {weights_as_vector, "fully_connected", "w_desc.layout is BNNSDataLayoutVector (0x10000)"},
    {weights_missing, "fully_connected", "w_desc.data is NULL"},
    {type_forgotten, "fully_connected", "i_desc.data_type is 0x0, which is no BNNSDataType"},
    {layout_forgotten, "fully_connected", "o_desc.layout is 0x0, which is no BNNSDataLayout"},
    {size_forgotten, "fully_connected", "i_desc.size[0] is 0"},
    {bias_too_short, "fully_connected", "bias has 4 elements"},
    {layer_is_null, "fully_connected", "layer_params is NULL"},
    {activation_unknown, "fully_connected", "activation.function is 77, which is no BNNSActivationFunction"},
    {flags_unknown, "fully_connected", "filter_params.flags is 0x6"},
    {image_as_vector, "convolution", "i_desc.layout is BNNSDataLayoutVector (0x10000)"},
    {kernels_as_matrix, "convolution", "w_desc.layout is BNNSDataLayoutRowMajorMatrix (0x20000)"},
    {kernels_of_other_channels, "convolution", "w_desc.size[2] is 3"},
    {output_without_padding, "convolution", "width: 8 pixels of i_desc"},
    {stride_of_other_output, "convolution", "width: 8 pixels of i_desc"},
    {groups_do_not_divide, "convolution", "groups is 3"},
    {pooling_of_other_channels, "pooling", "o_desc has 4 channels"},
    {window_forgotten, "pooling", "k_width is 0"},
    {pooling_unknown, "pooling", "pooling_function is 9, which is no BNNSPoolingFunction"},
    {loss_unknown, "loss", "function is 0, which is no BNNSLossFunction"},
    {labels_missing, "loss", "labels is NULL"},
    {weights_of_other_count, "loss", "weights_size is 7"},
    {moving_mean_too_short, "normalization", "moving_mean_desc has 1 elements"},
    {gradient_before_training, "normalization", "training = true"},
    {handle_is_null, "BNNSFilterApply", "filter is NULL"},
    {wrong_kind_of_filter, "BNNSPoolingFilterApplyBatch", "filter is of kind fully_connected"},
    {input_missing, "fully_connected", "in is NULL"},
    {output_stride_too_short, "fully_connected", "out_stride is 2"},
    {gradient_of_other_size, "fully_connected", "out_delta has 4 elements"},
    {integers_to_an_optimizer, "optimizer", "parameters[0] has type i32"},
    {accumulators_missing, "optimizer", "accumulators is NULL"},
    {copy_of_other_shape, "copy", "dest"},
    {softmax_of_integers, "activation", "i_desc has type indexed8"},
};
enum { kCount = sizeof mistakes / sizeof mistakes[0] };

static void receive(BNNSExtLogLevel level, const char* message, void* user) {
  printf("%s %u %s\n", (const char*)user, (unsigned)level, message);
}

// The same mistake with a thousand numbers is one kind; a thousand texts are bounded.
static void probe(void) {
  BNNSLayerParametersFullyConnected layer = dense();
  for (size_t i = 0; i < 1000; ++i) {
    layer.w_desc.size[0] = 5 + i;
    dense_refused(layer);
  }
  for (unsigned i = 0; i < 1000; ++i) {
    char name[] = "isa_aa";
    name[4] = (char)('a' + i % 26), name[5] = (char)('a' + i / 26 % 26);
    BNNSExtSetMaxISA(name);
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (strcmp(argv[1], "--list") == 0) {
    for (int i = 0; i < kCount; ++i) printf("%d\t%s\t%s\n", i, mistakes[i].name, mistakes[i].says);
    return 0;
  }
  if (strcmp(argv[1], "callback") == 0) {
    BNNSExtSetLogCallback(receive, "told");
    return mistakes[0].make() && mistakes[0].make() ? 0 : 1;
  }
  if (strcmp(argv[1], "probe") == 0) {
    probe();
    return 0;
  }
  if (strcmp(argv[1], "fine") == 0) return BNNSFilterApply(make_dense(), data, data + 200);
  const int number = atoi(argv[1]), repeat = argc > 2 ? atoi(argv[2]) : 1;
  if (number < 0 || number >= kCount) return 2;
  for (int i = 0; i < repeat; ++i) {
    if (!mistakes[number].make()) return 1;
  }
  return 0;
}
