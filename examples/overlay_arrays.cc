// Arrays and functions without a layer: views, random numbers, copying between layouts, gathering, products, norms.
#include <bnns/bnns.hpp>
#include <cmath>
#include <cstdio>

int main() {
  using namespace bnns;
  std::vector<float> mine = {1, 2, 3, 4, 5, 6};
  const Desc m = NDArray::view<float>(mine, {2, 3});  // my memory; NDArray owns its own
  NDArray t = NDArray::repeating(0.0f, {3, 2}), row = NDArray::repeating(0.0f, {1, 3}),
          square = NDArray::repeating(0.0f, {2, 2});
  transpose(m, t, 0, 1);
  const NDArray one = NDArray::from({1}, {1});
  gather(m, one, row, 0);
  applyMatrixMultiplication(m, false, t, false, square, 1);
  std::printf("transposed %g %g ..., row 1 begins with %g, product %g %g %g %g\n", double(t.span<float>()[0]),
              double(t.span<float>()[1]), double(row.span<float>()[0]), double(square.span<float>()[0]),
              double(square.span<float>()[1]), double(square.span<float>()[2]), double(square.span<float>()[3]));

  RandomGenerator random({.seed = 6});
  const NDArray noise = NDArray::normal(random, 0.0f, 1.0f, {1000});
  NDArray norm = NDArray::repeating(0.0f, {1}), clipped = NDArray::repeating(0.0f, {1000}),
          half = NDArray::uninitialized<Float16>({1000});
  computeNorm(noise, norm);
  clipByNorm(1, noise, clipped);
  copy(noise, half);  // converts
  std::printf("norm of 1000 normal numbers %.2f; the first is %.4f, %.4f as a half\n", double(norm.span<float>()[0]),
              double(noise.span<float>()[0]), double(static_cast<float>(half.span<Float16>()[0])));
  computeNorm(clipped, norm);

  try {
    copy(m, row);  // six elements do not fit into three
  } catch (const Error& error) {
    std::printf("refused: %s\n", error.what());
    return std::fabs(norm.span<float>()[0] - 1) < 1e-5f &&
                   square.makeArray<float>() == std::vector<float>{14, 32, 32, 77}
               ? 0
               : 1;
  }
  return 1;
}
