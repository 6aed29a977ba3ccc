#!/bin/sh
# Repeats every number of docs/effects.md: first the demos with their range over three seeds, then
# the comparisons without a claim. The argument is the path of the program. Without it, the program
# must be in PATH.
set -eu
seekwell=${1:-seekwell}
old=noop-3.4,deadline-3.4,cfq-3.4
ssd=ssd:x25m-g2-160
disk=hdd:hitachi-7k200

for demo in async-share sorted-writeback left-over-writeback wal-overtakes-writeback \
    scan-and-intruder raised-at-start; do
    "$seekwell" demo "$demo" --seeds 3
    echo
done

run() {
    echo "$1"
    shift
    "$seekwell" run "$@" --schedulers "$old" --quiet
    echo
}
run B compilebench:trees=4,reads=2 --device $ssd --machine cores=4,memory=4G
run C1 pgbench:profile=sandy-bridge,transactions=4000 --device $ssd --machine cores=4
run C2 pgbench:profile=clarksfield,transactions=2000 --device $ssd --machine cores=8
run C3 pgbench:profile=penryn,transactions=2000 --device $disk --machine cores=2
server="--device ssd:s3700-100 --machine postgres-2015,placement=first,phase=drawn --seeds 1"
large=pgbench:profile=s3700-large
old=noop-4.0,deadline-4.0,cfq-4.0
# Effect J of docs/effects.md, with other values of settings that its source does not state.
run J1 $large,seconds=600s,segments=1000,completion_target=0.9 $server
run J2 $large,seconds=200s,full_page_writes=no $server
# The same effect with reads only: J3 with the CPU time of the schedulers, J4 without it.
run J3 $large,seconds=60s,mode=select $server
run J4 $large,seconds=60s,mode=select ${server/phase=drawn/phase=drawn,without=scheduler-cpu}
old=noop-3.4,deadline-3.4,cfq-3.4
run D tiobench --device $disk
run E fs-mark:files=100 --device $disk
run H blogbench:seconds=10s --device $disk --machine cores=2,memory=256M
run I tiobench:size=64m,threads=8 --device $ssd
