// Descriptors of the 2016 interface in terms of today's.
#pragma once

#include <cstring>

#include "bnns/bnns.h"

namespace bnns {

inline BNNSNDArrayDescriptor from_vector(const BNNSVectorDescriptor& vector) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = vector.size;
  d.data_type = vector.data_type;
  d.data_scale = vector.data_scale;
  d.data_bias = vector.data_bias;
  return d;
}

// Pixel (x, y) of image c is element x + row_stride y + image_stride c.
inline BNNSNDArrayDescriptor from_image_stack(const BNNSImageStackDescriptor& stack) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutImageCHW;
  d.size[0] = stack.width;
  d.size[1] = stack.height;
  d.size[2] = stack.channels;
  d.stride[0] = 1;
  d.stride[1] = stack.row_stride;
  d.stride[2] = stack.image_stride;
  d.data_type = stack.data_type;
  d.data_scale = stack.data_scale;
  d.data_bias = stack.data_bias;
  return d;
}

// Weights or bias; the caller sets layout and sizes.
inline BNNSNDArrayDescriptor from_layer_data(const BNNSLayerData& data) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.data = const_cast<void*>(data.data);
  d.data_type = data.data_type;
  d.data_scale = data.data_scale;
  d.data_bias = data.data_bias;
  d.table_data = const_cast<float*>(data.data_table);
  d.table_data_type = BNNSDataTypeFloat32;
  return d;
}

inline BNNSNDArrayDescriptor from_bias(const BNNSLayerData& data, size_t size) {
  BNNSNDArrayDescriptor d = from_layer_data(data);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = size;
  return d;
}

}  // namespace bnns
