# The last step of an installation: programs linked with -lbnns find the library, or a line says what they lack. Leaves
# install_prefix.txt beside CMake's install_manifest.txt for BnnsUninstall.cmake.

cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/BnnsLoader.cmake)

file(WRITE ${BNNS_BUILD}/install_prefix.txt "${CMAKE_INSTALL_PREFIX}")
set(libdir ${BNNS_LIBDIR})
if(NOT IS_ABSOLUTE "${libdir}")
  set(libdir ${CMAKE_INSTALL_PREFIX}/${libdir})
endif()

# A DESTDIR is on its way into a package, whose installation runs ldconfig.
if(BNNS_SHARED AND "$ENV{DESTDIR}" STREQUAL "")
  bnns_loader_searches(${libdir} is_searched)
  if(is_searched)
    bnns_run_ldconfig()
  else()
    message("OpenBNNS: programs do not find ${libdir} by themselves: set LD_LIBRARY_PATH=${libdir}, or link with "
            "-Wl,-rpath,${libdir}; for pkg-config set PKG_CONFIG_PATH=${libdir}/pkgconfig")
  endif()
endif()
