# CUDA is used when nvcc is there and left out otherwise; nothing else in the build changes.
# Sets TENON_HAVE_CUDA and TENON_HAVE_CUDNN.
# CUDA code is a MODULE library opened with dlopen, never linked: cuBLASLt's
# thread-local storage does not fit the small stacks of some threads of a linked program.

set(TENON_HAVE_CUDA OFF)
set(TENON_HAVE_CUDNN OFF)
if(TENON_CUDA)
  # nvcc is usually not on PATH.
  find_program(TENON_NVCC nvcc HINTS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  if(TENON_NVCC)
    set(CMAKE_CUDA_COMPILER ${TENON_NVCC})
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES "80-real;90")  # machine code for 80 and 90, PTX for later ones
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
    if(CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY)
      set(TENON_HAVE_CUDNN ON)
    else()
      message(NOTICE "** cuDNN IS LEFT OUT: no cudnn.h and libcudnn (set CUDNN_INCLUDE_DIR and "
                     "CUDNN_LIBRARY); device cuda estimates convolutions **")
    endif()
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(TENON_HAVE_CUDA ON)
  else()
    message(NOTICE "** CUDA IS LEFT OUT: no nvcc (set CUDA_PATH, or -DTENON_CUDA=OFF) **")
  endif()
endif()
