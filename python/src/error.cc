// The one place that raises openbnns.Error.
#include "python/src/error.h"

namespace openbnns {

void refuse(const std::string& where, const std::string& reason) {
  nb::object error = nb::module_::import_("openbnns._errors").attr("Error");
  // A reason may quote bytes of a damaged file that are no text.
  const std::string text = where + ": " + reason;
  nb::object value =
      error(nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace")));
  PyErr_SetObject(error.ptr(), value.ptr());
  throw nb::python_error();
}

}  // namespace openbnns
