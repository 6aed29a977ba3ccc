//! Devices from outside this crate join the list while the program runs.

use seekwell_core::Nanos;
use seekwell_device::preset::{Def, Dim};
use seekwell_device::{Constant, Kind, catalogue, describe, open, register_kind, register_preset};

const DEFS: &[Def] = &[Def::new(
    "depth",
    Dim::Count("commands"),
    Some("4"),
    (1.0, 64.0),
    "commands accepted at a time",
)];

const MINE: Kind = Kind {
    name: "drum",
    defs: DEFS,
    build: |p, _| {
        let depth = p.num("depth")? as u32;
        Ok(Box::new(Constant::serial(depth, Nanos::from_ms(17))))
    },
    plain: None,
};

#[test]
fn registered_kind_and_preset_are_listed_and_opened() {
    let before = catalogue().len();
    register_kind(MINE).expect("a new kind");
    let text = "kind = \"drum\"\nname = \"univac\"\nsummary = \"a magnetic drum\"\n\
                [params]\ndepth = { value = 8, unit = \"commands\", source = \"estimate\" }\n";
    register_preset("drum-univac.toml", text).expect("a new preset");
    assert_eq!(catalogue().len(), before + 1);
    let open = |spec: &str| open(spec, 1).expect(spec).facts().depth;
    assert_eq!((open("drum:univac"), open("drum:univac,depth=2")), (8, 2));
    assert_eq!(
        describe("drum:univac").expect("there").summary,
        "a magnetic drum"
    );

    for (what, refused) in [
        ("twice", register_kind(MINE)),
        (
            "a level of RAID",
            register_kind(Kind {
                name: "raid5",
                ..MINE
            }),
        ),
        (
            "capitals",
            register_kind(Kind {
                name: "Drum",
                ..MINE
            }),
        ),
        ("twice", register_preset("again.toml", text)),
        (
            "nonsense",
            register_preset("bad.toml", "kind = \"drum\"\n[params]\nrpm = 1\n"),
        ),
    ] {
        assert!(refused.is_err(), "{what}");
    }
    assert_eq!(catalogue().len(), before + 1);
}
