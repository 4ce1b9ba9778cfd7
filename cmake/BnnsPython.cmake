# The extensions of the Python package openbnns, _core and _mps, beside the libraries, which they find by RPATH. Built by
# `pip install .` (pyproject.toml), or in a build folder with -DBNNS_PYTHON=ON, where build/python/openbnns is importable.
#
# nanobind is linked into the extensions, for the Python that builds them, or by the stable ABI for that one and later where it
# is 3.12 or more. With BNNS_PYTHON_BACKENDS (scripts/python-wheel), a folder of nanobind's modules for several versions of
# Python, they are of the stable ABI of 3.10, and the modules come into the package.

set(BNNS_PYTHON_BACKENDS "" CACHE PATH "Modules of nanobind for a wheel of several versions of Python")

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT RESULT_VARIABLE bnns_no_nanobind ERROR_QUIET)
if(bnns_no_nanobind)
  message(FATAL_ERROR "BNNS_PYTHON needs nanobind in ${Python_EXECUTABLE}: pip install nanobind")
endif()
find_package(nanobind CONFIG REQUIRED)

set(nanobind_mode STABLE_ABI)
if(BNNS_PYTHON_BACKENDS)
  set(nanobind_mode BACKEND_MODULE openbnns.nanobind_backend BACKEND_PYPI nanobind-backend STABLE_ABI_VERSION 3.10)
endif()
set(folder ${PROJECT_BINARY_DIR}/python/openbnns)

function(bnns_python_extension name library)
  nanobind_add_module(openbnns${name} NOMINSIZE NB_SUPPRESS_WARNINGS ${nanobind_mode} ${ARGN}
                      ${PROJECT_SOURCE_DIR}/python/src/error.cc)
  target_link_libraries(openbnns${name} PRIVATE ${library} bnns_flags)
  target_include_directories(openbnns${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(openbnns${name} PROPERTIES OUTPUT_NAME ${name} INSTALL_RPATH "$ORIGIN"
                        LIBRARY_OUTPUT_DIRECTORY ${folder})
  nanobind_add_stub(openbnns${name}_stub MODULE openbnns.${name} OUTPUT ${folder}/${name}.pyi
                    PYTHON_PATH ${PROJECT_BINARY_DIR}/python DEPENDS openbnns${name} openbnns_files)
  # The wheel has one file of each library, under the name that the loader looks for: wheels hold no links.
  install(TARGETS openbnns${name} LIBRARY DESTINATION openbnns COMPONENT python)
  install(PROGRAMS $<TARGET_FILE:${library}> RENAME $<TARGET_SONAME_FILE_NAME:${library}> DESTINATION openbnns COMPONENT python)
  install(FILES ${folder}/${name}.pyi DESTINATION openbnns COMPONENT python)
endfunction()

# libbnns_mps finds libbnns beside itself, in the build folder a level up; the path of the build folder is not in the wheel.
set_target_properties(bnns_mps PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN:$ORIGIN/..")

# What is linked in comes with its terms: nanobind's (BSD), and those of the hash table inside it (MIT, the head of its file).
execute_process(COMMAND ${Python_EXECUTABLE} -c "import importlib.metadata as m
print(next((str(f.locate()) for f in m.files('nanobind') or [] if f.name.startswith('LICENSE')), ''))"
                OUTPUT_VARIABLE bnns_license OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(GLOB robin_map ${nanobind_ROOT}/../ext/robin_map/include/tsl/robin_map.h)
if(SKBUILD_METADATA_DIR)
  if(NOT EXISTS "${bnns_license}" OR NOT robin_map)
    message(FATAL_ERROR "the terms of nanobind are not in its package, expected LICENSE and robin_map.h: pip install nanobind")
  endif()
  file(READ ${robin_map} text LIMIT 4000)
  string(REGEX REPLACE "\\*/.*" "*/\n" text "${text}")
  file(WRITE ${PROJECT_BINARY_DIR}/LICENSE.robin_map "${text}")
  install(FILES ${bnns_license} RENAME LICENSE.nanobind DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python)
  install(FILES ${PROJECT_BINARY_DIR}/LICENSE.robin_map DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python)
endif()

# A copy of the Python files in the build folder, so that it can be imported and typed without installing.
add_custom_target(openbnns_files COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/python/openbnns ${folder})
if(BNNS_PYTHON_BACKENDS)
  add_custom_command(TARGET openbnns_files POST_BUILD
                     COMMAND ${CMAKE_COMMAND} -E copy_directory ${BNNS_PYTHON_BACKENDS} ${folder}/nanobind_backend)
  install(DIRECTORY ${BNNS_PYTHON_BACKENDS}/ DESTINATION openbnns/nanobind_backend COMPONENT python)
endif()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/*.cc)
list(FILTER sources EXCLUDE REGEX "/error\\.cc$")
bnns_python_extension(_core bnns ${sources})
target_link_libraries(openbnns_core PRIVATE ${CMAKE_DL_LIBS})   # group.cc loads libbnns_mpi
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/mps/*.cc)
bnns_python_extension(_mps bnns_mps ${sources})
add_custom_target(openbnns_python ALL DEPENDS openbnns_core_stub openbnns_mps_stub)

# libbnns_mpi comes along where the machine has an MPI (BNNS_MPI); openbnns.distributed loads it when it is asked for a group.
if(TARGET bnns_mpi)
  add_dependencies(openbnns_python bnns_mpi)
  set_target_properties(bnns_mpi PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN:$ORIGIN/..")
  set_target_properties(openbnns_core PROPERTIES BUILD_RPATH "$<TARGET_FILE_DIR:bnns_mpi>")
  install(PROGRAMS $<TARGET_FILE:bnns_mpi> RENAME $<TARGET_SONAME_FILE_NAME:bnns_mpi> DESTINATION openbnns COMPONENT python)
endif()
