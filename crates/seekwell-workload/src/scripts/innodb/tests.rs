use crate::testing::Trial;

fn run(more: &[(&'static str, &'static str)]) -> Trial {
    let mut given = vec![("size", "16m"), ("seconds", "2s"), ("think", "1ms")];
    given.retain(|g| more.iter().all(|m| m.0 != g.0));
    given.extend(more);
    let t = Trial::run("innodb", &given);
    assert_eq!(t.left_over(), 0);
    t
}

#[test]
fn commit_writes_and_syncs_the_log_and_threads_share_syncs() {
    let one = run(&[("threads", "1"), ("innodb_buffer_pool_size", "16m")]);
    let flushes = one.ops("log sync");
    let commits = one.ops("commit");
    // The cleaner and its checkpoints also sync the log, a few times per second.
    assert!((commits..commits + 20).contains(&flushes), "{flushes}");
    let many = run(&[("threads", "64"), ("innodb_buffer_pool_size", "16m")]);
    let (flushes, commits) = (many.ops("log sync"), many.ops("commit"));
    assert!(2 * flushes < commits, "{flushes} for {commits}");
    assert!(many.metric() > 3.0 * one.metric());
    for t in [&one, &many] {
        let log = t.ranges("write", "ib_redo0");
        assert!(log.iter().all(|w| w.0 % 512 == 0 && w.1 % 512 == 0));
    }
}

#[test]
fn buffer_pool_that_holds_all_tables_reads_nothing() {
    let all = run(&[("innodb_buffer_pool_size", "16m")]);
    assert_eq!(
        (all.ops("page read"), all.calls_on("read", "table")),
        (0, 0)
    );
    let hits = |t: &Trial| t.world.measures().metrics()[3].value;
    assert_eq!(hits(&all), 100.0);
    let half = run(&[("innodb_buffer_pool_size", "8m")]);
    // Requests are uniform, so half of them find their page in memory.
    assert!((45.0..55.0).contains(&hits(&half)), "{}", hits(&half));
    let reads = half.ranges("read", "table");
    assert!(reads.iter().all(|r| r.0 % 16_384 == 0 && r.1 == 16_384));
}

#[test]
fn doublewrite_buffer_is_written_first_and_doubles_the_writes() {
    let of = |doublewrite| {
        run(&[
            ("innodb_doublewrite", doublewrite),
            ("innodb_buffer_pool_size", "4m"),
        ])
    };
    let (on, off) = (of("yes"), of("no"));
    let copies = |t: &Trial| -> u64 { t.ranges("write", "dblwr").iter().map(|w| w.1).sum() };
    let fresh = 128 * 16_384;
    assert_eq!(copies(&off), fresh, "laid out");
    let written = 16_384 * on.ops("page write");
    assert_eq!(copies(&on) - fresh, written);
    assert!(on.ops("page write") > 100);
    assert!(off.metric() > on.metric());
}

#[test]
fn asynchronous_commits_are_synced_once_a_second() {
    let of = |at| {
        run(&[
            ("innodb_flush_log_at_trx_commit", at),
            ("innodb_buffer_pool_size", "16m"),
            ("threads", "1"),
            ("innodb_max_dirty_pages_pct_lwm", "99"),
        ])
    };
    let (none, each, written) = (of("0"), of("1"), of("2"));
    assert!(each.ops("log sync") >= each.ops("commit"));
    for lazy in [&none, &written] {
        assert!(lazy.ops("log sync") <= 6, "{}", lazy.ops("log sync"));
        assert!(lazy.metric() > each.metric());
    }
    assert!(written.ops("log write") >= written.ops("commit"));
    assert!(none.ops("log write") < 10);
}

#[test]
fn nearly_full_log_makes_transactions_wait_for_the_cleaner() {
    let given = [
        ("innodb_redo_log_capacity", "8m"),
        ("innodb_buffer_pool_size", "16m"),
        ("record", "64k"),
        ("reads", "0"),
        ("innodb_io_capacity", "100"),
        ("innodb_io_capacity_max", "100"),
        ("think", "0"),
    ];
    let small = run(&given);
    assert!(small.ops("log wait") > 0 && small.ops("checkpoint") > 3);
    let mut large = given;
    large[0].1 = "1g";
    assert_eq!(run(&large).ops("log wait"), 0);
}

#[test]
fn contradictory_parameters_are_rejected() {
    for (words, said) in [
        ("innodb_io_capacity=3000", "must not exceed"),
        ("reads=0,updates=0", "above 0"),
    ] {
        let e = crate::Plan::new(&format!("innodb:{words}"), &[]).expect_err("refused");
        assert!(e.to_string().contains(said), "{e}");
    }
}
