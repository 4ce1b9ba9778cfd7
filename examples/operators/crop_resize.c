// cc -std=c99 crop_resize.c -o crop_resize -lbnns && ./crop_resize
// prints: y = 5 6 8 9
// The lower right 2x2 pixels of an image of 3x3.
#include "tensor.h"

int main(void) {
  float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, box[4] = {1, 1, 2, 2}, y[4];
  BNNSLayerParametersCropResize p;
  memset(&p, 0, sizeof p);
  p.spatial_scale = 1;
  p.sampling_mode = BNNSLinearSamplingAlignCorners;
  p.box_coordinate_mode = BNNSCornersWidthFirst;  // x, y of the first corner, x, y of the last
  p.method = BNNSInterpolationMethodLinear;
  BNNSNDArrayDescriptor in = tensor(BNNSDataLayout4DLastMajor, x, 3, 3, 1, 1);       // width, height, channels, images
  BNNSNDArrayDescriptor boxes = tensor(BNNSDataLayout2DLastMajor, box, 4, 1, 0, 0);  // numbers of a box, boxes
  BNNSNDArrayDescriptor out =
      tensor(BNNSDataLayout5DLastMajor, y, 2, 2, 1, 1);  // width, height, channels, images, boxes
  out.size[4] = 1;
  int status = BNNSCropResize(&p, &in, &boxes, &out, NULL);
  show("y", y, 4);
  return status;
}
