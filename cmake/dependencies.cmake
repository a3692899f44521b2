# Everything the library stands on, gathered in one interface target. docs/decisions.md says why each is there.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(SLEEF REQUIRED IMPORTED_TARGET sleef)
pkg_check_modules(LBFGS REQUIRED IMPORTED_TARGET liblbfgs)

# BLIS, serial flavour, as an archive: re-entrant, without a global thread setting, invisible from outside.
find_library(BLIS_ARCHIVE NAMES libblis.a PATH_SUFFIXES blis-serial ${CMAKE_LIBRARY_ARCHITECTURE}/blis-serial REQUIRED)
find_path(BLIS_INCLUDE NAMES cblas.h PATH_SUFFIXES blis-serial ${CMAKE_LIBRARY_ARCHITECTURE}/blis-serial REQUIRED
          NO_CACHE PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/blis-serial NO_DEFAULT_PATH)
find_path(RANDOM123_INCLUDE NAMES Random123/philox.h REQUIRED)

# HDF5 is loaded at run time, when a file needs it: only its header is needed here.
pkg_check_modules(HDF5 REQUIRED hdf5-serial)

add_library(thiele_dependencies INTERFACE)
target_include_directories(thiele_dependencies SYSTEM INTERFACE ${BLIS_INCLUDE} ${RANDOM123_INCLUDE}
                           ${HDF5_INCLUDE_DIRS})
target_link_libraries(thiele_dependencies INTERFACE ${BLIS_ARCHIVE} PkgConfig::LBFGS PkgConfig::JANSSON PkgConfig::SLEEF
                      ZLIB::ZLIB Threads::Threads m ${CMAKE_DL_LIBS})
