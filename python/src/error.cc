// The one place that raises openbnns.Error.
#include "python/src/error.h"

#include <nanobind/stl/string.h>

namespace openbnns {

void refuse(const std::string& where, const std::string& reason) {
  nb::object error = nb::module_::import_("openbnns._errors").attr("Error");
  nb::object value = error(where + ": " + reason);
  PyErr_SetObject(error.ptr(), value.ptr());
  throw nb::python_error();
}

}  // namespace openbnns
