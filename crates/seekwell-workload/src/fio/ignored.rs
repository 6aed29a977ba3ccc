//! The options that do not change the requests of a job, and the options that stop a run.

/// Options without an effect on the requests, by the reason.
pub(super) const IGNORED: &[(&str, &[&str])] = &[
    (
        "names, places and creation of files: all files are in the directory of the run",
        &[
            "description",
            "directory",
            "unique_filename",
            "create_serialize",
            "create_fsync",
            "create_on_open",
            "allow_file_create",
            "allow_mounted_write",
            "unlink",
            "unlink_each_loop",
            "openfiles",
            "cgroup_nodelete",
        ],
    ),
    (
        "the process: tasks of the run are threads with the run's own user and memory",
        &[
            "thread",
            "cpumask",
            "cpus_allowed",
            "cpus_allowed_policy",
            "numa_cpu_nodes",
            "numa_mem_policy",
            "mem",
            "iomem_align",
            "hugepage-size",
            "hugepage_size",
            "lockmem",
            "uid",
            "gid",
            "gtod_cpu",
            "gtod_reduce",
            "clocksource",
            "exec_prerun",
            "exec_postrun",
            "ioscheduler",
            "disk_util",
            "thinktime_spin",
            "cpumode",
            "exit_on_io_done",
            "thp",
        ],
    ),
    (
        "random numbers: the seed of the run determines them",
        &["randrepeat", "randseed", "random_generator"],
    ),
    (
        "contents of blocks: only lengths are modelled",
        &[
            "zero_buffers",
            "refill_buffers",
            "scramble_buffers",
            "buffer_pattern",
            "buffer_compress_percentage",
            "buffer_compress_chunk",
            "compress",
            "dedupe_percentage",
            "dedupe_mode",
            "dedupe_working_set_percentage",
            "dedupe_global",
        ],
    ),
    (
        "logs and reports: every run records its requests and time series",
        &[
            "group_reporting",
            "per_job_logs",
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "write_hist_log",
            "write_iolog",
            "bwavgtime",
            "iopsavgtime",
            "log_entries",
            "log_avg_msec",
            "log_hist_msec",
            "log_hist_coarseness",
            "log_window_value",
            "log_max_value",
            "log_issue_time",
            "log_offset",
            "log_prio",
            "log_compression",
            "log_compression_cpus",
            "log_store_compressed",
            "log_unix_epoch",
            "log_alternate_epoch",
            "log_alternate_epoch_clock_id",
            "block_error_percentiles",
            "stats",
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement",
            "clat_percentiles",
            "lat_percentiles",
            "slat_percentiles",
            "percentile_list",
            "significant_figures",
            "unified_rw_reporting",
            "kb_base",
            "unit_base",
        ],
    ),
    (
        "errors and minimum rates: a run reports its errors, and measures its rates",
        &[
            "continue_on_error",
            "ignore_error",
            "error_dump",
            "max_latency",
            "rate_min",
            "rate_iops_min",
            "rate_cycle",
            "exitall_on_error",
        ],
    ),
    (
        "submission: the calls are the same",
        &[
            "io_submit_mode",
            "iodepth_batch_complete_max",
            "serialize_overlap",
            "userspace_reap",
            "hipri",
            "hipri_percentage",
            "fixedbufs",
            "registerfiles",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "nonvectored",
            "nowait",
            "force_async",
            "cmd_type",
            "busy_poll",
            "write_hint",
            "atomic",
            "bs_unaligned",
            "readfua",
            "writefua",
            "sg_write_mode",
            "stream_id",
            "skip_bad",
            "replay_skip",
            "ignore_zone_limits",
            "job_max_open_zones",
            "zone_reset_threshold",
            "zone_reset_frequency",
            "read_beyond_wp",
        ],
    ),
    (
        "the address of a store: the calls go to the files or the device of the run",
        &[
            "clustername",
            "rbdname",
            "pool",
            "clientname",
            "conf",
            "touch_objects",
            "volume",
            "brick",
            "single-instance",
            "hostname",
            "port",
            "namenode",
            "chunk_size",
            "hdfsdirectory",
            "uri",
        ],
    ),
];

/// Options that stop a run, with the remedy.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &[
            "read_iolog",
            "read_iolog_chunked",
            "replay_no_stall",
            "replay_redirect",
            "replay_scale",
            "replay_align",
            "replay_time_scale",
            "merge_blktrace_file",
            "merge_blktrace_scalars",
            "merge_blktrace_iters",
        ],
        "replay the log itself, `seekwell replay FILE --mode timed|depth:N`",
    ),
    (
        &[
            "file_append",
            "lockfile",
            "opendir",
            "verify_only",
            "write_barrier",
            "profile",
            "uncached",
        ],
        "is not modelled: remove it",
    ),
    (
        &[
            "trim_percentage",
            "trim_verify_zero",
            "trim_backlog",
            "trim_backlog_batch",
        ],
        "is not modelled: use a job with rw=trim on a device",
    ),
];

/// Returns the options that do not change the requests of a job, by the reason.
pub fn ignored_options() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    IGNORED.iter().copied()
}

/// Returns true if the option has no effect on the requests of a job.
pub(super) fn ignored(key: &str) -> bool {
    IGNORED.iter().any(|(_, names)| names.contains(&key))
}

/// Returns true if the option is about the verification of data.
pub(super) fn verifies(key: &str) -> bool {
    key == "do_verify" || key == "experimental_verify" || key.starts_with("verify")
}

/// Returns the error for an option that is not modelled.
pub(super) fn refusal(key: &str) -> String {
    match REFUSED.iter().find(|(names, _)| names.contains(&key)) {
        Some((_, remedy)) if remedy.starts_with("is ") => format!("the option \"{key}\" {remedy}"),
        Some((_, remedy)) => format!("{key}: {remedy}"),
        None => format!("the option \"{key}\" is not supported: remove it"),
    }
}

/// The names of options that have several names: another name, and the usual name.
const ALIASES: &[(&str, &str)] = &[
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("ba", "blockalign"),
    ("io_limit", "io_size"),
    ("fill_fs", "fill_device"),
    ("fileoffset", "offset"),
    ("nr_files", "nrfiles"),
    ("allrandrepeat", "randrepeat"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("timeout", "runtime"),
    ("iomem", "mem"),
    ("mem_align", "iomem_align"),
    ("ratemin", "rate_min"),
    ("ratecycle", "rate_cycle"),
    ("wait_for_previous", "stonewall"),
    ("disable_bw", "disable_bw_measurement"),
    ("ss", "steadystate"),
    ("ss_dur", "steadystate_duration"),
    ("ss_ramp", "steadystate_ramp_time"),
    // fio compares only as many letters as the name of an option has.
    ("threads", "thread"),
];

/// Returns the usual name of an option that has several names.
pub(super) fn usual(key: &str) -> &str {
    let alias = ALIASES.iter().find(|(other, _)| *other == key);
    alias.map_or(key, |(_, name)| name)
}

/// Returns the name of the setting that an option changes. Options of the same setting replace one
/// another.
pub(super) fn setting(key: &str) -> &str {
    match usual(key) {
        "bsrange" | "bssplit" => "bs",
        "buffered" => "direct",
        "rwmixwrite" => "rwmixread",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_is_listed_twice() {
        let mut all: Vec<&str> = IGNORED
            .iter()
            .flat_map(|(_, n)| n.iter().copied())
            .collect();
        all.extend(REFUSED.iter().flat_map(|(n, _)| n.iter().copied()));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(
            all.iter().all(|name| usual(name) == *name),
            "usual names only"
        );
    }
}
