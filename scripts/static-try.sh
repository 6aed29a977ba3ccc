#!/usr/bin/env bash
# Tries a static binary, under an emulator if it is for 64-bit ARM, with the file tree of a phone of
# 2014 (eMMC, names of single-queue schedulers): scripts/static-try.sh BINARY
set -euo pipefail
binary=$(realpath "$1")
emulator=()
if readelf -h "$binary" | grep -q AArch64 && [ "$(uname -m)" != aarch64 ]; then
  emulator=("$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)")
  if [ -z "${emulator[0]}" ]; then
    echo "skipped: starting it: no emulator (apt-get install qemu-user-static)"
    exit 0
  fi
fi
seekwell() { NO_COLOR=1 "${emulator[@]}" "$binary" "$@"; }

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
queue=$tree/sys/block/mmcblk0/queue
mkdir -p "$queue/iosched" "$tree/sys/block/mmcblk0/mmcblk0p28" "$tree/sys/block/mmcblk0/device" \
  "$tree/proc/self" "$tree/data/app" "$tree/here"
put() { echo "$2" >"$tree/$1"; }
put sys/block/mmcblk0/dev 179:0
put sys/block/mmcblk0/size 30777344
put sys/block/mmcblk0/device/name MMC16G
put sys/block/mmcblk0/queue/scheduler 'noop deadline row [cfq]'
put sys/block/mmcblk0/queue/nr_requests 128
put sys/block/mmcblk0/queue/rotational 0
put sys/block/mmcblk0/queue/read_ahead_kb 128
put sys/block/mmcblk0/queue/iosched/slice_idle 0
put sys/block/mmcblk0/mmcblk0p28/dev 179:28
put sys/block/mmcblk0/mmcblk0p28/partition 28
put proc/self/mountinfo '2 1 179:28 / /data rw - ext4 /dev/block/userdata rw'

demand() { # WORDS COMMAND...: what it prints has these words
  local words=$1 out
  shift
  out=$("$@" 2>&1) || { echo "FAILED: $* ended with $?: $out"; exit 1; }
  case $out in
  *"$words"*) echo "ok: $words" ;;
  *) echo "FAILED: $*: '$words' is not in: $out"; exit 1 ;;
  esac
}
if readelf -l "$binary" 2>/dev/null | grep -q INTERP; then
  echo "FAILED: $binary is not static"
  exit 1
fi
demand 'seekwell ' seekwell --version
demand 'MMC16G' seekwell host --root "$tree"
demand 'mmcblk0 schedules, with cfq.' seekwell host --root "$tree" /data/app
demand 'mmcblk0: cfq -> row, read back' seekwell switch --root "$tree" mmcblk0 row
demand 'mmcblk0: row -> cfq, read back' seekwell switch --root "$tree" mmcblk0 cfq
demand 'fs-mark' seekwell run fs-mark:files=3,workers=1 --dir "$tree/here" --json
demand 'row' seekwell run fs-mark:files=3 -d emmc:motog -s row,cfq-3.4 --seeds 1
