//! The rules of mq-deadline. The reason of a decision names one of them.

seekwell_core::rules! {
    NOT_AGED: "not-aged", "started_after",
        "A request of a lower class that has waited for less than prio_aging_expire does not go \
         before the higher classes.";
    HEAD_EXPIRED: "head-expired", "deadline_check_fifo",
        "A batch begins with the oldest request of its class and direction if the deadline of that \
         request has passed.";
    SWEEP_CONTINUES: "sweep-continues", "deadline_next_request",
        "If no request has expired, a batch begins with the next request in sector order after the \
         one that was dispatched last in its class and direction.";
    FIFO_HEAD: "fifo-head", "deadline_fifo_request",
        "If no request follows the last one in sector order, a batch begins with the oldest \
         request.";
    AT_HEAD: "at-head", "__dd_dispatch_request",
        "A request inserted at the head goes before all requests of every class (6.1: of its own \
         class only).";
    BATCH_CONTINUES: "batch-continues", "__dd_dispatch_request",
        "While the batch has had fewer than fifo_batch requests, the next request of the sweep \
         goes.";
    WRITES_STARVED: "writes-starved", "__dd_dispatch_request",
        "If both reads and writes of a class wait, a batch of writes begins after writes_starved \
         batches of reads.";
    CLASS_AGED: "class-aged", "dd_dispatch_prio_aged_requests",
        "A class below a busy one may dispatch a request that has waited longer than \
         prio_aging_expire.";
    HIGHER_CLASS_BUSY: "higher-class-busy", "dd_dispatch_request",
        "While a class has requests waiting or in flight, no class below it is served.";
}
