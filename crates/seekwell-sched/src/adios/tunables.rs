//! The tunables in `iosched/`: their table, and functions to read and write them.

use super::version::Version;
use super::{Adios, DISCARD, READ, TYPES, WRITE};
use crate::cx::Cx;
use crate::tunable::{Kind, StoreError, Tunable, UINT_MAX, strict_int, strict_u64};

const U64_TOP: i64 = i64::MAX;

/// The defaults that differ between 1.5.5 and the 3.x releases.
struct Defaults {
    window: &'static str,
    refill: &'static str,
    limit_read: &'static str,
    limit_write: &'static str,
    target_read: &'static str,
    priority: &'static str,
    kreqs: &'static str,
    gbytes: &'static str,
    compliance: &'static str,
}

#[rustfmt::skip]
const fn table(d: Defaults) -> [Tunable; 19] {
    let any = (0, U64_TOP);
    [
        Tunable::new("global_latency_window", Kind::Ns, "ns", d.window, any,
            "Limit for the sum of the predicted latencies of the requests that are dispatched \
             ahead. Larger: deeper batches, more throughput; smaller: a new request waits less."),
        Tunable::count("bq_refill_below_ratio", "%", d.refill,
            "The next page is filled early when the summed predicted latencies of the dispatched \
             requests are below this percentage of the window.").range(0, 100),
        Tunable::new("lat_model_latency_limit", Kind::Ns, "ns", "500000000", (0, 2_000_000_000),
            "Measured latencies above this value are ignored (3.2.0: it also limits predictions)."),
        Tunable::count("batch_limit_read", "requests", d.limit_read,
            "Largest number of reads in a page.").range(1, UINT_MAX),
        Tunable::count("batch_limit_write", "requests", d.limit_write,
            "Largest number of writes in a page.").range(1, UINT_MAX),
        Tunable::count("batch_limit_discard", "requests", "1",
            "Largest number of discards in a page.").range(1, UINT_MAX),
        Tunable::new("lat_target_read", Kind::Ns, "ns", d.target_read, any,
            "The deadline of a read is its start time plus this value. Setting it resets the model \
             of reads."),
        Tunable::new("lat_target_write", Kind::Ns, "ns", "2000000000", any,
            "The deadline of a write is its start time plus this value. Setting it resets the \
             model of writes."),
        Tunable::new("lat_target_discard", Kind::Ns, "ns", "8000000000", any,
            "The deadline of a discard is its start time plus this value. Setting it resets the model \
             of discards."),
        Tunable::new("lat_model_read", Kind::Text, "ns, ns/KiB", "0 0", any,
            "Learned latency of reads: base (up to 4 KiB) and slope (per further KiB). Write it to \
             give a new device a known model; the written values count as one sample."),
        Tunable::new("lat_model_write", Kind::Text, "ns, ns/KiB", "0 0", any,
            "Learned base and slope of writes, as lat_model_read."),
        Tunable::new("lat_model_discard", Kind::Text, "ns, ns/KiB", "0 0", any,
            "Learned base and slope of discards, as lat_model_read."),
        Tunable::count("shrink_at_kreqs", "1000 samples", d.kreqs,
            "Number of small samples after which older samples lose weight.").range(1, 100_000),
        Tunable::count("shrink_at_gbytes", "GiB", d.gbytes,
            "Bytes of long samples after which older samples lose weight.").range(1, 1000),
        Tunable::count("shrink_resist", "shift", "2",
            "How much weight older samples lose: a fraction of 1/2^shrink_resist of their sums.").range(1, 3),
        Tunable::count("read_priority", "nice", d.priority,
            "Preference for reads over late writes: at 8, about six reads per write of equal cost. \
             Writing a value resets the balance.").range(-20, 19),
        Tunable::new("batch_actual_max", Kind::ReadOnly, "requests", "", (0, 0),
            "Number of requests in the largest page so far, in total and by type."),
        Tunable::new("reset_bq_stats", Kind::Text, "1", "", (1, 1),
            "Write 1 to reset batch_actual_max."),
        if d.compliance.is_empty() {
            RESET_MODEL
        } else {
            Tunable::new("compliance_flags", Kind::Text, "bits", d.compliance, (0, UINT_MAX),
                "3.1.9 and 3.2.0: bit 0 keeps the predicted latency out of deadlines. 3.0.1: bits \
                 0 and 1 send FUA and PREFLUSH requests before all others, bit 2 is the former bit \
                 0.")
        },
    ]
}

