# What comes with the tool: its manual page, written from what it says of itself, and completion for bash and zsh.

find_package(Python3 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND AND NOT BNNS_SANITIZE)
  add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/bnns.1.gz
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/packaging/man_page.py $<TARGET_FILE:bnns_tool> bnns.1.gz
    DEPENDS bnns_tool ${PROJECT_SOURCE_DIR}/packaging/man_page.py VERBATIM)
  add_custom_target(bnns_man ALL DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/bnns.1.gz)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/bnns.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools OPTIONAL)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/packaging/completions/bnns.bash RENAME bnns
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
if(BNNS_DEB)
  set_target_properties(bnns_tool PROPERTIES INSTALL_RPATH "")   # the system's loader finds the system's libraries
  set(zsh vendor-completions)
else()
  set(zsh site-functions)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/packaging/completions/_bnns DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh} COMPONENT tools)
