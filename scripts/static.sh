#!/usr/bin/env bash
# Builds a static binary for 64-bit ARM (phones, network storage, the Raspberry Pi) or for x86-64:
#   scripts/static.sh aarch64|x86_64 [--quick | CARGO OPTIONS...]      (default: --release)
# With --quick, the build is not optimised. CI builds and tries this form. If something that the
# build needs is not available, the script prints this and exits with 3. Rust's own toolchain links
# the binary. Its C code (SQLite, zstd) is compiled by clang with the headers of musl for that
# machine. They are a package of 0.6 MB, which is unpacked but not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
machine=${1-}
case $machine in
aarch64) debian=arm64 ;;
x86_64) debian=amd64 ;;
*)
  echo "usage: scripts/static.sh aarch64|x86_64 [--quick | CARGO OPTIONS...]" >&2
  exit 2
  ;;
esac
shift
target=$machine-unknown-linux-musl
build="${CARGO_TARGET_DIR:-target}/$machine"
case ${1-} in
'') set -- --release ;;
--quick)
  set -- --config profile.dev.opt-level=0 --config 'profile.dev.package."*".opt-level=0' \
    --config profile.dev.debug=false
  export CARGO_INCREMENTAL=0
  ;;
esac

missing() {
  echo "skipped: a static binary for $machine: $1" >&2
  exit 3
}
command -v clang >/dev/null || missing "no clang (apt-get install clang)"
command -v llvm-ar >/dev/null || missing "no llvm-ar (apt-get install llvm)"
rustup target list --installed 2>/dev/null | grep -qx "$target" ||
  rustup target add "$target" >/dev/null 2>&1 || missing "no Rust for it (rustup target add $target)"

# apt uses package lists of its own here, so that the lists of this machine do not change.
headers="$build/musl"
if [ ! -f "$headers/usr/include/$machine-linux-musl/stdio.h" ]; then
  command -v apt-get >/dev/null || missing "no apt-get to fetch musl-dev of $debian by"
  mkdir -p "$headers/apt/lists/partial"
  (
    cd "$headers/apt"
    own=(-qq -o "APT::Architecture=$debian" -o "APT::Architectures::=$debian" -o "Dir::State::lists=$PWD/lists"
      -o "Dir::Cache=$PWD" -o Dir::State::status=/dev/null)
    apt-get "${own[@]}" update && apt-get "${own[@]}" download musl-dev
  ) >/dev/null 2>&1 || missing "musl-dev of $debian cannot be fetched"
  dpkg-deb --extract "$headers"/apt/musl-dev_*_"$debian".deb "$headers"
  rm -rf "$headers/apt"
fi
headers=$(cd "$headers" && pwd)

export "CC_${machine}_unknown_linux_musl=clang" "AR_${machine}_unknown_linux_musl=llvm-ar"
export "CFLAGS_${machine}_unknown_linux_musl=--sysroot=$headers -isystem $headers/usr/include/$machine-linux-musl"
export "CARGO_TARGET_${machine^^}_UNKNOWN_LINUX_MUSL_LINKER=rust-lld"
export RUSTFLAGS="-C target-feature=+crt-static -C strip=symbols"
# The profile of pgo/ belongs to x86-64.
[ "$machine" = x86_64 ] || export SEEKWELL_PLAIN=1
export CARGO_TARGET_DIR="$build"
scripts/guided.sh cargo build --locked -p seekwell-cli --bin seekwell --target "$target" "$@"
profile=debug
for word in "$@"; do [ "$word" != --release ] || profile=release; done
binary=$build/$target/$profile/seekwell
echo "$binary: $(wc -c <"$binary") bytes"
exec scripts/static-try.sh "$binary"
