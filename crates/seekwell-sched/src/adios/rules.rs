//! The rules of ADIOS. The reason of a decision names one of them.

seekwell_core::rules! {
    NOT_STABLE: "not-stable", "adios_insert_requests",
        "Until a small read and a small write have been measured, requests leave in order of \
         arrival.";
    BEHIND_BARRIER: "behind-barrier", "adios_insert_requests",
        "A barrier, and all requests after it, wait in a separate queue.";
    PAGE_FILLED: "page-filled", "fill_batch_queues",
        "A page is filled from the deadline trees up to the latency window; the bias decides \
         between reads and the rest.";
    PAGE_CONTINUES: "page-continues", "dispatch_from_bq",
        "The next request of the current page is dispatched, type by type or in sector order.";
    PRIORITY_QUEUE: "priority-queue", "adios_dispatch_request",
        "Requests in the priority queues go before all pages.";
    BARRIER_LIFTED: "barrier-lifted", "adios_dispatch_request",
        "When all requests before the barrier have left, the barrier is dispatched, and the \
         requests behind it are sorted in.";
    IMPLAUSIBLE_LATENCY: "implausible-latency", "adios_completed_request",
        "A latency above lat_model_latency_limit is not used as a sample.";
    SAMPLE: "sample", "latency_model_input",
        "Each completion is a sample for the model of its type: a base below 4 KiB, a slope \
         above.";
    MODEL_UPDATED: "model-updated", "latency_model_update",
        "The samples give the base and the slope that are used for predictions.";
}
