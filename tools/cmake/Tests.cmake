# Unit tests lie beside the code; one program holds them all, and links once.
foreach(folder harness kernels oracles properties fixtures reports tools)
  file(GLOB_RECURSE folder_tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*_test.cc")
  list(APPEND test_sources ${folder_tests})
endforeach()
add_executable(attest_tests ${test_sources})
target_precompile_headers(attest_tests REUSE_FROM attest_harness)
target_link_libraries(attest_tests PRIVATE attest_tools attest_everything GTest::gtest GTest::gmock GTest::gtest_main)
target_compile_definitions(attest_tests PRIVATE ATTEST_PROGRAM="$<TARGET_FILE:attest>")
add_dependencies(attest_tests attest)
include(GoogleTest)
gtest_discover_tests(attest_tests DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)

# What is not C++ is tested by scripts.
foreach(script launcher_test check_layers check_layers_test results_table_test)
  add_test(NAME ${script} COMMAND "${PROJECT_SOURCE_DIR}/tools/${script}")
  set_tests_properties(${script} PROPERTIES TIMEOUT 120)
endforeach()

# What newcomers copy is compiled, so that it cannot rot; it is linked into nothing.
file(GLOB skeletons CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/skeleton/*.cc")
add_library(attest_skeleton OBJECT ${skeletons})
target_precompile_headers(attest_skeleton REUSE_FROM attest_harness)
target_link_libraries(attest_skeleton PRIVATE attest_options)
if(ATTEST_HAS_CUDA)
  attest_cuda_library(attest_skeleton_cuda "${PROJECT_SOURCE_DIR}/tools/skeleton/variant.cu")
endif()
