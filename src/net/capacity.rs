//! What the limits of this process leave room for.

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;

use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};

use crate::connection::registry::STACK_BYTES;

/// Descriptors and threads that are not for connections: database, log, workers,
/// requests to models and receivers, child processes.
const OTHERS: u64 = 64;
/// Descriptors of a connection: its socket and its waker.
const DESCRIPTORS_EACH: u64 = 2;
/// Memory of a connection, in bytes: 24 KiB were measured for an idle one.
const MEMORY_EACH: u64 = 48 * 1024;
/// Address space of a connection, in bytes: its stack, the stack on which an
/// overflow is reported, and their guard pages.
const ADDRESS_SPACE_EACH: u64 = STACK_BYTES as u64 + 64 * 1024;
/// Address space that glibc reserves for an arena, from which it allocates. Each thread gets
/// an arena of its own, as long as there are fewer than [`arenas`].
const ARENA_BYTES: u64 = 64 * 1024 * 1024;
/// Address space that must stay free when something large is allocated: the small
/// allocations of other threads cannot fail without aborting the process.
const RESERVE_BYTES: u64 = 16 * 1024 * 1024;

/// The most connections that the limits of this process leave room for, and what
/// raises the tightest of them.
pub fn connections() -> (usize, &'static str) {
    let memory_others = u64::MAX;
    [
        (
            room(limit(Resource::Nofile), OTHERS, DESCRIPTORS_EACH),
            "the limit of open files (LimitNOFILE=, ulimit -n)",
        ),
        (
            room(threads(), OTHERS, 1),
            "the limit of threads (TasksMax=, LimitNPROC=, ulimit -u)",
        ),
        (
            room_in_address_space(limit(Resource::As), arenas()),
            "the limit of the address space (LimitAS=, ulimit -v; \
             GLIBC_TUNABLES=glibc.malloc.arena_max=1 needs the least of it)",
        ),
        (
            room(control_group("memory.max"), memory_others, MEMORY_EACH),
            "the limit of memory (MemoryMax=)",
        ),
    ]
    .into_iter()
    .min_by_key(|(connections, _)| *connections)
    .expect("there are several")
}

/// The bytes of memory that this process may have: the least of RLIMIT_AS and the
/// `memory.max` of its control groups. `None` without a limit.
pub fn memory() -> Option<u64> {
    let limits = [limit(Resource::As), control_group("memory.max")];
    limits.into_iter().flatten().min()
}

/// Whether `bytes` more can be allocated, with a reserve for the small allocations
/// of other threads. Without a limit of the address space always: Linux then grants
/// more than there is.
pub fn has_room(bytes: usize) -> bool {
    let left = || limit(Resource::As)?.checked_sub(address_space()?);
    left().is_none_or(|left| left >= bytes as u64 + RESERVE_BYTES)
}

/// The bytes of address space in use, as proc_pid_status(5) has them.
fn address_space() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))?;
    let kilobytes: u64 = line.trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Whether a call failed because no descriptor is left.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

/// How many of `each` fit a limit beside `others`, which get at most half of it.
fn room(limit: Option<u64>, others: u64, each: u64) -> usize {
    let most = limit.map_or(u64::MAX, |limit| (limit - others.min(limit / 2)) / each);
    usize::try_from(most).unwrap_or(usize::MAX).max(1)
}

/// How many connections fit this limit of the address space beside the rest of the server,
/// which gets half of it. The thread of each may be the one that gets an arena.
fn room_in_address_space(limit: Option<u64>, arenas: u64) -> usize {
    let Some(limit) = limit else {
        return usize::MAX;
    };
    let own = limit - limit / 2;
    let with_arenas = own / (ADDRESS_SPACE_EACH + ARENA_BYTES);
    let beside_all_arenas = own.saturating_sub(arenas * ARENA_BYTES) / ADDRESS_SPACE_EACH;
    usize::try_from(with_arenas.max(beside_all_arenas))
        .unwrap_or(usize::MAX)
        .max(1)
}

