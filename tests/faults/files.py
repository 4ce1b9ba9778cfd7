# Files, the Python package, many machines. A Python test is named as pytest -k names it.

fault("BC68", "the length of the header is not compared with the file's",
      "src/io/header.cc",
      "if (length > file_bytes - kLengthBytes) {",
      "if (length > kMaxHeaderBytes + kLengthBytes) {",
      "io_refusals_test", "IoRefusals.LengthOfTheHeader")
fault("BC68", "the shape of an array is not compared with its bytes",
      "src/io/header.cc",
      "if (e.begin > e.end || e.end - e.begin != bytes) {",
      "if (e.begin > e.end) {",
      "io_fuzz_test", "IoFuzz.*")
fault("BC69", "a layer does not keep the arrays that it was made from",
      "python/src/filters.cc",
      "kept.push_back(std::move(made));",
      "",
      "python_package", "test_memory_outlives_its_owner or test_weights_are_read", targets=["bnns", "bnns_mps"])
fault("BC70", "a DLPack capsule does not hold the image whose memory it shows",
      "python/src/mps/images.cc",
      "const nb::object self = nb::find(image);",
      "const nb::object self = nb::none();",
      "python_package", "test_memory_is_shared_by_dlpack", targets=["bnns", "bnns_mps"])
fault("BC71", "a negative stride is read as if there were none",
      "python/src/arrays.cc",
      "if (step < 0 && a.shape[k] > 1) {",
      "if (step < 0 && a.shape[k] > 1 && !view.data()) {",
      "python_package", "test_refusals_say_what_is_wrong or test_arrays_of_any_kind", targets=["bnns", "bnns_mps"])
fault("BC72", "ranks whose shares of a batch are unequal may begin",
      "src/mpi/group.cc",
      "if (shards % ranks != 0) {",
      "if (shards < ranks) {",
      "mpi", targets=["bnns_mpi", "mpi_worker", "example_distributed", "bnns_tool"])
