# Installation: the command, both libraries, headers, pkg-config and CMake package files, man pages.
include(CMakePackageConfigHelpers)

install(TARGETS thiele_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Into the Python package (python/pyproject.toml), and there alone: one file, without the links of versions.
install(FILES $<TARGET_FILE:thiele_shared> DESTINATION . RENAME libthiele.so COMPONENT python EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS thiele_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET thiele)
  install(TARGETS thiele RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/thiele DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_BINARY_DIR}/include/thiele/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/thiele)
file(GLOB THIELE_MAN_PAGES CONFIGURE_DEPENDS docs/man/*.1)
install(FILES ${THIELE_MAN_PAGES} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# What shells need to complete command lines, printed by the command from its tables of options.
if(TARGET thiele)
  set(THIELE_COMPLETION_bash bash-completion/completions/thiele)
  set(THIELE_COMPLETION_zsh zsh/site-functions/_thiele)
  set(THIELE_COMPLETION_fish fish/vendor_completions.d/thiele.fish)
  foreach(shell bash zsh fish)
    set(file ${CMAKE_BINARY_DIR}/completion/${THIELE_COMPLETION_${shell}})
    get_filename_component(folder ${file} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${file} COMMAND thiele completion ${shell} > ${file} DEPENDS thiele VERBATIM)
    list(APPEND THIELE_COMPLETIONS ${file})
  endforeach()
  add_custom_target(completion ALL DEPENDS ${THIELE_COMPLETIONS})
  install(DIRECTORY ${CMAKE_BINARY_DIR}/completion/ DESTINATION ${CMAKE_INSTALL_DATADIR})
endif()

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
