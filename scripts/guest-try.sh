#!/usr/bin/env bash
# Builds a kernel for guests, and checks that it runs and repeats itself. The arguments are the
# seekwell binary and the directory of the cache. Exit code 3: the source or a tool is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
seekwell=$(realpath "${1:-target/debug/seekwell}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SEEKWELL_GUEST_CACHE=${2:-$work/cache}

missing() {
  echo "skipped: guest kernel: $1"
  exit 3
}
sources() { compgen -G '/usr/src/linux-source-*.tar.*' >/dev/null; }
if ! sources && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get install -y -q linux-source-6.12 flex bison bc libelf-dev >"$work/apt" 2>&1 || true
fi
sources || missing 'no linux-source package is installed'
for tool in flex bison bc gcc make mkfs.ext4; do
  command -v "$tool" >/dev/null || missing "$tool is not installed"
done

if ! "$seekwell" guest list | grep -q '^6'; then
  "$seekwell" guest build --quiet
fi
echo "ok: guest kernel: built"

# fsync of 20 new files, twice, from two directories: every request at the same nanosecond.
files='for i in $(seq 20); do dd if=/dev/zero of=f$i bs=64k count=1 conv=fsync status=none; done'
run() { "$seekwell" guest run -d "$device" --seeds 2 --json "$@" -- sh -c "$files"; }
device=constant:constant,service_us=8000,rotational=yes,write_cache=yes
strip() { sed -E 's/"wall_seconds": ?[0-9.e-]+//g'; }
run -o "$work/a" | strip >"$work/a.json"
mkdir "$work/elsewhere"
(cd "$work/elsewhere" && run -o "$work/b" | strip >"$work/b.json")
diff -r "$work/a/guest" "$work/b/guest" >/dev/null || {
  echo "FAILED: guest kernel: two runs with the same seed differ"
  exit 1
}
cmp --quiet "$work/a.json" "$work/b.json" || echo "guest kernel: the JSON of two runs differs"
echo "ok: guest kernel: 8 runs on two directories have identical request logs"

# The simulation has the kernel's results and numbers of requests, and a comparison runs in guests.
"$seekwell" guest check -d "$device" --seeds 1 -w fs-mark:files=20,size=16k \
  -w sqlite:transactions=10 -w pgbench:scale=1,clients=4,transactions=20 >"$work/check" || {
  cat "$work/check"
  echo "FAILED: guest kernel: the simulation differs from the kernel"
  exit 1
}
"$seekwell" compare --substrate kernel -d "$device" -w fs-mark:files=10 -w cmd:true --seeds 2 \
  --results "$work/compared" --json --quiet | grep -q '"finished": *true'
echo "ok: guest kernel: the simulation agrees in 3 workloads under 4 schedulers"

# A kernel without differences to itself; and each failure has its own message.
name=$("$seekwell" guest list | awk 'NR == 2 { print $1 }')
"$seekwell" guest diff "$name" "$name" -d "$device" -s bfq --seeds 1 -- sh -c "$files" >/dev/null
fails() {
  local expected=$1
  shift
  if "$seekwell" guest run -d "$device" -s none --seeds 1 "$@" >"$work/out" 2>&1; then
    echo "FAILED: guest kernel: no error: $expected"
    exit 1
  fi
  grep -q "$expected" "$work/out" || {
    cat "$work/out"
    echo "FAILED: guest kernel: the message lacks: $expected"
    exit 1
  }
}
fails 'virtual time' --time-limit 5 -- sleep 100
fails 'panicked' -- sh -c 'echo c > /proc/sysrq-trigger'
fails 'no scheduler of this kernel' -s cfq -- true
fails 'exit code 3' -- sh -c 'exit 3'
if compgen -G "${TMPDIR:-/tmp}/seekwell-guest-*" >/dev/null; then
  echo "FAILED: guest kernel: a run left its directory behind"
  exit 1
fi
echo "ok: guest kernel: 4 failures have messages of their own, and nothing is left behind"
