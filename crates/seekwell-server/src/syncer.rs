//! Makes flushes durable. A flush is acknowledged only when the data are on the medium of the
//! backing file.
//!
//! A separate thread calls fdatasync(2) as soon as a flush arrives, while the model computes its
//! completion time. The flush is acknowledged when both have finished. Flushes that arrive during a
//! call share the next call, because the data of all writes before them are already in the file.

use crate::inbox::{Inbox, Reply, Synced};
use crate::store::Store;
use crate::sys;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

/// The thread that calls fdatasync(2). It receives numbers of jobs. [`Inbox::drain`] returns each
/// number with its result.
pub struct Syncer {
    /// Sends numbers of jobs to the thread. Dropping this end stops the thread.
    pub ask: Sender<u32>,
    /// The thread.
    pub thread: JoinHandle<()>,
}

impl Syncer {
    /// Starts the thread.
    pub fn start<R: Reply>(store: Arc<Store>, inbox: Arc<Inbox<R>>) -> io::Result<Self> {
        let (ask, asked) = mpsc::channel();
        let work = move || {
            sys::io_flusher();
            let mut ids: Vec<u32> = Vec::new();
            while let Ok(first) = asked.recv() {
                ids.push(first);
                ids.extend(asked.try_iter());
                let kept = store.sync().is_ok();
                inbox.synced(ids.drain(..).map(|id| Synced { id, kept }));
            }
        };
        let thread = thread::Builder::new().name("syncing".into()).spawn(work)?;
        Ok(Syncer { ask, thread })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::Clock;

    impl Reply for () {
        fn answer(self, _: bool) {}
    }

    #[test]
    fn each_flush_completes_after_a_later_sync_call() {
        let store = Arc::new(Store::memory(4096).expect("memory"));
        let inbox = Arc::new(Inbox::<()>::new(Clock::start()));
        let Syncer { ask, thread } = Syncer::start(store.clone(), inbox.clone()).expect("a thread");
        for id in 0..100 {
            ask.send(id).expect("heard");
        }
        drop(ask);
        thread.join().expect("no panic");
        let mut synced = Vec::new();
        inbox.drain(&mut Vec::new(), &mut synced);
        assert_eq!(synced.len(), 100);
        assert!(
            synced
                .iter()
                .zip(0..)
                .all(|(s, id)| *s == Synced { id, kept: true })
        );
        assert!((1..=100).contains(&store.syncs()), "{}", store.syncs());
    }
}
