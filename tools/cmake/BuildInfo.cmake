# generated/build_info.h: version and commit, for reports and fixtures. Rewritten at build time only when the commit changes.
set(script "${PROJECT_SOURCE_DIR}/tools/cmake/write_build_info.cmake")
set(header "${PROJECT_BINARY_DIR}/generated/build_info.h")
set(command ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DHEADER=${header} -DVERSION=${PROJECT_VERSION}
            "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" "-DTORCH=${ATTEST_TORCH}" -P ${script})
execute_process(COMMAND ${command})
add_custom_target(attest_build_info COMMAND ${command} BYPRODUCTS ${header}
                  COMMENT "Reading the version" VERBATIM)
add_dependencies(attest_options attest_build_info)
