# The kinds of target a room is made of. All of them include from the repository root
# (#include "core/base/poly.h") and treat warnings as errors.

function(tenon_own_code target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  file(RELATIVE_PATH to_root ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wshadow -Wconversion -Werror
    # Options structs are built with designated initialisers and rely on member defaults.
    -Wno-missing-field-initializers
    # CHECK messages name files from the repository root, wherever that is. (ccache makes the paths
    # it hands to the compiler relative to the build folder.)
    -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=
    -fmacro-prefix-map=${to_root}=
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
    # False positives of GCC 12: std::string concatenation, and anything once instrumented.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  if(TENON_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
endfunction()

# tenon_library(NAME SOURCES a.cc... [DEPS public...] [PRIVATE_DEPS private...])
# DEPS are what the headers need, PRIVATE_DEPS what only the sources need.
function(tenon_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS;PRIVATE_DEPS")
  add_library(${name} STATIC ${arg_SOURCES})
  tenon_own_code(${name})
  target_link_libraries(${name} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
endfunction()

# tenon_executable(NAME SOURCES a.cc... [DEPS ...]): goes to bin/ of the build folder.
function(tenon_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_executable(${name} ${arg_SOURCES})
  tenon_own_code(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  if(TENON_SANITIZE STREQUAL "thread")
    if(NOT TARGET tenon_tsan_grpc)
      add_library(tenon_tsan_grpc OBJECT ${CMAKE_SOURCE_DIR}/tests/support/tsan_grpc.cc)
      tenon_own_code(tenon_tsan_grpc)
    endif()
    target_link_libraries(${name} PRIVATE tenon_tsan_grpc ${CMAKE_DL_LIBS})
    # What the file defines is for the libraries, too.
    target_link_options(${name} PRIVATE -Wl,--export-dynamic-symbol=grpc_call_start_batch
      -Wl,--export-dynamic-symbol=_ZN4absl*Mutex* -Wl,--export-dynamic-symbol=_ZN4absl*CondVar*)
  endif()
endfunction()

# tenon_test(NAME SOURCES a_test.cc... [DEPS ...] [LABELS long|gpu|crash...] [TIMEOUT seconds])
# Tests labelled long or gpu are left out of ./dev test. Tests find their data under
# TENON_SOURCE_DIR, and binaries of this build under the environment variable TENON_BIN_DIR.
function(tenon_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPS;LABELS")
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(TENON_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 10")
  endif()
  tenon_executable(${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test-bin)
  target_compile_definitions(${name} PRIVATE TENON_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_PREFIX ${name}.  # two binaries may have a test of the same name
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
    PROPERTIES TIMEOUT ${arg_TIMEOUT} ENVIRONMENT TENON_BIN_DIR=${CMAKE_BINARY_DIR}/bin)
  if(arg_LABELS)  # set when ctest runs: PROPERTIES above cannot carry a list
    set(labels ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    file(WRITE ${labels} "if(${name}_TESTS)
  set_tests_properties(\${${name}_TESTS} PROPERTIES LABELS \"${arg_LABELS}\")\nendif()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
  endif()
endfunction()

# tenon_bench(NAME SOURCES a_bench.cc... [DEPS ...]): built and run by ./dev bench only.
add_custom_target(benchmarks)
function(tenon_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  tenon_executable(${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS} benchmark::benchmark_main)
  set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench-bin)
  add_dependencies(benchmarks ${name})
endfunction()

# tenon_fuzzer(NAME SOURCES a_fuzz.cc... [DEPS ...] CORPUS file or folder... [CHANGES n])
# Preset `fuzz` builds it for libFuzzer; `./dev fuzz NAME` runs it. Other builds make a test of it
# that goes through its CORPUS (below tests/) and n small changes of each file.
function(tenon_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CHANGES" "SOURCES;DEPS;CORPUS")
  if(TENON_FUZZ)
    tenon_executable(${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz-bin)
    add_dependencies(fuzzers ${name})
    list(JOIN arg_CORPUS "\n" corpus)
    file(WRITE ${CMAKE_BINARY_DIR}/fuzz-bin/${name}.corpus "${corpus}\n")
  elseif(BUILD_TESTING)
    if(NOT DEFINED arg_CHANGES)
      set(arg_CHANGES 200)
    endif()
    tenon_executable(${name} SOURCES ${arg_SOURCES} ${CMAKE_SOURCE_DIR}/tests/support/replay_fuzz.cc
      DEPS ${arg_DEPS})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test-bin)
    add_test(NAME ${name} COMMAND ${name} ${arg_CHANGES} ${arg_CORPUS}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests)
    set_tests_properties(${name} PROPERTIES TIMEOUT 1200)
  endif()
endfunction()
if(TENON_FUZZ)
  add_custom_target(fuzzers)
endif()

include(GoogleTest)
