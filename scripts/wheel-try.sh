#!/usr/bin/env bash
# Checks that a wheel works and is what its name states: scripts/wheel-try.sh WHEEL. It must not need
# a newer C library than its tag states. It must install without a compiler and a network. Its
# results must be those of this tree's binary. A wheel for 64-bit ARM is tried with a Python for
# that machine under an emulator, and must give the same results.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(realpath "$1")
home=$("$here/scripts/zig.sh")
name=$(basename "$wheel")
machine=$(sed -E 's/.*manylinux_2_[0-9]+_([a-z0-9_]+)\.whl/\1/' <<<"$name")
echo "$name: $(wc -c <"$wheel") bytes"
fail() {
  echo "FAILED: $name: $*"
  exit 1
}

room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
python3 -m zipfile -e "$wheel" "$room/files"
module=$room/files/seekwell/_seekwell.abi3.so
[ -f "$module" ] || fail "no module for every Python from 3.11 on"
symbols() { readelf --wide --dyn-syms "$module"; }
newest=$(symbols | grep -oE '@GLIBC_[0-9.]+' | sort -uV | tail -1)
tag=$(grep -oE 'manylinux_2_[0-9]+' <<<"$name" | tr _ .)
[ "$(printf '%s\n' "${newest#@GLIBC_}" "${tag#manylinux.}" | sort -V | tail -1)" = "${tag#manylinux.}" ] ||
  fail "it asks for $newest"
"$home/bin/abi3audit" --strict "$wheel" >"$room/log" 2>&1 || fail "$(cat "$room/log")"
"$home/bin/auditwheel" show "$wheel" >"$room/log" 2>&1 || fail "$(cat "$room/log")"
grep -q manylinux "$room/log" || fail "$(cat "$room/log")"
echo "ok: abi3, newest symbol of the C library ${newest#@}"

# Get the results of the binary if it exists. A wheel for another machine must give the same.
binary=${SEEKWELL_BINARY:-$here/target/debug/seekwell}
words=(fs-mark:files=6 --device hdd:hitachi-7k200 --scheduler cfq --seeds 1 --seed 3 --json --series --quiet)
said=none
if [ -x "$binary" ]; then
  said=$room/binary.json
  "$binary" run "${words[@]}" >"$said"
fi
cp "$here/scripts/wheel_try.py" "$room"
cd "$room"
if [ "$machine" = "$(uname -m)" ]; then
  python3 -m venv "$room/fresh"
  # pip gets no compiler and no package index, because the wheel must need neither.
  env -i PATH="$room/fresh/bin" pip install --quiet --disable-pip-version-check --no-index "$wheel"
  env -i PATH="$room/fresh/bin" python -I "$room/wheel_try.py" "$said" "$room/fresh"
  exit
fi
emulator=$(command -v "qemu-$machine-static" || command -v "qemu-$machine" || true)
if [ -z "$emulator" ] || [ "$machine" != aarch64 ]; then
  echo "skipped: $name tried by its own Python (no emulator: apt-get install qemu-user-static)"
  exit 0
fi
if ! command -v apt-get >/dev/null ||
  ! "$here/scripts/arm64.sh" "$room/tree" python3-minimal libpython3-stdlib >"$room/log" 2>&1; then
  echo "skipped: $name tried by its own Python (Debian's packages of arm64 cannot be fetched)"
  exit 0
fi
env -i PYTHONPATH="$room/files" PYTHONDONTWRITEBYTECODE=1 \
  "$emulator" -L "$room/tree" "$room/tree/usr/bin/python3" -s "$room/wheel_try.py" "$said" "$room/files"
