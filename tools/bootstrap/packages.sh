# shellcheck shell=bash disable=SC2154,SC2034
# Debian packages, from the one list.

has() { command -v "$1" >/dev/null; }

# NAME? is left out where the package lists do not know it.
wanted_packages() {
  local package
  while IFS= read -r package; do
    if [[ $package != *\? ]]; then
      echo "$package"
    elif [ -n "$(apt-cache show "${package%\?}" 2>/dev/null | sed -n 's/^Package: //p')" ]; then
      echo "${package%\?}"
    fi
  done < <(grep -v '^#' "$root/tools/packages.txt")
}

missing_packages() {
  local wanted installed package
  command -v dpkg-query >/dev/null || return 0 # not Debian: CMake says what it does not find
  wanted=$(wanted_packages)
  # shellcheck disable=SC2086
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | sed -n 's/ installed$//p')
  for package in $wanted; do
    grep -qxF -- "$package" <<<"$installed" || printf '%s ' "$package"
  done
}

install_command() { echo "apt-get install -y --no-remove --no-install-recommends ${missing% }"; }

missing_advice() {
  echo "Debian packages are missing. Run this line, then try again:
  sudo $(install_command)
Packages that lie elsewhere are found through CMAKE_PREFIX_PATH."
}

install_packages() {
  local as_root=()
  if [ -n "${CMAKE_PREFIX_PATH:-}" ] && has cmake && has ninja && has c++; then
    say "CMAKE_PREFIX_PATH is set: no Debian package is installed"
    return
  fi
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || fail "$(missing_advice)"
    as_root=(sudo -n)
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  say "installing Debian packages: $missing"
  logged packages.log "${as_root[@]}" apt-get update || true
  missing=$(missing_packages) # now that the lists are there
  # shellcheck disable=SC2046
  logged packages.log "${as_root[@]}" $(install_command) ||
    say "apt-get could not install them ($build_dir/packages.log); going on with what is there"
  missing=$(missing_packages)
}
