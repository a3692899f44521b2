# Installation: the command, both libraries, headers, pkg-config and CMake package files, man pages.
include(CMakePackageConfigHelpers)

install(TARGETS thiele_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS thiele_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET thiele)
  install(TARGETS thiele RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/thiele DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_BINARY_DIR}/include/thiele/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/thiele)
file(GLOB THIELE_MAN_PAGES CONFIGURE_DEPENDS docs/man/*.1)
install(FILES ${THIELE_MAN_PAGES} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# The files find the rest relative to where they lie, so that an installed tree can be moved.
file(RELATIVE_PATH THIELE_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/thiele.pc.in thiele.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/thiele.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_package_config_file(cmake/thiele-config.cmake.in thiele-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/thiele
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(thiele-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/thiele-config.cmake ${CMAKE_BINARY_DIR}/thiele-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/thiele)
