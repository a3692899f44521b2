# libthiele-mpi, which carries numbers between processes (src/base/ranks.h): a library for each MPI that there is, as
# these are no more alike than their headers. The main library links neither, and loads the one whose mpirun began it.
set(THIELE_MPI AUTO CACHE STRING "Build libthiele-mpi: AUTO or OFF")
set_property(CACHE THIELE_MPI PROPERTY STRINGS AUTO OFF)
foreach(kind openmpi mpich)
  find_program(THIELE_MPICC_${kind} mpicc.${kind})
  if(THIELE_MPICC_${kind} AND NOT THIELE_MPI STREQUAL "OFF" AND NOT THIELE_SANITIZE AND NOT THIELE_FUZZ AND NOT THIELE_COVERAGE)
    set(soname libthiele-mpi-${kind}.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    set(library ${CMAKE_BINARY_DIR}/${soname})
    add_custom_command(OUTPUT ${library} VERBATIM
                       DEPENDS src/mpi/mpi.c src/base/ranks_plugin.h include/thiele/ranks.h include/thiele/status.h
                       COMMAND ${THIELE_MPICC_${kind}} -std=c11 -O2 -Wall -Wextra -fPIC -fvisibility=hidden -shared
                               -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_BINARY_DIR}/include
                               -Wl,-soname=${soname},-z,relro,-z,now -o ${library} ${CMAKE_SOURCE_DIR}/src/mpi/mpi.c)
    add_custom_target(thiele_mpi_${kind} ALL DEPENDS ${library})
    install(PROGRAMS ${library} DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
    list(APPEND THIELE_MPIS ${kind})
  endif()
endforeach()
