use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use base::testing::TemporaryDirectory;

use super::*;

/// A data directory with a workspace and, next to it, something that must stay
/// secret.
struct DataDirectory(TemporaryDirectory);

impl DataDirectory {
    fn new() -> DataDirectory {
        let path = TemporaryDirectory::new();
        fs::create_dir_all(path.join("files/inner")).unwrap();
        fs::write(path.join("secret.txt"), "secret").unwrap();
        fs::write(path.join("files/inner/a.txt"), "hello").unwrap();
        DataDirectory(path)
    }

    fn workspace(&self) -> Workspace {
        Workspace::new(None, &self.0)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join("files").join(path)
    }
}

fn write(workspace: &Workspace, path: &str, content: &[u8]) -> Result<bool, String> {
    workspace.write(path, |_| Ok(content.to_vec()))
}

#[test]
fn no_path_leads_out() {
    let place = DataDirectory::new();
    symlink("../secret.txt", place.at("link")).unwrap();
    symlink("..", place.at("up")).unwrap();
    symlink("inner", place.at("within")).unwrap();
    symlink("nowhere", place.at("dangling")).unwrap();
    let secret = place.0.join("secret.txt").display().to_string();
    let workspace = place.workspace();
    for (path, why) in [
        ("../secret.txt", "leads out"),
        ("inner/../../secret.txt", "leads out"),
        ("..", "leads out"),
        (secret.as_str(), "begin in the workspace"),
        ("/etc/passwd", "begin in the workspace"),
        ("~/.ssh/id", "begin in the workspace"),
        ("link", "symbolic link"),
        ("up/secret.txt", "symbolic link"),
        ("within/a.txt", "symbolic link"),
        ("dangling", "symbolic link"),
        ("a\0b", "no possible name"),
        ("a\nb", "no possible name"),
        (&"x".repeat(256), "no possible name"),
        (&"x/".repeat(300), "nested too deeply"),
        (&"x".repeat(1001), "at most 1000 bytes"),
        ("", "names no file"),
        ("inner/", "names no file"),
        (".", "names no file"),
    ] {
        let read = workspace.read(path, 10).unwrap_err();
        assert!(read.contains(why), "{path:?}: {read}");
        let written = write(&workspace, path, b"x").unwrap_err();
        assert!(written.contains(why), "{path:?}: {written}");
        let looked_at = workspace.write(path, |_| panic!("{path:?} was opened"));
        assert!(looked_at.unwrap_err().contains(why), "{path:?}");
    }
    assert!(workspace.list("up").unwrap_err().contains("symbolic link"));
    // Where the kernel cannot resolve the whole path, or may not.
    let root = || workspace.root().unwrap().unwrap();
    for missing in [Errno::NOSYS, Errno::PERM] {
        for names in [&["up"][..], &["within"], &["inner", "none"]] {
            assert!(open_by(root(), names, |_, _| Err(missing)).is_err());
        }
        assert!(open_by(root(), &["inner"], |_, _| Err(missing)).is_ok());
    }
    // Any other refusal is one.
    let refused = open_by(root(), &["inner"], |_, _| Err(Errno::XDEV));
    assert_eq!(refused.err(), Some(Errno::XDEV));
    assert!(workspace.list("../").unwrap_err().contains("leads out"));
    assert_eq!(
        fs::read_to_string(place.0.join("secret.txt")).unwrap(),
        "secret"
    );
    assert!(!place.at("nowhere").exists());
}

#[test]
fn only_regular_files_are_read_and_written() {
    let place = DataDirectory::new();
    let _socket = UnixListener::bind(place.at("socket")).unwrap();
    let fifo = place.at("pipe");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let workspace = place.workspace();
    for (path, why) in [
        ("socket", "no regular file"),
        ("pipe", "no regular file"),
        ("inner", "is a directory"),
    ] {
        assert!(
            workspace.read(path, 10).unwrap_err().contains(why),
            "{path}"
        );
        assert!(
            write(&workspace, path, b"x").unwrap_err().contains(why),
            "{path}"
        );
    }
    let missing = workspace.read("none.txt", 10).unwrap_err();
    assert!(missing.contains("no such file"), "{missing}");
    let through = workspace.read("inner/a.txt/b", 10).unwrap_err();
    assert!(through.contains("should be a directory"), "{through}");
}

#[test]
fn a_file_is_written_as_a_whole() {
    let place = DataDirectory::new();
    let workspace = place.workspace();
    assert_eq!(write(&workspace, "new/deep/b.txt", b"one"), Ok(false));
    fs::set_permissions(place.at("new/deep/b.txt"), PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(write(&workspace, "./new//deep/b.txt", b"two"), Ok(true));
    let content = workspace.read("new/deep/b.txt", 2).unwrap();
    assert_eq!((content.bytes.as_slice(), content.size), (&b"tw"[..], 3));
    let mode = fs::metadata(place.at("new/deep/b.txt"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // A second name outside keeps what it had.
    fs::hard_link(place.0.join("secret.txt"), place.at("hard")).unwrap();
    write(&workspace, "hard", b"changed").unwrap();
    assert_eq!(
        fs::read_to_string(place.0.join("secret.txt")).unwrap(),
        "secret"
    );
    let names: Vec<String> = workspace
        .list("")
        .unwrap()
        .entries
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["hard", "inner", "new"]);
}

#[test]
fn the_server_s_own_data_is_no_workspace() {
    let place = DataDirectory::new();
    for root in [place.0.path(), place.0.parent().unwrap(), Path::new("/")] {
        let workspace = Workspace::new(Some(root), &place.0);
        for problem in [
            workspace.read("config.json", 10).unwrap_err(),
            workspace.list("").unwrap_err(),
            write(&workspace, "x", b"").unwrap_err(),
            workspace.make().unwrap_err(),
        ] {
            assert!(problem.contains("own data"), "{problem}");
        }
    }
    let missing = Workspace::new(Some(&place.0.join("none")), &place.0);
    assert_eq!(missing.list(""), Ok(Listing::default()));
    assert!(missing.read("a", 1).unwrap_err().contains("no such file"));
}
