//! The rules of ROW, as its reasons name them.

seekwell_core::rules! {
    URGENT_READ: "urgent-read", "row_add_request",
        "A read becomes urgent if another class was served last, or if its queue went without \
         service in the last cycle.";
    CYCLE_RESTARTS: "cycle-restarts", "row_restart_cycle",
        "When no queue of the class has quantum left, all get theirs anew.";
    QUANTUM: "quantum", "row_get_next_queue",
        "Inside a class the first queue that has requests, and quantum left in this cycle, is \
         served.";
    REGULAR_STARVED: "regular-starved", "row_get_ioprio_class_to_serve",
        "Best effort is served once reg_starv_limit real-time requests have gone before it.";
    LOW_STARVED: "low-starved", "row_get_ioprio_class_to_serve",
        "The idle class is served once low_starv_limit requests have gone before it.";
    REALTIME_FIRST: "realtime-first", "row_get_ioprio_class_to_serve",
        "Real time is served before all others.";
    IDLING: "idling", "row_get_ioprio_class_to_serve",
        "While the timer runs for an empty read queue nothing below real time goes.";
    IDLE_STARTS: "idle-starts", "row_get_ioprio_class_to_serve",
        "An empty read queue whose requests came in quick succession is waited for.";
    BEST_EFFORT: "best-effort", "row_get_ioprio_class_to_serve",
        "Best effort is served before the idle class.";
    IDLE_CLASS: "idle-class", "row_get_ioprio_class_to_serve",
        "The idle class is served if nobody else has requests.";
    IDLE_OVER: "idle-over", "row_idle_hrtimer_fn",
        "The timer ends the waiting for an empty read queue, which is not waited for again until \
         it proves busy.";
    UNSERVED_FIRST: "unserved-first", "row_dispatch_requests",
        "First posting: a queue before the present one goes first if it was passed over while it \
         was empty, and has requests now.";
    NEXT_QUEUE: "next-queue", "row_get_next_queue",
        "First posting: when a queue has had its quantum, or is empty and not waited for, the next \
         one of all that has requests is served.";
    URGENT_FIRST: "urgent-first", "row_dispatch_requests",
        "The urgent request goes before everything.";
}
