# Language, build type, linker, compiler cache and sanitizers: what holds for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_COLOR_DIAGNOSTICS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
# -g1 keeps stack traces with lines at a third of the size of -g. NDEBUG only silences assert() in
# the headers of others; our own CHECK stays on.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

find_program(TENON_LLD NAMES ld.lld)
if(TENON_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# BASEDIR and NOHASHDIR let a clone in another folder hit the cache, too.
find_program(TENON_CCACHE NAMES ccache)
if(TENON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${TENON_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

if(TENON_SANITIZE)
  # -O1: what is instrumented gains little from more, and takes much longer to compile.
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer -O1)
  add_link_options(-fsanitize=${TENON_SANITIZE})
endif()
if(TENON_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
