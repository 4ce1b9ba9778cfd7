# The GPU device of MPS pooling. These are built with nvcc and want a GPU.
REFERENCE, CASES = "mps_pooling_implementations_test", "MpsPoolingImplementations.EveryEntryOfCudaEqualsTheReference"

fault("BC64", "what the GPU says when the work ends is not looked at",
      "src/mps/device/cuda_backend.cc",
      'if (code != cudaSuccess) return text_of("cudaEventSynchronize", code);\n    if (cudaEventElapsedTime',
      "if (code != cudaSuccess) return {};\n    if (cudaEventElapsedTime",
      "mps_pooling_cuda_test", "*.BC64_*", gpu=True)
fault("BC65", "a grid gets a row for each image, however many there are",
      "src/ops/mps_pooling/cuda/accepts.cc",
      "e.channels % 4 != 0 || e.images > kMostGrid ||",
      "e.channels % 4 != 0 ||",
      "mps_pooling_properties_test", "*.BC65_*", gpu=True)
fault("BC66", "of equal maxima the last one gets the gradient, on the GPU alone",
      "src/ops/mps_pooling/cuda/global.cu",
      "const bool better = v > r || (r != r && v == v);",
      "const bool better = v >= r || (r != r && v == v);",
      REFERENCE, CASES, gpu=True)
fault("BC67", "a block does not wait for all its threads before it writes a gradient",
      "src/ops/mps_pooling/cuda/global.cu",
      "if constexpr (kBackward) {\n    __syncthreads();",
      "if constexpr (kBackward) {",
      REFERENCE, CASES, gpu=True)
