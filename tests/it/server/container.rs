//! The root file system of the container image, without a container engine:
//! the program and the libraries that it needs in a folder of their own, which
//! a process without privileges has for its whole world.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use support::home::TemporaryDirectory;
use support::program::{Program, finish, printed, skipped};

/// The user of the image.
const USER: u32 = 65_532;
const BINARY: &str = env!("CARGO_BIN_EXE_hearth");

/// The files that the program is linked to, as ldd(1) tells.
fn libraries() -> Vec<PathBuf> {
    let output = finish(Command::new("ldd").arg(BINARY));
    let text = String::from_utf8(output.stdout).unwrap();
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    paths.map(PathBuf::from).collect()
}

fn put(root: &Path, from: &Path, to: &Path) {
    let target = root.join(to.strip_prefix("/").unwrap());
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    fs::copy(from, &target).unwrap();
}

/// A command line that runs in the image as its user.
fn in_image(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("chroot");
    command
        .arg(format!("--userspec={USER}:{USER}"))
        .arg(root)
        .arg("/usr/local/bin/hearth")
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HEARTH_DATA_DIR", "/data");
    command
}

#[test]
fn the_program_runs_with_nothing_but_its_libraries() {
    if !rustix::process::geteuid().is_root() {
        skipped("only root may change the root directory");
        return;
    }
    let folder = TemporaryDirectory::new();
    let root = folder.path().join("image");
    put(&root, Path::new(BINARY), Path::new("/usr/local/bin/hearth"));
    let libraries = libraries();
    // The image, distroless/cc, has these and no others.
    for library in &libraries {
        let name = library.file_name().unwrap().to_str().unwrap();
        let known = ["ld-linux", "libc.", "libgcc_s.", "libm."];
        assert!(known.iter().any(|one| name.starts_with(one)), "{name}");
        put(&root, library, library);
    }
    let data = root.join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    chown(&data, Some(USER), Some(USER)).unwrap();

    // Port 5000 may be in use on the machine that tests.
    let serve = in_image(&root, &["serve", "--bind", "127.0.0.1", "--port", "0"]);
    let program = Program::launch(serve, folder.path());
    let status = fs::read_to_string(format!("/proc/{}/status", program.id())).unwrap();
    assert!(
        status.contains(&format!("Uid:\t{USER}\t{USER}")),
        "{status}"
    );

    for (arguments, says) in [
        (&["health"][..], r#""status":"ok""#),
        (&["chat", "what time is it"], "UTC"),
        (&["doctor"], "the server (process"),
    ] {
        let output = finish(&mut in_image(&root, arguments));
        let text = printed(&output);
        assert!(output.status.success(), "{arguments:?}: {text}");
        assert!(text.contains(says), "{arguments:?}: {text}");
    }
    assert_eq!(program.signal("TERM"), Some(0));
    let output = finish(&mut in_image(&root, &["health"]));
    assert_eq!(output.status.code(), Some(1), "nothing runs any more");
}
