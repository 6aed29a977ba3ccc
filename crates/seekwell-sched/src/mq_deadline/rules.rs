//! The rules of mq-deadline, as its reasons name them.

seekwell_core::rules! {
    NOT_AGED: "not-aged", "started_after",
        "A request that has not waited for prio_aging_expire is not dispatched as an aged one and \
         stays in its queue.";
    HEAD_EXPIRED: "head-expired", "deadline_check_fifo",
        "A batch begins with the oldest request of its class and direction if the deadline of that \
         request has passed.";
    SWEEP_CONTINUES: "sweep-continues", "deadline_next_request",
        "A batch begins after the last request of its class and direction, if no request has \
         expired.";
    FIFO_HEAD: "fifo-head", "deadline_fifo_request",
        "A batch begins with the oldest request if none follows the last one.";
    AT_HEAD: "at-head", "__dd_dispatch_request",
        "A request inserted at the head goes before all requests of every class (6.1: of its own \
         class only).";
    BATCH_CONTINUES: "batch-continues", "__dd_dispatch_request",
        "The next request of the sweep goes while the batch has had fewer than fifo_batch \
         requests.";
    WRITES_STARVED: "writes-starved", "__dd_dispatch_request",
        "If both reads and writes of a class wait, writes begin a batch after writes_starved \
         batches of reads.";
    CLASS_AGED: "class-aged", "dd_dispatch_prio_aged_requests",
        "A class below a busy one may dispatch a request that has waited longer than \
         prio_aging_expire.";
    HIGHER_CLASS_BUSY: "higher-class-busy", "dd_dispatch_request",
        "While a class has requests waiting or in flight, no class below it is served.";
}
