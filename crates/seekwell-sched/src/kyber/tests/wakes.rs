//! The number of tokens that are freed before a waiting hardware queue is woken.

use super::*;

/// Completes writes of a pool that is out of tokens. Returns the number of completions until the
/// hardware queue is woken.
fn completions_until_woken(size: u32) -> u32 {
    let (mut cx, mut k) = queue();
    k.pools[WRITE].size = size;
    for id in 0..u64::from(size) + 1 {
        insert(&mut cx, &mut k, id, Op::Write);
    }
    let mut out = Vec::new();
    while let Some(rq) = call(&mut cx, &mut k) {
        out.push(rq);
    }
    assert_eq!(out.len(), size as usize, "all tokens are out");
    assert!(!cx.take_kick());
    let woken = out.into_iter().position(|rq| {
        end(&mut cx, &mut k, rq);
        cx.take_kick()
    });
    woken.expect("it is woken") as u32 + 1
}

#[test]
fn hardware_queue_is_woken_after_an_eighth_of_the_pool_but_1_to_8_tokens() {
    for (size, want) in [
        (1, 1),
        (7, 1),
        (8, 1),
        (15, 1),
        (16, 2),
        (40, 5),
        (63, 7),
        (64, 8),
        (71, 8),
        (72, 8),
        (128, 8),
    ] {
        assert_eq!(completions_until_woken(size), want, "pool of {size}");
    }
}