/// How many arenas glibc makes at most beside the first, which reserves nothing.
fn arenas() -> u64 {
    let tunables = env::var("GLIBC_TUNABLES").unwrap_or_default();
    let tuned = tunables
        .split(':')
        .find_map(|tunable| tunable.strip_prefix("glibc.malloc.arena_max="))
        .map(str::to_owned)
        .or_else(|| env::var("MALLOC_ARENA_MAX").ok())
        .and_then(|number| number.parse().ok());
    let processors = || thread::available_parallelism().map_or(1, |count| count.get() as u64);
    tuned.unwrap_or_else(|| 8 * processors()).saturating_sub(1)
}

fn limit(resource: Resource) -> Option<u64> {
    getrlimit(resource).current
}

/// The most threads of this process: RLIMIT_NPROC, which counts all of the user
/// and does not hold for root, or the `pids.max` of its control groups.
fn threads() -> Option<u64> {
    let of_user = limit(Resource::Nproc).filter(|_| !geteuid().is_root());
    let limits = [of_user, control_group("pids.max")];
    limits.into_iter().flatten().min()
}

/// The least value of this file in the control groups of this process.
fn control_group(file: &str) -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    least(Path::new("/sys/fs/cgroup"), &groups, file)
}

/// The least value of `file` in the control group of version 2 that `groups` names
/// as /proc/PID/cgroup does (cgroups(7)), and in those above it. A group without a
/// limit has the word `max`.
fn least(root: &Path, groups: &str, file: &str) -> Option<u64> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Path::new(group)
        .ancestors()
        .filter_map(|group| fs::read_to_string(root.join(group).join(file)).ok())
        .filter_map(|value| value.trim().parse().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::TemporaryDirectory;

    #[test]
    fn what_fits_a_limit_is_at_least_one() {
        for (limit, others, each, fitting) in [
            (None, 64, 2, usize::MAX),
            (Some(0), 64, 2, 1),
            (Some(24), 64, 2, 6),
            (Some(128), 64, 2, 32),
            (Some(512), 64, 2, 224),
            (Some(4096), 64, 2, 2016),
            (Some(64 << 20), u64::MAX, MEMORY_EACH, 682),
        ] {
            assert_eq!(room(limit, others, each), fitting, "{limit:?}");
        }
        let (each, arena) = (ADDRESS_SPACE_EACH, ARENA_BYTES);
        for (own, arenas, fitting) in [
            (0, 15, 1),
            (2 * (each + arena), 15, 2),
            (3 * each, 0, 3),
            (3 * each + arena, 1, 3),
            (100 * each + 15 * arena, 15, 100),
        ] {
            assert_eq!(
                room_in_address_space(Some(2 * own), arenas),
                fitting,
                "{own}"
            );
        }
        assert_eq!(room_in_address_space(None, 15), usize::MAX);
        assert!(address_space().unwrap() > 1024 * 1024);
        assert!(has_room(0));
        let (connections, _) = super::connections();
        let descriptors = limit(Resource::Nofile).unwrap_or(u64::MAX);
        assert!(connections as u64 <= descriptors / DESCRIPTORS_EACH);
    }

    #[test]
    fn the_tightest_control_group_counts() {
        let root = TemporaryDirectory::new();
        let service = root.path().join("system.slice/hearth.service");
        fs::create_dir_all(&service).unwrap();
        for (above, own, found) in [
            ("max", "max", None),
            ("max", "67108864\n", Some(67_108_864)),
            ("1000\n", "67108864\n", Some(1_000)),
            ("1000\n", "max\n", Some(1_000)),
        ] {
            fs::write(root.path().join("system.slice/memory.max"), above).unwrap();
            fs::write(service.join("memory.max"), own).unwrap();
            for (groups, found) in [
                ("0::/system.slice/hearth.service\n", found),
                ("1:name=systemd:/\n0::/system.slice/hearth.service\n", found),
                ("0::/\n", None),
                ("4:memory:/system.slice\n", None),
                ("", None),
            ] {
                assert_eq!(least(root.path(), groups, "memory.max"), found, "{groups}");
            }
        }
    }
}