const RESET_MODEL: Tunable = Tunable::new(
    "reset_lat_model",
    Kind::Text,
    "1 or six numbers",
    "",
    (0, 0),
    "Write 1 to reset all models, or base and slope of reads, writes and discards to set them.",
);
const VERSION: Tunable = Tunable::new(
    "adios_version",
    Kind::ReadOnly,
    "text",
    "",
    (0, 0),
    "The release of ADIOS.",
);
const ORDER: Tunable = Tunable::count(
    "batch_order",
    "0 type, 1 elevator",
    "0",
    "How a page is served: by type, or by sector. 1 is accepted on rotating devices only.",
)
.range(0, 1);

const fn table_3(compliance: &'static str) -> [Tunable; 22] {
    let head = table(Defaults {
        window: "16000000 (22000000 if rotational)",
        refill: "20",
        limit_read: "36",
        limit_write: "72",
        target_read: "2000000",
        priority: "8",
        kreqs: "5000",
        gbytes: "50",
        compliance,
    });
    let mut all = [VERSION; 22];
    let mut i = 0;
    while i < head.len() {
        all[i] = head[i];
        i += 1;
    }
    all[19] = ORDER;
    all[20] = RESET_MODEL;
    all
}
const fn table_1() -> [Tunable; 20] {
    let head = table(Defaults {
        window: "16000000",
        refill: "15",
        limit_read: "24",
        limit_write: "48",
        target_read: "1000000",
        priority: "7",
        kreqs: "10000",
        gbytes: "100",
        compliance: "",
    });
    let mut all = [VERSION; 20];
    let mut i = 0;
    while i < head.len() {
        all[i] = head[i];
        i += 1;
    }
    all
}

static OF_1_5_5: [Tunable; 20] = table_1();
static OF_3_0_1: [Tunable; 22] = table_3("0x7");
static OF_3_1_9: [Tunable; 22] = table_3("0x0");

/// Returns the tunables of a version.
pub(super) fn tunables_of(version: &str) -> &'static [Tunable] {
    match version {
        "1.5.5" => &OF_1_5_5,
        "3.0.1" => &OF_3_0_1,
        _ => &OF_3_1_9,
    }
}

fn of_type(name: &str) -> Option<usize> {
    match name {
        "read" => Some(READ),
        "write" => Some(WRITE),
        "discard" => Some(DISCARD),
        _ => None,
    }
}
fn invalid(name: &str, why: &str) -> StoreError {
    StoreError::Invalid {
        name: name.to_owned(),
        why: why.to_owned(),
    }
}
/// Parses a number. Returns an error if it is outside the range in the table.
fn ranged(version: Version, name: &'static str, text: &str) -> Result<u64, StoreError> {
    let v = strict_u64(name, text)?;
    let Some(t) = tunables_of(version.name).iter().find(|t| t.name == name) else {
        return Err(StoreError::unknown(name));
    };
    if v < t.min as u64 || v > t.max as u64 && t.max != U64_TOP {
        return Err(StoreError::Range {
            name: name.to_owned(),
            value: v.to_string(),
            min: t.min,
            max: t.max,
            unit: t.unit,
        });
    }
    Ok(v)
}

pub(super) fn show(a: &Adios, name: &str) -> Option<String> {
    if !tunables_of(a.version.name).iter().any(|t| t.name == name) {
        return None;
    }
    if let Some(k) = name.strip_prefix("batch_limit_").and_then(of_type) {
        return Some(a.batch_limit[k].to_string());
    }
    if let Some(k) = name.strip_prefix("lat_target_").and_then(of_type) {
        return Some(a.target_ns[k].to_string());
    }
    if let Some(k) = name.strip_prefix("lat_model_").and_then(of_type) {
        return Some(format!("{} {}", a.model[k].base, a.model[k].slope));
    }
    Some(match name {
        "global_latency_window" => a.window_ns.to_string(),
        "bq_refill_below_ratio" => a.refill_percent.to_string(),
        "lat_model_latency_limit" => a.latency_limit_ns.to_string(),
        "batch_order" => u8::from(a.by_sector).to_string(),
        "compliance_flags" => format!("{:#x}", a.compliance),
        "shrink_at_kreqs" => a.rules.shrink_at_kreqs.to_string(),
        "shrink_at_gbytes" => a.rules.shrink_at_gbytes.to_string(),
        "shrink_resist" => a.rules.shrink_resist.to_string(),
        "read_priority" => a.prio[0].to_string(),
        "batch_actual_max" => {
            let [r, w, d, o] = a.largest;
            format!(
                "total {}\nread {r}\nwrite {w}\ndiscard {d}\nother {o}",
                a.largest_total
            )
        }
        "adios_version" => a.version.name.to_owned(),
        // Write-only files read as empty.
        _ => String::new(),
    })
}

