# shellcheck shell=bash
# What tools/attest and tools/test share: packages, libtorch, configuration, build. Sourced with `root` set.
# A step that was done is skipped, and its stamp is written last: an interrupted set-up goes on where it was.

: "${root:?is the folder of the checkout}"
with_cuda_torch=${ATTEST_WITH_CUDA_TORCH:-0}
build_dir=$root/build
stamp=$build_dir/attest.current # as old as the start of the last good build; holds the folder of libtorch
sources=(harness kernels oracles properties fixtures reports tools CMakeLists.txt)

for part in packages torch build; do
  # shellcheck source=/dev/null
  source "$root/tools/bootstrap/$part.sh"
done

say() { printf 'attest: %s\n' "$*" >&2; }
fail() {
  say "$@"
  exit 4
}

# Nothing changed since the last good build. Folders are looked at too: they change when a file comes or goes.
is_current() {
  local torch
  [ -x "$build_dir/attest" ] && [ -e "$stamp" ] && read -r torch <"$stamp" && [ -e "$torch/lib/libtorch_cpu.so" ] || return 1
  [ "$with_cuda_torch" != 1 ] || env_holds cuda || return 1
  [ -z "$(cd "$root" && find "${sources[@]}" "$(git_log)" -newer "$stamp" -print -quit)" ]
}

# A file that changes with every commit and checkout, since the program knows its commit.
git_log() {
  if [ -e "$root/.git/logs/HEAD" ]; then echo .git/logs/HEAD; else echo CMakeLists.txt; fi
}

prepare() { # targets…
  mkdir -p "$build_dir"
  exec 9>"$build_dir/.lock"
  flock -n 9 || { say "another set-up is at work in $root; waiting for it" && flock 9; }
  missing=$(missing_packages)
  torch=$(find_torch)
  check_disk
  [ -z "$missing" ] || install_packages
  [ -n "$torch" ] || install_torch
  is_configured || configure
  build "$@"
  exec 9>&-
}

check_disk() {
  local torch_mb=2500 needed=0
  [ "$with_cuda_torch" != 1 ] || torch_mb=9000
  [ -n "$torch" ] || needed=$((needed + torch_mb))
  [ -e "$build_dir/attest" ] || needed=$((needed + 1500))
  if [ -n "$missing" ]; then
    needed=$((needed + 1500)) # /usr is mostly on the same disk
    require_space /usr 1500
  fi
  require_space "$root" "$needed"
}

require_space() { # folder, MB
  local free
  free=$(df -Pk "$1" | awk 'NR == 2 { print int($4 / 1024) }')
  [ "$free" -ge "$2" ] || fail "not enough free disk: the set-up needs about $2 MB in $1, where $free MB are free."
}

# Runs a command with its output in build/LOG. A terminal sees its last line, anything else each tenth of [done/all].
logged() { # log, command…
  local log=$build_dir/$1 line tenth=0 width=$((${COLUMNS:-80} - 1)) terminal=0
  [ ! -t 2 ] || terminal=1
  "${@:2}" 2>&1 </dev/null 9>&- | while IFS= read -r line; do
    printf '%s\n' "$line" >&3
    if [ $terminal = 1 ]; then
      printf '\r\033[K%.*s' "$width" "$line" >&2
    elif [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] && ((10 * BASH_REMATCH[1] / BASH_REMATCH[2] != tenth)); then
      tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      printf '%s\n' "$line" >&2
    fi
  done 3>"$log"
  local status=${PIPESTATUS[0]}
  [ $terminal = 0 ] || printf '\r\033[K' >&2
  return "$status"
}
