#!/usr/bin/env bash
# Builds a static binary for 64-bit ARM (phones, network storage, the Raspberry Pi):
#   scripts/aarch64.sh [--quick | CARGO OPTIONS...]      (default: --release)
# With --quick, the build is not optimised. CI builds and tries this form. If something that the
# build needs is not available, the script prints this and exits with 3. Rust's own toolchain links
# the binary. Its C code (SQLite, zstd) is compiled by clang with the headers of musl for that
# machine. They are a package of 0.6 MB, which is unpacked but not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-musl
build="${CARGO_TARGET_DIR:-target}/aarch64"
case ${1-} in
'') set -- --release ;;
--quick)
  set -- --config profile.dev.opt-level=0 --config 'profile.dev.package."*".opt-level=0' \
    --config profile.dev.debug=false
  export CARGO_INCREMENTAL=0
  ;;
esac

missing() {
  echo "skipped: a static binary for aarch64: $1" >&2
  exit 3
}
command -v clang >/dev/null || missing "no clang (apt-get install clang)"
command -v llvm-ar >/dev/null || missing "no llvm-ar (apt-get install llvm)"
rustup target list --installed 2>/dev/null | grep -qx $target ||
  rustup target add $target >/dev/null 2>&1 || missing "no Rust for it (rustup target add $target)"

# Separate package lists, so that those of the machine are not changed.
headers="$build/musl"
if [ ! -f "$headers/usr/include/aarch64-linux-musl/stdio.h" ]; then
  command -v apt-get >/dev/null || missing "no apt-get to fetch musl-dev of arm64 by"
  mkdir -p "$headers/apt/lists/partial"
  (
    cd "$headers/apt"
    own=(-qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o "Dir::State::lists=$PWD/lists"
      -o "Dir::Cache=$PWD" -o Dir::State::status=/dev/null)
    apt-get "${own[@]}" update && apt-get "${own[@]}" download musl-dev
  ) >/dev/null 2>&1 || missing "musl-dev of arm64 cannot be fetched"
  dpkg-deb --extract "$headers"/apt/musl-dev_*_arm64.deb "$headers"
  rm -rf "$headers/apt"
fi
headers=$(cd "$headers" && pwd)

export CC_aarch64_unknown_linux_musl=clang AR_aarch64_unknown_linux_musl=llvm-ar
export CFLAGS_aarch64_unknown_linux_musl="--sysroot=$headers -isystem $headers/usr/include/aarch64-linux-musl"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS="-C target-feature=+crt-static -C strip=symbols"
export CARGO_TARGET_DIR="$build"
cargo build --locked -p seekwell-cli --bin seekwell --target $target "$@"
profile=debug
for word in "$@"; do [ "$word" != --release ] || profile=release; done
binary=$build/$target/$profile/seekwell
echo "$binary: $(wc -c <"$binary") bytes"
exec scripts/aarch64-try.sh "$binary"
