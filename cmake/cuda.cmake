# libthiele-cuda, a library of its own that the main one loads when it is first needed (src/posterior/device.h): built
# where there is nvcc, unless THIELE_CUDA says ON (it must be) or OFF. By commands, as CMake's own support for CUDA
# would try the compiler for longer than these files take. Machine code for compute capability 9.0 (H100, H200), and
# code that drivers translate for all from 7.5 on.
set(THIELE_CUDA AUTO CACHE STRING "Build libthiele-cuda: AUTO, ON or OFF")
set_property(CACHE THIELE_CUDA PROPERTY STRINGS AUTO ON OFF)
find_program(THIELE_NVCC nvcc PATHS /usr/local/cuda/bin)
if(THIELE_CUDA STREQUAL "ON" AND NOT THIELE_NVCC)
  message(FATAL_ERROR "THIELE_CUDA=ON needs nvcc, and there is none on PATH or in /usr/local/cuda/bin")
endif()
# Whether it compiles what it is given: it may be too old, or not know the host's compiler.
if(THIELE_NVCC AND NOT THIELE_CUDA STREQUAL "OFF" AND NOT DEFINED THIELE_NVCC_WORKS)
  set(THIELE_NVCC_TRIAL ${CMAKE_BINARY_DIR}/cuda/trial)
  file(WRITE ${THIELE_NVCC_TRIAL}.cu "#include <cublas_v2.h>\n#include <cusolverDn.h>\n#if CUDART_VERSION < 12000\n"
       "#error CUDA 12 or later is needed\n#endif\n__global__ void trial(double *x) { x[0] = 1.0; }\n")
  execute_process(COMMAND ${THIELE_NVCC} -arch=sm_90 -c -o ${THIELE_NVCC_TRIAL}.o ${THIELE_NVCC_TRIAL}.cu
                  RESULT_VARIABLE THIELE_NVCC_STATUS OUTPUT_QUIET ERROR_VARIABLE THIELE_NVCC_SAYS)
  if(THIELE_NVCC_STATUS EQUAL 0)
    set(THIELE_NVCC_WORKS ON CACHE INTERNAL "nvcc compiles")
  elseif(THIELE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "THIELE_CUDA=ON, and ${THIELE_NVCC} does not compile: ${THIELE_NVCC_SAYS}")
  else()
    message(STATUS "libthiele-cuda is left out, as ${THIELE_NVCC} does not compile: ${THIELE_NVCC_SAYS}")
  endif()
endif()
if(THIELE_NVCC_WORKS AND NOT THIELE_CUDA STREQUAL "OFF" AND NOT THIELE_SANITIZE AND NOT THIELE_FUZZ AND NOT THIELE_COVERAGE)
  get_filename_component(THIELE_CUDA_FOLDER ${THIELE_NVCC} REALPATH)
  get_filename_component(THIELE_CUDA_FOLDER ${THIELE_CUDA_FOLDER}/../../lib64 ABSOLUTE)
  set(THIELE_NVCC_FLAGS -std=c++14 -O2 -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra
      -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_75,code=compute_75
      -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_BINARY_DIR}/include)
  if(THIELE_WERROR)
    list(APPEND THIELE_NVCC_FLAGS -Werror=all-warnings)
  endif()
  file(GLOB THIELE_CUDA_SOURCES CONFIGURE_DEPENDS src/cuda/*.cu)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda)
  foreach(source ${THIELE_CUDA_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d VERBATIM
                       COMMAND ${THIELE_NVCC} ${THIELE_NVCC_FLAGS} -MD -MF ${object}.d -MT ${object} -c -o ${object} ${source})
    list(APPEND THIELE_CUDA_OBJECTS ${object})
  endforeach()
  set(THIELE_CUDA_SONAME libthiele-cuda.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set(THIELE_CUDA_LIBRARY ${CMAKE_BINARY_DIR}/${THIELE_CUDA_SONAME})
  # The machine that runs it may have cuBLAS and cuSOLVER elsewhere than this one: where this one has them is tried first.
  add_custom_command(OUTPUT ${THIELE_CUDA_LIBRARY} DEPENDS ${THIELE_CUDA_OBJECTS} VERBATIM
                     COMMAND ${THIELE_NVCC} -shared -o ${THIELE_CUDA_LIBRARY} ${THIELE_CUDA_OBJECTS} -lcublas -lcusolver
                             -Xlinker=-soname=${THIELE_CUDA_SONAME},-rpath=${THIELE_CUDA_FOLDER},-z,relro,-z,now)
  add_custom_target(thiele_cuda ALL DEPENDS ${THIELE_CUDA_LIBRARY})
  install(PROGRAMS ${THIELE_CUDA_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
endif()
