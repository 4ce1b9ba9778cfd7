# Compile flags for every target, and the functions that turn a folder into targets.

# A project around this one keeps its own settings: what our targets need is set on the targets (bnns_configure_targets).
# Only on its own does this project choose a build type and a compiler cache.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
  endif()
  find_program(BNNS_CCACHE ccache)
  if(BNNS_CCACHE)
    # Another clone's objects serve too. The sloppiness is what it needs to cache the use of a precompiled header.
    set(BNNS_CCACHE ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${BNNS_CCACHE})
  endif()
endif()

# bnns_configure_targets(folder): language and position-independent code for all targets of a folder and those below it.
# The last call of the top CMakeLists.txt, so that no folder has to think of it.
function(bnns_configure_targets folder)
  get_directory_property(targets DIRECTORY ${folder} BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "INTERFACE_LIBRARY|UTILITY")
      continue()
    endif()
    set_target_properties(${target} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
      C_STANDARD 99 C_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
    if(BNNS_CCACHE)
      set_target_properties(${target} PROPERTIES C_COMPILER_LAUNCHER "${BNNS_CCACHE}"
        CXX_COMPILER_LAUNCHER "${BNNS_CCACHE}")
    endif()
    if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)   # a project around us without one: kernels are optimised
      target_compile_options(${target} PRIVATE -O3 -DNDEBUG)
    endif()
  endforeach()
  get_directory_property(folders DIRECTORY ${folder} SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    bnns_configure_targets(${below})
  endforeach()
endfunction()

find_package(Threads REQUIRED)
find_path(BNNS_HIGHWAY_INCLUDE hwy/highway.h REQUIRED)   # header-only use: we dispatch ourselves

set(BNNS_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")
include(BnnsCuda)        # BNNS_CUDA, BNNS_HAVE_CUDA

# Flags shared by everything we compile. No -ffast-math: NaN, infinities and signed zeros are part of the contract.
# -ffp-contract=off keeps gcc and clang, and the kernel bodies and tails, at the same bits; kernels ask for FMA by name.
add_library(bnns_flags INTERFACE)
# The host compiler's alone: nvcc takes none of them.
set(bnns_host "$<COMPILE_LANGUAGE:C,CXX>")
target_compile_options(bnns_flags INTERFACE "$<${bnns_host}:-Wall;-Wextra;-Wpedantic;-ffp-contract=off>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND BNNS_PCH)
  # Through a precompiled header gcc 12 forgets that the intrinsics are a system header's, and warns a thousand times of what
  # they leave undefined on purpose. Builds without one (dev) keep the warnings.
  target_compile_options(bnns_flags INTERFACE "$<${bnns_host}:-Wno-uninitialized;-Wno-maybe-uninitialized>")
  # With a release's options it takes "text" + std::string for an overlap (its bug 105651).
  target_compile_options(bnns_flags INTERFACE "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-restrict>")
endif()
if(BNNS_WERROR)
  target_compile_options(bnns_flags INTERFACE "$<${bnns_host}:-Werror>")
endif()
if(BNNS_SANITIZE)
  # Test programs (property BNNS_TEST) go without UndefinedBehaviorSanitizer: it checks the library, and doubles the time
  # to compile a test.
  string(REPLACE "," ";" sanitizers ${BNNS_SANITIZE})
  foreach(sanitizer IN LISTS sanitizers)
    if(sanitizer STREQUAL "undefined")
      target_compile_options(bnns_flags INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:BNNS_TEST>>>:-fsanitize=undefined>)
    else()
      target_compile_options(bnns_flags INTERFACE -fsanitize=${sanitizer})
    endif()
  endforeach()
  target_compile_options(bnns_flags INTERFACE -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(bnns_flags INTERFACE -fsanitize=${BNNS_SANITIZE})
endif()

# bnns_harden(target): what the two libraries, libAccelerate and the tool are compiled and linked with, so that an overrun or
# a forged return address in the program around them ends there. Sanitizers bring their own.
option(BNNS_HARDENING "Stack protector, fortify, CET, full RELRO" ON)
function(bnns_harden target)
  if(NOT BNNS_HARDENING OR BNNS_SANITIZE)
    return()
  endif()
  target_compile_options(${target} PRIVATE "$<${bnns_host}:-fstack-protector-strong;-U_FORTIFY_SOURCE>"
    "$<$<AND:${bnns_host},$<NOT:$<CONFIG:Debug>>>:-D_FORTIFY_SOURCE=2>")   # it needs an optimising compiler
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(${target} PRIVATE "$<${bnns_host}:-fcf-protection=full>")
  endif()
  get_target_property(type ${target} TYPE)
  if(type MATCHES "SHARED_LIBRARY|EXECUTABLE")
    target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now -Wl,-z,noexecstack)
  endif()
endfunction()

# Highway compiles each *_simd.cc once per target. x86-64-v2 makes SSE4 the baseline, so three bodies exist on x86. The
# targets that BNNS_DISPATCH knows are named, and all others disabled: each release of Highway adds some.
add_library(bnns_simd_flags INTERFACE)
target_include_directories(bnns_simd_flags SYSTEM INTERFACE ${BNNS_HIGHWAY_INCLUDE})
set(BNNS_X86 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(BNNS_X86 ON)
  target_compile_options(bnns_simd_flags INTERFACE "$<${bnns_host}:-march=x86-64-v2>")
  target_compile_definitions(bnns_simd_flags INTERFACE HWY_DISABLE_PCLMUL_AES
    "HWY_DISABLED_TARGETS=(~(HWY_SSE4|HWY_AVX2|HWY_AVX3))")
endif()

# bnns_compile_for_any_cpu(source): for the check that runs before anything compiled for x86-64-v2. Called in the folder
# of each target that has the source.
function(bnns_compile_for_any_cpu source)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -march=x86-64 SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# bnns_add_folder(name): adds whatever exists in the folder and below it, by suffix.
#   *_test.cc  a test;  *_bench.cc  a benchmark;  *_versus.cc  rows of the table that compares with the peers (bench/);
#   other *.cc  to the library
function(bnns_add_folder name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  foreach(source IN LISTS sources)
    if(source MATCHES "_test\\.cc$")
      set_property(GLOBAL APPEND PROPERTY BNNS_TEST_SOURCES ${source})
    elseif(source MATCHES "_bench\\.cc$")
      set_property(GLOBAL APPEND PROPERTY BNNS_BENCH_SOURCES ${source})
    elseif(source MATCHES "_versus\\.cc$")
      set_property(GLOBAL APPEND PROPERTY BNNS_VERSUS_SOURCES ${source})
    else()
      target_sources(bnns_objects PRIVATE ${source})
    endif()
  endforeach()
endfunction()

# bnns_add_public_library(name objects exports): the library that users link, shared or static, from lists of objects.
# Both kinds show the same symbols. The shared one hides the rest by its version script `exports`. The static one is a
# single object whose hidden symbols are local: the overlay's namespace is bnns too, and its bnns::Error must not meet ours.
function(bnns_add_public_library name objects exports)
  if(BNNS_SHARED)
    add_library(${name} SHARED ${objects})
    bnns_harden(${name})
    target_link_libraries(${name} PRIVATE bnns_flags)
    target_link_options(${name} PRIVATE -Wl,--as-needed -Wl,--version-script=${exports})
    if(NOT BNNS_FUZZ)   # clang's sanitizers and libFuzzer are in the program alone
      target_link_options(${name} PRIVATE -Wl,--no-undefined -Wl,-z,defs)
    endif()
    set_target_properties(${name} PROPERTIES LINK_DEPENDS ${exports} VERSION ${PROJECT_VERSION} SOVERSION 0)
  else()
    # Without groups: they keep the names of symbols made local, and the linker drops all but one group of a name. What
    # the compiler emits in every object that needs it (gcc: unique symbols) has to be weak then, and objcopy can only make
    # weak symbols local.
    set(merged ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${merged} DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM
      COMMAND ${CMAKE_CXX_COMPILER} -nostdlib -r -Wl,--force-group-allocation -o ${merged} ${objects}
      COMMAND ${CMAKE_OBJCOPY} --wildcard --weaken-symbol=_Z* ${merged}
      COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${merged})
    set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    add_library(${name} STATIC ${merged})
    target_link_libraries(${name} INTERFACE stdc++ m)   # programs in C too
  endif()
  target_link_libraries(${name} PRIVATE Threads::Threads)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# bnns_share_test_headers(name): the test takes <gtest/gtest.h>, half of the time to compile one, from a precompiled header.
# Its first caller makes it; all of them have the same flags. Headers of ours are not in it.
function(bnns_share_test_headers name)
  if(NOT TARGET bnns_test_headers)
    # A program, as tests are: -fPIE counts.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cc CONTENT "int main() {}\n")
    add_executable(bnns_test_headers ${PROJECT_BINARY_DIR}/test_headers.cc)
    set_target_properties(bnns_test_headers PROPERTIES BNNS_TEST ON)
    target_link_libraries(bnns_test_headers PRIVATE bnns_flags bnns_simd_flags bnns_test_support GTest::gtest Threads::Threads)
    target_precompile_headers(bnns_test_headers PRIVATE <gtest/gtest.h> <algorithm> <cmath> <functional>)
  endif()
  target_precompile_headers(${name} REUSE_FROM bnns_test_headers)
endfunction()

set(BNNS_TEST_FLAGS "" CACHE STRING "Compile flags of the tests alone, after those of the build type")

# bnns_add_test(source [library]): one GoogleTest binary per file, linked with the objects of a library (libbnns's unless
# another is named) so that it sees internals. Tests are refused on purpose; BNNS_VERBOSE=0 keeps that out of their output.
function(bnns_add_test source)
  set(library bnns_internal ${ARGN})
  list(GET library -1 library)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES BNNS_TEST ON)
  target_link_libraries(${name} PRIVATE ${library} bnns_test_support GTest::gtest GTest::gtest_main)
  bnns_share_test_headers(${name})
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  if(name MATCHES "_implementations_test$")
    set_tests_properties(${name} PROPERTIES COST 100)   # the longest begin first: no core waits for one of them at the end
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 ENVIRONMENT "BNNS_VERBOSE=0;BNNS_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
endfunction()
