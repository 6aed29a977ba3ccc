#!/usr/bin/env bash
# Makes everything that users download, in target/dist. These are static binaries and Debian
# packages for x86-64 and 64-bit ARM, the wheels of the Python package, and SHA256SUMS. Each binary
# and package is tried in an empty root directory, and each wheel in a new Python environment.
#   scripts/dist.sh [--quick]      (--quick: not optimised)
# Needs root for the empty root directory. If it cannot build a part, it prints the reason and ends
# with an error.
set -euo pipefail
cd "$(dirname "$0")/.."
quick=()
[ "${1-}" != --quick ] || quick=(--quick)
target=${CARGO_TARGET_DIR:-$PWD/target}
dist=$target/dist
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
rm -rf "$dist"
mkdir -p "$dist"
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

# in_empty_root BINARY: runs it in a root directory that holds nothing else.
in_empty_root() {
  local root=$room/root emulator=()
  rm -rf "$root"
  mkdir -p "$root/tmp"
  cp "$1" "$root/seekwell"
  if readelf -h "$1" | grep -q AArch64 && [ "$(uname -m)" != aarch64 ]; then
    cp "$(command -v qemu-aarch64-static)" "$root/emulator"
    emulator=(/emulator)
  fi
  chroot "$root" "${emulator[@]}" /seekwell run fs-mark:files=3 --seeds 1 --quiet >"$room/out"
  grep -q 'files/s' "$room/out" || { echo "FAILED: $1 in an empty root"; exit 1; }
  echo "ok: $(basename "$1") in an empty root"
}

for machine in x86_64 aarch64; do
  built=$(scripts/static.sh "$machine" "${quick[@]}" | tee "$room/log" | sed -n 's/: [0-9]* bytes$//p')
  grep -E '^(ok|FAILED|skipped)' "$room/log" || true
  binary=$dist/seekwell-$version-$machine-linux
  cp "$built" "$binary"
  in_empty_root "$binary"
  architecture=amd64
  [ "$machine" = x86_64 ] || architecture=arm64
  # The package holds the output of the program (manual pages, completions), which must run here.
  package=$(RUNS=$dist/seekwell-$version-x86_64-linux scripts/deb.sh "$binary" "$architecture")
  mv "$package" "$dist"
  dpkg-deb --extract "$dist/$(basename "$package")" "$room/$architecture"
  in_empty_root "$room/$architecture/usr/bin/seekwell"
  rm -rf "$target/$machine" "${room:?}/$architecture"
done
rm -rf "$target/wheels"
scripts/wheels.sh "${quick[@]}"
mv "$target"/wheels/*.whl "$dist"
(cd "$dist" && sha256sum -- * >"$room/sums" && mv "$room/sums" SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
ls -l "$dist"
