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
set(THIELE_NVCC_VERSION 0)
if(THIELE_NVCC AND NOT THIELE_CUDA STREQUAL "OFF")
  execute_process(COMMAND ${THIELE_NVCC} --version OUTPUT_VARIABLE THIELE_NVCC_SAYS ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+)\\.[0-9]+" THIELE_NVCC_SAYS "${THIELE_NVCC_SAYS}")
  set(THIELE_NVCC_VERSION "0${CMAKE_MATCH_1}")
  if(THIELE_NVCC_VERSION LESS 12 AND THIELE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "THIELE_CUDA=ON needs CUDA 12 or later, and ${THIELE_NVCC} is older")
  endif()
endif()
if(NOT THIELE_NVCC_VERSION LESS 12 AND NOT THIELE_SANITIZE AND NOT THIELE_FUZZ AND NOT THIELE_COVERAGE)
  get_filename_component(THIELE_CUDA_FOLDER ${THIELE_NVCC} REALPATH)
  get_filename_component(THIELE_CUDA_FOLDER ${THIELE_CUDA_FOLDER}/../../lib64 ABSOLUTE)
  set(THIELE_NVCC_FLAGS -std=c++14 -O2 -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra -Werror=all-warnings
      -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_75,code=compute_75
      -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_BINARY_DIR}/include)
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
