// Max pooling keeps where its maxima were; unpooling puts values back there, which is also what its gradient does.
#include <bnns/bnns.hpp>
#include <cstdio>

int main() {
  using namespace bnns;
  const NDArray x = NDArray::from({1.0f, 1.0f, 1.0f, 9.0f,  //
                                   1.0f, 8.0f, 2.0f, 1.0f,  //
                                   3.0f, 1.0f, 1.0f, 1.0f,  //
                                   1.0f, 4.0f, 1.0f, 5.0f},
                                  Shape::imageCHW(4, 4, 1));
  NDArray y = NDArray::repeating(0.0f, Shape::imageCHW(2, 2, 1)), up = NDArray::repeating(0.0f, x.shape()),
          dx = NDArray::repeating(0.0f, x.shape());
  std::vector<std::size_t> where(4);
  PoolingLayer pool({.type = PoolingType::max(where), .input = x, .output = y, .kernelSize = {2, 2}, .stride = {2, 2}});
  PoolingLayer unpool(
      {.type = PoolingType::unMax(where), .input = y, .output = x, .kernelSize = {2, 2}, .stride = {2, 2}});
  pool.apply(1, x, y);
  unpool.apply(1, y, up);
  pool.applyBackward(1, x, y, y, dx);
  for (std::size_t i = 0; i < 4; ++i) std::printf("maximum %g at %zu\n", double(y.span<float>()[i]), where[i]);

  PoolingLayer mean(
      {.type = PoolingType::average(false), .input = x, .output = y, .kernelSize = {2, 2}, .stride = {2, 2}});
  mean.apply(1, x, y);
  std::printf("mean of the first window %g\n", double(y.span<float>()[0]));
  const bool right = where == std::vector<std::size_t>{5, 3, 13, 15} && up.makeArray<float>() == dx.makeArray<float>();
  return right && up.span<float>()[3] == 9 && y.span<float>()[0] == 2.75f ? 0 : 1;
}
