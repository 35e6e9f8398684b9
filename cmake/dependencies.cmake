# Everything we link to comes from Debian 12 packages (deploy/packages/). The order matters: ONNX
# refers to protobuf's targets. Nothing is downloaded.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Protobuf 3.21 REQUIRED MODULE)  # Debian ships no protobuf-config.cmake
find_package(absl CONFIG REQUIRED)
find_package(gRPC 1.51 CONFIG REQUIRED)      # gRPC::grpc++ gRPC::grpc++_reflection
find_package(prometheus-cpp CONFIG REQUIRED) # prometheus-cpp::core ::pull
find_package(RocksDB 7.8 CONFIG REQUIRED)    # RocksDB::rocksdb-shared
find_package(Eigen3 3.4 CONFIG REQUIRED)     # Eigen3::Eigen
find_package(ONNX CONFIG REQUIRED)           # onnx, onnx_proto
find_package(spdlog CONFIG REQUIRED)         # spdlog::spdlog, never header-only (12 s a file)
find_package(fmt CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(GTest CONFIG REQUIRED)
find_package(benchmark CONFIG REQUIRED)
find_package(zstd CONFIG REQUIRED)           # zstd::libzstd_shared
find_package(ZLIB REQUIRED)                  # ZLIB::ZLIB, for tests and benchmarks
find_package(OpenSSL REQUIRED)
pkg_check_modules(Z3 REQUIRED IMPORTED_TARGET z3)             # PkgConfig::Z3
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)  # PkgConfig::SODIUM
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)  # PkgConfig::XXHASH
pkg_check_modules(CBC REQUIRED IMPORTED_TARGET cbc osi-cbc)   # PkgConfig::CBC, with Clp

# Not find_package(dnnl): its config wants OpenCL headers that libdnnl-dev does not depend on.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(tenon_dnnl INTERFACE)
target_include_directories(tenon_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(tenon_dnnl INTERFACE ${DNNL_LIBRARY})

# Debian's own interpreter: only that one sees Debian's Python packages (onnx, numpy).
find_program(TENON_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(TENON_PYTHON NAMES python3)
