// Looking things up: embedding with its gradient, reductions, the largest elements, nearest neighbours, crops of
// images, sparse weights.
#include <bnns/bnns.hpp>
#include <cstdio>

int main() {
  using namespace bnns;
  const NDArray dictionary = NDArray::from({0.0f, 1.0f, 10.0f, 11.0f, 20.0f, 21.0f}, Shape::matrixLastMajor(2, 3)),
                words = NDArray::from({2, 0, 2}, {3}), ones = NDArray::repeating(1.0f, Shape::matrixLastMajor(2, 3));
  NDArray items = NDArray::repeating(0.0f, Shape::matrixLastMajor(2, 3)),
          slope = NDArray::repeating(0.0f, dictionary.shape());
  EmbeddingLayer embedding({.input = words, .output = items, .dictionary = dictionary});
  embedding.apply(1, words, items);
  embedding.applyBackward(1, words, items, ones, slope);
  const bool looked = items.makeArray<float>() == std::vector<float>{20, 21, 0, 1, 20, 21} &&
                      slope.makeArray<float>() == std::vector<float>{1, 1, 0, 0, 2, 2};

  const NDArray x = NDArray::from({3.0f, 9.0f, 1.0f, 7.0f, 5.0f}, {5});
  NDArray total = NDArray::repeating(0.0f, {1}), best = NDArray::repeating(0.0f, {2}),
          where = NDArray::repeating(0, {2});
  applyReduction(ReductionFunction::sum(), x, total);
  applyTopK(2, x, best, where, 0, 1);
  std::printf("sum %g, best %g at %d and %g at %d\n", double(total.span<float>()[0]), double(best.span<float>()[0]),
              where.span<int>()[0], double(best.span<float>()[1]), where.span<int>()[1]);
  const bool ranked = total.span<float>()[0] == 25 && where.makeArray<int>() == std::vector<int>{1, 3};

  NearestNeighbors store({.capacity = 5, .dimensionCount = 1, .neighborCount = 3});
  store.append(x);
  NDArray near = NDArray::repeating(0, {3}), distance = NDArray::repeating(0.0f, {3});
  store.apply(4, near, distance);  // of the last sample: itself, then those at 3 and at 7
  const bool found = near.makeArray<int>() == std::vector<int>{4, 0, 3} && distance.span<float>()[1] == 2;

  const NDArray image = NDArray::from({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f},
                                      Shape::tensor4DLastMajor({3, 3, 1, 1})),
                box = NDArray::from({0.0f, 1.0f, 1.0f, 2.0f}, Shape::matrixLastMajor(4, 1));
  NDArray crop = NDArray::repeating(0.0f, Shape::tensor5DLastMajor({2, 2, 1, 1, 1}));
  const CropResizeLayer cut({.coordinatesAreNormalized = false,
                             .spatialScale = 1,
                             .samplingMode = CropResizeLayer::LinearSamplingMode::alignCorners,
                             .boxCoordinateMode = CropResizeLayer::BoxCoordinateMode::cornersWidthFirst});
  cut.apply(image, box, crop);
  std::printf("the crop %g %g %g %g\n", double(crop.span<float>()[0]), double(crop.span<float>()[1]),
              double(crop.span<float>()[2]), double(crop.span<float>()[3]));
  const bool cropped = crop.makeArray<float>() == std::vector<float>{4, 5, 7, 8};

  const NDArray places = NDArray::from({0u, 0u, 63u, 1u}, {2, 2}),
                values = NDArray::from({2.0f, 5.0f}, {2}),  // column, row
      input = NDArray::repeating(1.0f, {64}), memory = NDArray::repeating(0.0f, Shape::matrixRowMajor(64, 2));
  NDArray y = NDArray::repeating(0.0f, {2});
  Desc weights = memory;
  FullyConnectedLayer::sparsify(1, SparseLayout::coo(places), descriptor(memory.shape()), values, weights);
  FullyConnectedLayer sparse({.input = input, .output = y, .weights = weights});
  sparse.apply(1, input, y);
  const bool multiplied = y.makeArray<float>() == std::vector<float>{2, 5};
  return looked && ranked && found && cropped && multiplied ? 0 : 1;
}
