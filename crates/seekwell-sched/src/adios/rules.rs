//! The rules of ADIOS, as its reasons name them.

seekwell_core::rules! {
    NOT_STABLE: "not-stable", "adios_insert_requests",
        "Until a small read and a small write were measured, requests go in the order they came.";
    BEHIND_BARRIER: "behind-barrier", "adios_insert_requests",
        "A barrier, and all that comes behind one, waits in a queue of its own.";
    PAGE_FILLED: "page-filled", "fill_batch_queues",
        "A page is filled from the deadline trees up to the latency window; the bias decides \
         between reads and the rest.";
    PAGE_CONTINUES: "page-continues", "dispatch_from_bq",
        "The next request of the current page goes, type by type or in sector order.";
    PRIORITY_QUEUE: "priority-queue", "adios_dispatch_request",
        "What waits in the priority queues goes before all pages.";
    BARRIER_LIFTED: "barrier-lifted", "adios_dispatch_request",
        "Once nothing from before the barrier is left, the barrier goes, and what waits behind it \
         is sorted in.";
    IMPLAUSIBLE_LATENCY: "implausible-latency", "adios_completed_request",
        "A latency above lat_model_latency_limit teaches nothing.";
    SAMPLE: "sample", "latency_model_input",
        "Each completion is a sample for the model of its type: a base below 4 KiB, a slope \
         above.";
    MODEL_UPDATED: "model-updated", "latency_model_update",
        "The samples become the base and the slope that predictions are made from.";
}
