// openbnns._core: the C interface for Python. Classes and functions that users meet are Python files on top of it.
#include <nanobind/stl/string.h>

#include "python/src/arrays.h"

NB_MODULE(_core, m) {
  namespace nb = nanobind;
  nb::set_leak_warnings(false);  // arrays that live to the end of the interpreter are no leak of ours
  m.doc() = "Bindings of libbnns; see openbnns and openbnns.nn.";
  openbnns::bind_arrays(m);
  openbnns::bind_filters(m);
  openbnns::bind_layers(m);
  openbnns::bind_losses(m);
  openbnns::bind_fused(m);
  openbnns::bind_sequence(m);
  openbnns::bind_functions(m);
  openbnns::bind_tables(m);
  openbnns::bind_group(m);
  m.def("version", [] { return std::string(BNNSExtVersion()); });
  m.def("set_num_threads", &BNNSExtSetNumThreads, nb::arg("n"));
  m.def("get_num_threads", &BNNSExtGetNumThreads);
  m.def("get_isa", [] { return std::string(BNNSExtGetISA()); });
  m.def(
      "set_max_isa",
      [](const std::string& name) {
        if (BNNSExtSetMaxISA(name.c_str()) != 0)
          openbnns::refuse("set_max_isa", "name is " + name + ", expected sse4, avx2, avx512, avx512_bf16 or amx");
      },
      nb::arg("name"));
}
