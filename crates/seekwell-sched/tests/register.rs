//! A scheduler from outside the tree joins the list at run time.

use seekwell_core::Era;
use seekwell_sched::{RegisterError, SchedulerInfo, find, register, registry};

#[test]
fn external_scheduler_joins_the_registry() {
    let mine = SchedulerInfo {
        name: "from-outside",
        versions: &[("1", Era::Mq), ("2.1", Era::Mq6_1)],
        ..seekwell_sched::none::INFO
    };
    let before = registry().len();
    assert_eq!(register(mine), Ok(()));
    assert_eq!(registry().len(), before + 1);
    let (info, version, era) = find("from-outside-2.1").expect("registered");
    assert_eq!(
        (info.name, version, era),
        ("from-outside", "2.1", Era::Mq6_1)
    );
    assert_eq!(
        register(mine),
        Err(RegisterError::Taken("from-outside".into()))
    );
    let with = |name, versions| SchedulerInfo {
        name,
        versions,
        ..mine
    };
    for name in [
        "", "Cfq", "a b", "a,b", "a:b", "a.b", "all", "blk-mq", "1st",
    ] {
        let refused = register(with(name, mine.versions));
        assert_eq!(refused, Err(RegisterError::Name(name.into())));
    }
    // The name equals an alias of a built-in scheduler.
    let shadows = SchedulerInfo {
        name: "bfq-v7r8",
        ..mine
    };
    assert!(matches!(register(shadows), Err(RegisterError::Taken(_))));
    let legacy = register(with("other", &[("1", Era::K3_4)]));
    assert!(matches!(legacy, Err(RegisterError::Layer { .. })));
    for versions in [
        &[][..],
        &[("1", Era::Mq), ("1", Era::Mq)],
        &[("1:2", Era::Mq)],
    ] {
        let refused = register(with("other", versions));
        assert!(matches!(refused, Err(RegisterError::Version { .. })));
    }
    assert_eq!(registry().len(), before + 1);
}
