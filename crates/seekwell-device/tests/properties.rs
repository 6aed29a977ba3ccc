//! Every device keeps the properties of the suite under any commands.

#[path = "suite/laws.rs"]
mod laws;

use laws::{each_completes_once, is_deterministic, step};
use proptest::prelude::*;
use seekwell_core::{Accept, Command, Instant, Op, Sector, Sectors};
use seekwell_device::open;

fn specs() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("hdd:hitachi-7k200"),
        Just("hdd:st2000dm006"),
        Just("hdd:sata320-2006,layout=serpentine,band_tracks=37"),
        Just("hdd:hitachi-7k500,write_cache=off,physical_block=4096"),
        Just("hdd:hitachi-7k200,wc_bytes=64KiB,wc_cmds=3,wc_idle=0,ra_min=300KiB"),
        Just("hdd:hitachi-7k200,settle_sigma=0.1,p_err=0.01,remap=2000,zero_latency=no"),
        Just("hdd:hitachi-7k200,look_ahead=off,segments_read=0,segments_write=0,depth=1"),
        Just("hdd:hitachi-t7k250,model=fast"),
        Just("constant:depth=5,service_us=700"),
        Just("ssd:x25m-g2-160,state=steady"),
        Just("ssd:s3700-100,state=used,depth=4"),
        Just("ssd:nvme-dc-2t,state=fresh,capacity=400000000"),
        Just("ssd:sata-tlc-1t,buffer=48KiB,map_cache=2,read_ahead=64KiB"),
        Just("ssd:nvme-gen4-tlc-2t,slc_bytes=1GiB,slc_static=1GiB"),
        Just("emmc:motog-sandisk8"),
        Just("controller:level=raid5,members=4,write_policy=write-through,depth=9"),
        Just("controller:level=raid6,members=5,cache=1MiB,read_policy=adaptive,failed=1"),
        Just(
            "controller:level=raid10,of=ssd:s3700-100,cache=512KiB,battery=no,write_policy=always-write-back,destage=fifo"
        ),
        Just(
            "controller:level=raid1,members=2,disk_cache=yes,cache=2MiB,read_policy=ahead,engines=2"
        ),
        Just("controller:level=raid0,members=2,of=(controller:level=raid5,members=3,cache=0bytes)"),
        Just("cloud:gp2,credits=50,depth=6"),
        Just("emmc:motog-sandisk8,cache=512KiB,gc_chance=0.1,clean_pool=1MiB,gc_idle=10"),
        Just("sd:samsung-evoplus32,open_segments=0,map_entries=1,rmw=200us"),
        Just("ssd:x25m-g2-160,variant=detailed,scale=1024,state=steady,rho=0.3"),
        Just("ssd:s3700-100,variant=detailed,scale=256,state=used,map_cache=600,gc=choices"),
        Just("ssd:sata3-256-2011,variant=detailed,scale=512,buffer=64KiB,alloc=static,depth=9"),
        Just("ssd:nvme-dc-2t,variant=detailed,scale=4096,state=steady,plp=no,gc=fifo,copyback=yes"),
        Just("ssd:sata-tlc-1t,variant=detailed,scale=2048,state=fresh,wear_spread=2"),
    ];
    let policy = prop_oneof![
        Just(""),
        Just("policy=fifo"),
        Just("policy=sstf,age_limit=0"),
        Just("policy=clook,window=4"),
        Just("policy=asptf,age_weight=0.1"),
        Just("seek_inward=1.1,seek_outward=0.9"),
        Just("seek_form=lee,rpm_error=500"),
    ];
    (name, policy).prop_map(|(n, p)| {
        if p.is_empty() || !n.starts_with("hdd") {
            n.to_owned()
        } else {
            format!("{n},{p}")
        }
    })
}

proptest! {
    #[test]
    fn every_command_completes_once_and_in_order(
        spec in specs(), seed: u64, steps in proptest::collection::vec(step(), 1..120),
    ) {
        each_completes_once(&spec, seed, &steps)?;
    }

    #[test]
    fn every_device_is_deterministic(
        spec in specs(), seed: u64, steps in proptest::collection::vec(step(), 1..60),
    ) {
        is_deterministic(&spec, seed, &steps)?;
    }
}

#[test]
fn full_device_reports_busy_until_a_completion() {
    for spec in [
        "hdd:hitachi-7k200,depth=3",
        "hdd:hitachi-7k200,depth=3,model=fast",
        "constant:depth=3",
        "ssd:s3700-100,depth=3",
        "ssd:s3700-100,depth=3,variant=detailed,scale=256",
    ] {
        let mut d = open(spec, 1).unwrap();
        let c = |id| Command {
            id,
            op: Op::Read,
            sector: Sector(u64::from(id) * 1_000_000),
            sectors: Sectors(8),
            fua: false,
        };
        for id in 0..3 {
            assert_eq!(d.accept(Instant::START, c(id)), Accept::Accepted, "{spec}");
        }
        assert_eq!(d.accept(Instant::START, c(3)), Accept::Busy, "{spec}");
        let mut out = vec![];
        while out.is_empty() {
            let t = d.next_event().unwrap();
            d.advance(t, &mut out);
        }
        let now = out[out.len() - 1].at;
        assert_eq!(d.accept(now, c(3)), Accept::Accepted, "{spec}");
    }
}