pub(super) fn store(a: &mut Adios, cx: &Cx, name: &str, text: &str) -> Result<(), StoreError> {
    if !tunables_of(a.version.name).iter().any(|t| t.name == name) {
        return Err(StoreError::unknown(name));
    }
    let v = a.version;
    if let Some(k) = name.strip_prefix("batch_limit_").and_then(of_type) {
        let n = strict_u64(name, text)?;
        if !(1..=u64::from(u32::MAX)).contains(&n) {
            return Err(invalid(name, "a page holds at least one request of a type"));
        }
        a.batch_limit[k] = n as u32;
        return Ok(());
    }
    if let Some(k) = name.strip_prefix("lat_target_").and_then(of_type) {
        a.target_ns[k] = strict_u64(name, text)?;
        a.model[k].sideload(0, 0, cx.now());
        return Ok(());
    }
    if let Some(k) = name.strip_prefix("lat_model_").and_then(of_type) {
        let Some([base, slope]) = numbers::<2>(text) else {
            return Err(invalid(name, "takes a base in ns and a slope in ns/KiB"));
        };
        a.model[k].sideload(base, slope, cx.now());
        return Ok(());
    }
    match name {
        "global_latency_window" => a.window_ns = ranged(v, "global_latency_window", text)?,
        "bq_refill_below_ratio" => a.refill_percent = ranged(v, "bq_refill_below_ratio", text)?,
        "lat_model_latency_limit" => {
            a.latency_limit_ns = ranged(v, "lat_model_latency_limit", text)?;
        }
        "shrink_at_kreqs" => a.rules.shrink_at_kreqs = ranged(v, "shrink_at_kreqs", text)?,
        "shrink_at_gbytes" => a.rules.shrink_at_gbytes = ranged(v, "shrink_at_gbytes", text)?,
        "shrink_resist" => a.rules.shrink_resist = ranged(v, "shrink_resist", text)? as u32,
        "batch_order" => {
            let n = ranged(v, "batch_order", text)?;
            if n == 1 && !cx.queue.rotational {
                return Err(invalid(name, "order by sector is for rotating devices"));
            }
            a.by_sector = n == 1;
        }
        "compliance_flags" => {
            let text = text.trim();
            let bits = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => text.parse(),
            };
            a.compliance = bits.map_err(|_| invalid(name, "takes 32 bits, decimal or 0x..."))?;
        }
        "read_priority" => {
            let n = strict_int(name, text)?;
            if !(-20..=19).contains(&n) {
                return Err(invalid(name, "is a nice value, -20 to 19"));
            }
            a.prio[0] = n as i32;
            a.bias = 0;
        }
        "reset_bq_stats" => {
            if strict_u64(name, text)? != 1 {
                return Err(invalid(name, "takes 1"));
            }
            a.largest = [0; TYPES];
            a.largest_total = 0;
        }
        "reset_lat_model" => {
            let values = match numbers::<6>(text) {
                Some(v) => v,
                None if text.trim() == "1" => [0; 6],
                None => {
                    let why = "takes 1, or base and slope of reads, writes and discards";
                    return Err(invalid(name, why));
                }
            };
            for (k, v) in values.as_chunks::<2>().0.iter().enumerate() {
                a.model[k].sideload(v[0], v[1], cx.now());
            }
        }
        _ => return Err(StoreError::read_only(name)),
    }
    Ok(())
}

/// Parses exactly N numbers separated by blanks; `None` if there are more or fewer.
fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let mut out = [0; N];
    let mut words = text.split_ascii_whitespace();
    for o in &mut out {
        *o = words.next()?.parse().ok()?;
    }
    words.next().is_none().then_some(out)
}
