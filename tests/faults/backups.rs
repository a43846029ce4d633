//! An encrypted backup that is broken off by kill -9 or by a full disk: no half file passes for
//! a backup, the next one is whole, and whoever chats meanwhile is answered.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::disk::SmallDisk;
use super::{chat_meanwhile, echoing, within};
use support::client::Client;
use support::home::{TemporaryDirectory, Tokens, make_people, write_config};
use support::model::Model;
use support::program::{Program, printed, run};
use support::{MAX_WAIT, SetOnDrop};

const MIB: usize = 1024 * 1024;

/// A household that encrypts its backups to a key and keeps them on another disk.
struct Household {
    data: TemporaryDirectory,
    keys: TemporaryDirectory,
    disk: PathBuf,
    tokens: Tokens,
    _model: Model,
}

impl Household {
    fn new(disk: &Path) -> Household {
        let (data, keys) = (TemporaryDirectory::new(), TemporaryDirectory::new());
        let model = echoing();
        let key = keys.path().join("backup.key");
        let made = run(data.path(), &["backup", "--new-key", key.to_str().unwrap()]);
        let said = printed(&made);
        let public = said
            .split_whitespace()
            .find(|word| word.starts_with("age1"));
        let backup = json!({"at": "00:00", "directory": disk, "encrypt_to": public});
        write_config(data.path(), model.config_with(json!({"backup": backup, "limits": {"commands_per_second": 1_000, "commands_burst": 1_000}})));
        let tokens = make_people(data.path());
        Household {
            data,
            keys,
            disk: disk.to_owned(),
            tokens,
            _model: model,
        }
    }

    /// Makes the database so much larger.
    fn grow(&self, bytes: usize) {
        let database = Connection::open(self.data.path().join("hearth.db")).unwrap();
        let grow = format!(
            "PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE ballast (bytes BLOB);
             INSERT INTO ballast VALUES (randomblob({bytes}));"
        );
        database.execute_batch(&grow).unwrap();
    }

    fn admin(&self, program: &Program) -> Client {
        let mut admin = Client::websocket(program.address);
        admin.authenticate(&self.tokens.admin);
        admin
    }

    /// Files on the disk and in the data directory whose names end so, with their sizes.
    fn files(&self, ending: &str) -> Vec<(PathBuf, u64)> {
        let folders = [self.disk.as_path(), self.data.path()];
        let entries = folders.map(|folder| fs::read_dir(folder).unwrap());
        let entries = entries.into_iter().flatten().map(Result::unwrap);
        let named = entries.filter(|one| one.file_name().to_str().unwrap().ends_with(ending));
        // One that has just got its name is looked at again.
        let sized = named.filter_map(|one| Some((one.path(), one.metadata().ok()?.len())));
        sized.collect()
    }

    /// `hearth restore --check` of a file.
    fn check(&self, file: &Path) -> String {
        let key = self.keys.path().join("backup.key");
        let (key, file) = (key.to_str().unwrap(), file.to_str().unwrap());
        let checked = ["restore", "--check", "--identity", key, file];
        printed(&run(self.data.path(), &checked))
    }

    /// The end of a backup: why it failed, if it did.
    fn end(&self, admin: &mut Client) -> Value {
        within(MAX_WAIT, "the end of the backup", || {
            let known = admin.ask(json!({"type": "list_backups"}));
            (known["is_running"] == false).then(|| known["problem"].clone())
        })
    }

    /// Makes a backup, which must be whole and alone.
    fn succeed(&self, admin: &mut Client) {
        admin.ask(json!({"type": "start_backup"}));
        assert_eq!(self.end(admin), Value::Null);
        let made = self.files(".age");
        assert_eq!(made.len(), 1, "{made:?}");
        let checked = self.check(&made[0].0);
        assert!(checked.contains("is valid"), "{checked}");
        assert_eq!(self.files(".partial"), []);
    }

    /// Kills a server that writes the encrypted file; returns the half of it.
    fn kill_half_way(&self) -> PathBuf {
        loop {
            let program = Program::serve(self.data.path());
            let mut admin = self.admin(&program);
            admin.ask(json!({"type": "start_backup"}));
            let deadline = Instant::now() + MAX_WAIT;
            let is_half = || self.files(".age.partial").iter().any(|file| file.1 > 0);
            while !is_half() && self.files(".age").is_empty() {
                assert!(Instant::now() < deadline, "nothing is encrypted");
            }
            program.kill();
            // It may have been faster than this thread.
            match self.files(".age").pop() {
                Some((whole, _)) => fs::remove_file(whole).unwrap(),
                None => return self.files(".age.partial").remove(0).0,
            }
        }
    }
}

/// Kills the server while it writes the encrypted file, so often.
pub fn killed(rounds: u64) {
    let disk = TemporaryDirectory::new();
    let household = Household::new(disk.path());
    household.grow(32 * MIB);
    for _ in 0..rounds {
        let half = household.kill_half_way();
        let listed = printed(&run(household.data.path(), &["backup", "--list"]));
        assert!(listed.contains("no nightly backups"), "{listed}");
        let checked = household.check(&half);
        assert!(
            checked.contains("is damaged") && checked.contains("cut off"),
            "{checked}"
        );

        let program = Program::serve(household.data.path());
        let mut admin = household.admin(&program);
        admin.chat("tok-1");
        household.succeed(&mut admin);
        assert_eq!(program.signal("TERM"), Some(0));
        fs::remove_file(household.files(".age").remove(0).0).unwrap();
    }
}

/// Fills the disk of the backups while the server writes the encrypted file.
pub fn full_disk() {
    let outside = TemporaryDirectory::new();
    let Some(disk) = SmallDisk::mount(outside.path().join("disk")) else {
        return;
    };
    let household = Household::new(disk.path());
    // A reader keeps the log from getting into the database, by whose size the server judges
    // whether there is room.
    let reader = Connection::open(household.data.path().join("hearth.db")).unwrap();
    let before = "BEGIN; SELECT count(*) FROM users;";
    reader.execute_batch(before).unwrap();
    household.grow(5 * MIB);
    disk.leave(4 * MIB);
    let program = Program::serve(household.data.path());
    let mut admin = household.admin(&program);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stopped = SetOnDrop(&is_done);
        let bystander =
            scope.spawn(|| chat_meanwhile(program.address, &household.tokens.user, &is_done));
        admin.ask(json!({"type": "start_backup"}));
        let problem = household.end(&mut admin).to_string();
        assert!(problem.contains("the disk is full"), "{problem}");
        let half = [household.files(".age"), household.files(".partial")];
        assert_eq!(half, [[], []]);
        disk.make_room();
        household.succeed(&mut admin);
        drop(stopped);
        assert!(bystander.join().unwrap() > 0);
    });
    assert_eq!(program.signal("TERM"), Some(0));
}
