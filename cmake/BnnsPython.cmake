# The extension of the Python package openbnns: openbnns/_core beside libbnns, which it finds by RPATH. Built by
# `pip install .` (pyproject.toml), or in a build folder with -DBNNS_PYTHON=ON, where build/python/openbnns is importable.

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT RESULT_VARIABLE bnns_no_nanobind ERROR_QUIET)
if(bnns_no_nanobind)
  message(FATAL_ERROR "BNNS_PYTHON needs nanobind in ${Python_EXECUTABLE}: pip install nanobind")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB python_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/*.cc)
# The stable ABI (one module for Python 3.12 and later) where this Python has it.
nanobind_add_module(openbnns_core STABLE_ABI NOMINSIZE NB_SUPPRESS_WARNINGS ${python_sources})
target_link_libraries(openbnns_core PRIVATE bnns bnns_flags)
target_include_directories(openbnns_core PRIVATE ${PROJECT_SOURCE_DIR})
set_target_properties(openbnns_core PROPERTIES OUTPUT_NAME _core INSTALL_RPATH "$ORIGIN"
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/openbnns)

# A copy of the Python files in the build folder, so that it can be imported and typed without installing.
file(GLOB_RECURSE python_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python
     ${PROJECT_SOURCE_DIR}/python/openbnns/*.py ${PROJECT_SOURCE_DIR}/python/openbnns/py.typed)
add_custom_target(openbnns_files COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/python/openbnns
                                         ${PROJECT_BINARY_DIR}/python/openbnns)
nanobind_add_stub(openbnns_stub MODULE openbnns._core OUTPUT ${PROJECT_BINARY_DIR}/python/openbnns/_core.pyi
                  PYTHON_PATH ${PROJECT_BINARY_DIR}/python DEPENDS openbnns_core openbnns_files)
add_custom_target(openbnns_python ALL DEPENDS openbnns_core openbnns_stub)

# The wheel has one file of libbnns, under the name that the loader looks for: wheels hold no links.
install(TARGETS openbnns_core LIBRARY DESTINATION openbnns COMPONENT python)
install(PROGRAMS $<TARGET_FILE:bnns> RENAME $<TARGET_SONAME_FILE_NAME:bnns> DESTINATION openbnns COMPONENT python)
install(FILES ${PROJECT_BINARY_DIR}/python/openbnns/_core.pyi DESTINATION openbnns COMPONENT python)
