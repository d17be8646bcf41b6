execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
endif()
file(STRINGS "${TORCH}/version.py" torch_version REGEX "^__version__")
string(REGEX REPLACE ".*'(.*)'" "\\1" torch_version "${torch_version}")
set(text "// Written by the build.
#pragma once
namespace attest {
inline constexpr char kVersion[] = \"${VERSION}\";
inline constexpr char kCommit[] = \"${commit}\";
inline constexpr char kCompiler[] = \"${COMPILER}\";
inline constexpr char kTorch[] = \"${torch_version}\";
inline constexpr char kSourceDir[] = \"${SOURCE}\";
}  // namespace attest
")
file(WRITE "${HEADER}.new" "${text}")
file(COPY_FILE "${HEADER}.new" "${HEADER}" ONLY_IF_DIFFERENT)
file(REMOVE "${HEADER}.new")
