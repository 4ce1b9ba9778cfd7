// A refusal, seen through the overlay, in a program that has both libraries: the exception and its text come out whole.
// A static library whose own namespace bnns showed would mix its Error with the overlay's.
#include <MetalPerformanceShaders/MetalPerformanceShaders.hpp>
#include <bnns/bnns.hpp>
#include <cstdio>
#include <cstring>

int main() {
  MTL::Device* device = MTL::CreateSystemDefaultDevice();
  if (!device) return 1;
  device->release();
  try {
    bnns::NDArray x = bnns::NDArray::repeating(1.0f, {4}), y = bnns::NDArray::repeating(0.0f, {2});
    bnns::NDArray w = bnns::NDArray::repeating(1.0f, bnns::Shape::matrixRowMajor(3, 2));  // 3 inputs, x has 4
    bnns::FullyConnectedLayer layer({.input = x, .output = y, .weights = w});
  } catch (const bnns::Error& error) {
    std::printf("%s\n", error.what());
    return std::strstr(error.what(), "is 3, expected 4") ? 0 : 2;
  }
  return 3;
}
