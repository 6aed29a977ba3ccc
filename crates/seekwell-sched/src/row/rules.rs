//! The rules of row. The reason of a decision names one of them.

seekwell_core::rules! {
    URGENT_READ: "urgent-read", "row_add_request",
        "A read becomes urgent if another class was served last, or if its queue went without \
         service in the last cycle.";
    CYCLE_RESTARTS: "cycle-restarts", "row_restart_cycle",
        "When no queue of the class has quantum left, all of them get a new quantum.";
    QUANTUM: "quantum", "row_get_next_queue",
        "Inside a class, the first queue with requests and with quantum left in this cycle is \
         served.";
    REGULAR_STARVED: "regular-starved", "row_get_ioprio_class_to_serve",
        "Best effort is served after reg_starv_limit real-time requests were dispatched while it \
         waited.";
    LOW_STARVED: "low-starved", "row_get_ioprio_class_to_serve",
        "The idle class is served after low_starv_limit requests of other classes were dispatched \
         while it waited.";
    REALTIME_FIRST: "realtime-first", "row_get_ioprio_class_to_serve",
        "Real time is served before all others.";
    IDLING: "idling", "row_get_ioprio_class_to_serve",
        "While the timer runs for an empty read queue, no class below real time is served.";
    IDLE_STARTS: "idle-starts", "row_get_ioprio_class_to_serve",
        "The device idles for an empty read queue whose requests arrived in quick succession.";
    BEST_EFFORT: "best-effort", "row_get_ioprio_class_to_serve",
        "Best effort is served before the idle class.";
    IDLE_CLASS: "idle-class", "row_get_ioprio_class_to_serve",
        "The idle class is served if no other class has requests.";
    IDLE_OVER: "idle-over", "row_idle_hrtimer_fn",
        "The timer ends the wait for an empty read queue; the next wait needs new requests in \
         quick succession.";
    UNSERVED_FIRST: "unserved-first", "row_dispatch_requests",
        "First posting: an earlier queue in the cycle goes first if it was passed over while it \
         was empty, and has requests again.";
    NEXT_QUEUE: "next-queue", "row_get_next_queue",
        "First posting: when a queue has used its quantum, or is empty without an idle wait, the \
         next queue with requests is served.";
    URGENT_FIRST: "urgent-first", "row_dispatch_requests",
        "The urgent request goes before all others.";
}
