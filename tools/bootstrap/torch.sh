# shellcheck shell=bash disable=SC2154,SC2034
# libtorch: the PyPI wheel in .env/, or that of the python3 at hand.

torch_version=2.11.0
env_dir=$root/.env

env_holds() { # cpu or cuda: what is installed in .env/
  local found
  found=$(cat "$env_dir/complete" 2>/dev/null) || return 1
  [ "$found" = "$torch_version cuda" ] || [ "$found" = "$torch_version $1" ]
}

# Prints the folder of an installed libtorch: that of .env/, else that of the python3 at hand; nothing when there is none.
find_torch() {
  if [ "$with_cuda_torch" = 1 ]; then
    ! env_holds cuda || echo "$env_dir"/lib/python3*/site-packages/torch
  elif [ -e "$env_dir" ]; then
    ! env_holds cpu || echo "$env_dir"/lib/python3*/site-packages/torch
  else
    python3 -c "import importlib.metadata as m, importlib.util as u, os
if m.version('torch').split('+')[0] == '$torch_version': print(os.path.dirname(u.find_spec('torch').origin))" 2>/dev/null || true
  fi
}

install_torch() {
  local kind=cpu size=0.5 site toolkit
  [ "$with_cuda_torch" != 1 ] || size=3
  say "installing libtorch $torch_version into .env/ (a download of about $size GB)"
  logged torch.log python3 -m venv "$env_dir" || fail "python3 -m venv failed; see $build_dir/torch.log"
  site=$(echo "$env_dir"/lib/python3*/site-packages)
  # pip writes INSTALLER last: without it, what it left is a torso that it would take for whole.
  [ -e "$site/torch-$torch_version.dist-info/INSTALLER" ] || rm -rf "$site"/torch "$site"/torch-*
  if [ "$with_cuda_torch" = 1 ]; then
    kind=cuda
    pip "torch==$torch_version"
  else
    pip --no-deps "torch==$torch_version"
    # libtorch_cpu.so needs libcudart and libcupti. The wheel names the CUDA release, whose package names their versions.
    toolkit=$(sed -n 's/^Requires-Dist: cuda-toolkit\[.*\]==\([0-9.]*\).*/\1/p' "$site/torch-$torch_version.dist-info/METADATA")
    [ -z "$toolkit" ] || pip "cuda-toolkit[cudart,cupti]==$toolkit"
  fi
  rm -rf "$env_dir/tmp"
  echo "$torch_version $kind" >"$env_dir/complete"
  torch=$(find_torch)
}

pip() {
  mkdir -p "$env_dir/tmp" # on the disk whose free space was checked
  TMPDIR=$env_dir/tmp logged torch.log "$env_dir/bin/python" -m pip install --no-input --disable-pip-version-check \
    --no-cache-dir --no-warn-conflicts "$@" || { tail -n 5 "$build_dir/torch.log" >&2 &&
    fail "pip could not install $*; see $build_dir/torch.log. Run the same command again to go on."; }
}
