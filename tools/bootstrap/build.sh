# shellcheck shell=bash disable=SC2154,SC2034
# Configuration and build, with Ninja.

cache_has() { grep -qxF "$1" "$build_dir/CMakeCache.txt" 2>/dev/null; }

is_configured() { [ -e "$build_dir/build.ninja" ] && cache_has "ATTEST_TORCH:PATH=$torch" && is_of_this_folder; }

is_of_this_folder() { cache_has "CMAKE_HOME_DIRECTORY:INTERNAL=$root"; }

configure() {
  local options=(-S "$root" -B "$build_dir" -G Ninja -DATTEST_TORCH="$torch")
  is_of_this_folder || options+=(--fresh) # the checkout was moved
  say "configuring"
  logged configure.log cmake "${options[@]}" || {
    tail -n 20 "$build_dir/configure.log" >&2
    [ -z "$missing" ] || say "$(missing_advice)"
    fail "the configuration failed; see $build_dir/configure.log"
  }
  grep -E '^-- (CUDA|libtorch):' "$build_dir/configure.log" | sed 's/^-- /attest: /' >&2 || true
}

# About 2.5 GB of memory a compilation.
parallel_jobs() {
  local by_memory
  by_memory=$(awk '/^MemAvailable/ { print int($2 / 2500000) }' /proc/meminfo)
  if [ "$by_memory" -lt 1 ]; then echo 1; elif [ "$by_memory" -lt "$(nproc)" ]; then echo "$by_memory"; else nproc; fi
}

build() { # targets…
  local jobs=${ATTEST_JOBS:-$(parallel_jobs)}
  say "building with $jobs jobs"
  echo "$torch" >"$stamp.new"
  export NINJA_STATUS='[%f/%t] ' CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  logged build.log ninja -C "$build_dir" -j "$jobs" "$@" || {
    grep -vE '^\[[0-9]+/[0-9]+\]' "$build_dir/build.log" | tail -n 30 >&2 || true
    fail "the build failed; see $build_dir/build.log"
  }
  mv "$stamp.new" "$stamp"
}
