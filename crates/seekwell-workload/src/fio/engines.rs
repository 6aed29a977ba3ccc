//! The I/O engines.

use super::job::{Engine, FileCall};

/// The engines by what their calls do here: engine, names, and the note that a run prints.
pub(super) const ENGINES: &[(Engine, &[&str], &str)] = &[
    (
        Engine::Sync,
        &[
            "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice",
        ],
        "",
    ),
    (
        Engine::Async,
        &["libaio", "io_uring", "posixaio", "windowsaio", "solarisaio"],
        "",
    ),
    (
        Engine::Null,
        &["null", "cpp_null"],
        "it transfers nothing, so no scheduler has any work",
    ),
    (
        Engine::Null,
        &["page_fault"],
        "its calls only touch memory, so no scheduler has any work",
    ),
    (Engine::Cpu, &["cpuio"], ""),
    (Engine::Falloc, &["falloc"], ""),
    (Engine::Truncate, &["ftruncate"], ""),
    (Engine::Files(FileCall::Create), &["filecreate"], ""),
    (Engine::Files(FileCall::Stat), &["filestat"], ""),
    (Engine::Files(FileCall::Delete), &["filedelete"], ""),
    (Engine::Files(FileCall::CreateDir), &["dircreate"], ""),
    (Engine::Files(FileCall::StatDir), &["dirstat"], ""),
    (Engine::Files(FileCall::DeleteDir), &["dirdelete"], ""),
    (
        Engine::Sync,
        &["sg", "libzbc"],
        "in a kernel its requests bypass the scheduler; here the scheduler orders them",
    ),
    (
        Engine::Async,
        &["io_uring_cmd", "xnvme", "libblkio"],
        "in a kernel its requests bypass the scheduler; here the scheduler orders them",
    ),
    (
        Engine::Sync,
        &["libpmem", "pmemblk", "dev-dax", "mtd"],
        "it uses memory that has no scheduler; here its calls go to the disk of the run",
    ),
    (
        Engine::Sync,
        &["gfapi", "ime_psync", "ime_psyncv", "libhdfs", "nfs", "http"],
        "it uses a store in the network; here its calls go to the disk of the run",
    ),
    (
        Engine::Async,
        &[
            "rbd",
            "rados",
            "gfapi_async",
            "ime_aio",
            "libiscsi",
            "nbd",
            "dfs",
        ],
        "it uses a store in the network; here its calls go to the disk of the run",
    ),
];

/// Engines that cannot run, with the reason.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &[
            "net",
            "netsplice",
            "rdma",
            "librpma_apm_client",
            "librpma_apm_server",
        ],
        "it sends data over a network and uses no disk",
    ),
    (
        &["exec"],
        "it runs another program; run that program with `cmd:`",
    ),
    (&["e4defrag"], "moving the blocks of a file is not modelled"),
];

/// Engines whose data are on a device that the engine itself finds, without a file name.
const OWN_DEVICE: &[&str] = &["rbd", "rados", "libiscsi", "nbd", "dfs", "libhdfs", "http"];

/// Returns true if the engine needs neither a file name nor a size, because its store has them.
pub(super) fn has_own_device(text: &str) -> bool {
    OWN_DEVICE.contains(&name(text))
}

/// Removes the path of an engine that fio loads from a file.
fn name(text: &str) -> &str {
    text.strip_prefix("external:").map_or(text, |path| {
        let base = path.rsplit('/').next().unwrap_or(path);
        let base = base.strip_suffix(".so").unwrap_or(base);
        base.strip_suffix(".o").unwrap_or(base)
    })
}

/// Returns what the calls of an engine do, and a note for the user if this differs from fio.
pub(super) fn engine(text: &str) -> Result<(Engine, Option<String>), String> {
    let name = name(text);
    if let Some((kind, _, note)) = ENGINES.iter().find(|(_, names, _)| names.contains(&name)) {
        let note = (!note.is_empty()).then(|| format!("ioengine={text}: {note}"));
        return Ok((*kind, note));
    }
    if let Some((_, why)) = REFUSED.iter().find(|(names, _)| names.contains(&name)) {
        return Err(format!("ioengine={text} cannot run here: {why}"));
    }
    Err(format!(
        "ioengine={text}: not an engine that runs here; write for example psync, libaio or \
         io_uring"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_that_leave_the_disk_are_noted_or_refused() {
        assert_eq!(engine("libaio"), Ok((Engine::Async, None)));
        assert_eq!(engine("psync"), Ok((Engine::Sync, None)));
        let (kind, note) = engine("rbd").expect("runs");
        assert_eq!(kind, Engine::Async);
        assert!(note.is_some_and(|n| n.contains("store in the network")));
        assert!(engine("net").is_err_and(|e| e.contains("uses no disk")));
        assert!(engine("exec").is_err_and(|e| e.contains("`cmd:`")));
        assert!(engine("libaoi").is_err_and(|e| e.contains("write for example")));
        let external = engine("external:/tmp/cpp_null.o").expect("runs");
        assert_eq!(external.0, Engine::Null);
    }
}
