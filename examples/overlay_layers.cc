// Layers that move or combine elements: padding, permutation, resizing, dropout, Gram, matrix product, contraction.
#include <bnns/bnns.hpp>
#include <cstdio>

using namespace bnns;

static NDArray run(UnaryLayer& layer, const NDArray& x, const Shape& out) {
  NDArray y = NDArray::repeating(0.0f, out);
  layer.apply(1, x, y);
  for (float v : y.span<float>()) std::printf(" %g", double(v));
  std::printf("\n");
  return y;
}

int main() {
  const Shape three = {3}, image = Shape::imageCHW(2, 1, 2), square = Shape::matrixRowMajor(2, 2);
  const NDArray x = NDArray::from({1.0f, 2.0f, 3.0f}, three), m = NDArray::from({1.0f, 2.0f, 3.0f, 4.0f}, image);
  PaddingLayer padding(
      {.input = x, .output = descriptor({6}), .mode = PaddingMode::constantScalar(7), .size = {{1, 2}}});
  PermuteLayer permute({.input = descriptor({2, 2}), .output = descriptor({2, 2}), .permutation = {1, 0}});
  ResizeLayer resize({.interpolationMethod = InterpolationMethod::nearestNeighbor,
                      .input = x,
                      .output = descriptor({6}),
                      .alignsCorners = false});
  DropoutLayer dropout({.input = x, .output = x, .rate = 0, .seed = 1});
  GramLayer gram({.input = m, .output = descriptor(square), .alpha = 1});
  const bool right = run(padding, x, {6}).makeArray<float>() == std::vector<float>{7, 1, 2, 3, 7, 7} &&
                     run(permute, m, {2, 2}).makeArray<float>() == std::vector<float>{1, 3, 2, 4} &&
                     run(resize, x, {6}).makeArray<float>() == std::vector<float>{1, 1, 2, 2, 3, 3} &&
                     run(dropout, x, {3}).makeArray<float>() == x.makeArray<float>() &&
                     run(gram, m, square).makeArray<float>() == std::vector<float>{5, 11, 11, 25};

  const NDArray a = NDArray::from({1.0f, 2.0f, 3.0f, 4.0f}, square),
                b = NDArray::from({5.0f, 6.0f, 7.0f, 8.0f}, square);
  NDArray y = NDArray::repeating(0.0f, square), da = NDArray::repeating(0.0f, square),
          db = NDArray::repeating(0.0f, square);
  BroadcastMatrixMultiplyLayer product({.inputA = a, .inputB = b, .output = y});
  product.apply(1, a, b, y);
  product.applyBackward(1, a, b, y, a, da, db);
  std::printf("product %g ... %g, dA %g ... %g\n", double(y.span<float>()[0]), double(y.span<float>()[3]),
              double(da.span<float>()[0]), double(da.span<float>()[3]));
  TensorContractionLayer contraction({.operation = "a_ip, b_iq -> o_pq", .inputA = a, .inputB = b, .output = y});
  contraction.apply(1, a, b, y);  // the transpose of a, times b
  return right && da.makeArray<float>() == std::vector<float>{17, 23, 39, 53} &&
                 y.makeArray<float>() == std::vector<float>{26, 30, 38, 44}
             ? 0
             : 1;
}
