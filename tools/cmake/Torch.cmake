# Imported targets for libtorch: c10, torch_cpu and the headers, without find_package(Torch), which is a fatal error where
# there is no CUDA toolkit. libtorch_cuda.so is never linked: it is loaded at run time where there is a GPU.
set(ATTEST_TORCH "" CACHE PATH "The torch folder of a Python environment (holds lib/ and include/); empty: look for one")

if(NOT ATTEST_TORCH)
  file(GLOB local_torch "${PROJECT_SOURCE_DIR}/.env/lib/python3*/site-packages/torch")
  if(local_torch)
    list(GET local_torch 0 ATTEST_TORCH)
  else()
    execute_process(COMMAND python3 -c "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))"
                    OUTPUT_VARIABLE ATTEST_TORCH OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(NOT EXISTS "${ATTEST_TORCH}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No libtorch found. Run ./tools/attest, which installs it into .env/, "
    "or pass -DATTEST_TORCH=<site-packages>/torch.")
endif()
message(STATUS "libtorch: ${ATTEST_TORCH}")

foreach(name c10 torch_cpu)
  add_library(Torch::${name} SHARED IMPORTED)
  set_target_properties(Torch::${name} PROPERTIES IMPORTED_LOCATION "${ATTEST_TORCH}/lib/lib${name}.so")
endforeach()
add_library(Torch::torch INTERFACE IMPORTED)
target_include_directories(Torch::torch SYSTEM INTERFACE
  "${ATTEST_TORCH}/include" "${ATTEST_TORCH}/include/torch/csrc/api/include")
target_link_libraries(Torch::torch INTERFACE Torch::torch_cpu Torch::c10)
# libtorch_cpu needs libcupti and libcudart, which it finds by its own run path, not by ours.
target_link_options(Torch::torch INTERFACE "-Wl,--allow-shlib-undefined")
