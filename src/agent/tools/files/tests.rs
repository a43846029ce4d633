use super::*;
use crate::tools::definition::Tool;
use crate::tools::testing::Household;
use store::Viewer;

#[test]
fn a_file_is_written_listed_and_read() {
    let household = Household::new();
    let run = |tool: &str, arguments: Value| household.run(tool, arguments);
    assert_eq!(
        run("list_files", json!({})),
        Ok("There are no files here.".to_owned())
    );
    let bread = json!({"path": "lists/shopping.txt", "content": "bread\nmilk\n"});
    let written = run("write_file", bread.clone());
    assert_eq!(
        written,
        Ok("Wrote lists/shopping.txt (11 bytes). Everybody in the household sees it.".to_owned())
    );
    let again = run("write_file", bread).unwrap();
    assert_eq!(
        again,
        "Replaced lists/shopping.txt (11 bytes). Everybody in the household sees it."
    );
    assert_eq!(run("list_files", json!({})), Ok("lists/".to_owned()));
    let listed = run("list_files", json!({"path": "lists"})).unwrap();
    assert!(listed.starts_with("shopping.txt (11 bytes, 20"), "{listed}");
    let read = run("read_file", json!({"path": "lists/shopping.txt"}));
    assert_eq!(read, Ok("bread\nmilk\n".to_owned()));
    let problem = run("read_file", json!({"path": "../hearth.db"})).unwrap_err();
    assert!(problem.contains("leads out"), "{problem}");
}

#[test]
fn a_part_of_a_file_is_changed() {
    let household = Household::new();
    let files = household.directory().join("files");
    let write = |path: &str, change: Value| {
        let mut arguments = json!({ "path": path });
        let members = arguments.as_object_mut().unwrap();
        members.extend(change.as_object().unwrap().clone());
        household.run("write_file", arguments)
    };
    let add = |content: &str| json!({ "content": content, "append": true, "replaces": "" });
    assert_eq!(
        write("log/day.txt", add("one")),
        Ok(
            "Changed log/day.txt; it has 3 bytes now. Everybody in the household sees it."
                .to_owned()
        )
    );
    write("log/day.txt", add("two\n")).unwrap();
    write("log/day.txt", add("drei, drei\n")).unwrap();
    let content = || std::fs::read_to_string(files.join("log/day.txt")).unwrap();
    assert_eq!(content(), "one\ntwo\ndrei, drei\n");
    let put = |old: &str, new: &str| json!({ "content": new, "replaces": old, "append": false });
    write("log/day.txt", put("two\nd", "2\nD")).unwrap();
    write("log/day.txt", put("one\n", "")).unwrap();
    let before = "2\nDrei, drei\n";
    assert_eq!(content(), before);
    // A file keeps its line breaks.
    std::fs::write(files.join("windows"), "a\r\nb\r\nc").unwrap();
    write("windows", put("a\nb", "A\nB\nB")).unwrap();
    write("windows", put("c", "C\nC")).unwrap();
    write("windows", add("d\n")).unwrap();
    let windows = std::fs::read_to_string(files.join("windows")).unwrap();
    assert_eq!(windows, "A\r\nB\r\nB\r\nC\r\nC\r\nd\r\n");
    std::fs::remove_file(files.join("windows")).unwrap();
    write("log/day.txt", put("2\r\nD", "2\r\nD")).unwrap();
    // Nothing is there that an empty text could stand for.
    write("new", put("", "aaa")).unwrap();
    std::fs::remove_file(files.join("new")).unwrap();
    std::fs::write(files.join("many"), "aaa").unwrap();
    std::fs::write(files.join("binary"), [b'a', 0xFF]).unwrap();
    std::fs::write(files.join("large"), "x".repeat(MAX_WRITTEN)).unwrap();
    std::os::unix::fs::symlink("many", files.join("link")).unwrap();
    for (path, change, problem) in [
        ("log/day.txt", put("", "x"), "\"replaces\" is empty"),
        ("log/day.txt", put("two", "2"), "does not hold the text"),
        ("log/day.txt", put("rei", "REI"), "more than once"),
        ("many", put("aa", "b"), "more than once"),
        ("none", put("a", "b"), "there is no such file to change"),
        ("binary", put("a", "b"), "is not text"),
        ("binary", add("b"), "is not text"),
        ("large", add("b"), "a file has at most 1048576 bytes"),
        ("link", put("aaa", "b"), "symbolic link"),
        ("link", add("b"), "symbolic link"),
        ("../config.json", add("b"), "leads out"),
        (
            "many",
            json!({"content": "b", "append": true, "replaces": "aaa"}),
            "give either",
        ),
    ] {
        let said = write(path, change).unwrap_err();
        assert!(said.contains(problem), "{path}: {said}");
    }
    std::fs::write(files.join("large"), "x".repeat(MAX_WRITTEN + 1)).unwrap();
    let said = write("large", put("y", "z")).unwrap_err();
    assert!(said.contains("more than the 1048576 bytes"), "{said}");
    assert_eq!(content(), before);
    assert_eq!(std::fs::read_to_string(files.join("many")).unwrap(), "aaa");
    // Nothing unfinished stays behind.
    let names = std::fs::read_dir(&files).unwrap().count();
    assert_eq!(names, 5);
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let household = Household::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let household = &household;
            scope.spawn(move || {
                for number in 0..5 {
                    let line = json!({
                        "path": "a.txt", "content": format!("{writer}-{number}"), "append": true,
                    });
                    household.run("write_file", line).unwrap();
                }
            });
        }
    });
    let content = std::fs::read_to_string(household.directory().join("files/a.txt"));
    assert_eq!(content.unwrap().lines().count(), 20);
}

#[test]
fn sizes_are_bounded() {
    let household = Household::new();
    let files = household.directory().join("files");
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("binary"), [1, 0, 2]).unwrap();
    std::fs::write(files.join("empty"), "").unwrap();
    std::fs::write(files.join("large"), "ü".repeat(MAX_READ)).unwrap();
    let read = |path: &str, offset: usize| {
        household.run("read_file", json!({"path": path, "offset": offset}))
    };
    assert!(
        read("binary", 0)
            .unwrap_err()
            .contains("is binary, 3 bytes")
    );
    assert_eq!(read("empty", 0), Ok("[the file is empty]".to_owned()));
    let beginning = read("large", 0).unwrap();
    assert!(beginning.starts_with("üüü"));
    assert!(beginning.contains("cannot be read]"), "{}", beginning.len());
    assert!(beginning.chars().count() < 16_000);
    let end = read("large", MAX_READ / 2 - 3).unwrap();
    assert!(end.starts_with("üüü\n[characters"), "{end}");
    assert!(read("large", MAX_READ).unwrap_err().contains("offset"));
    let big = json!({"path": "x", "content": "x".repeat(MAX_WRITTEN + 1)});
    assert!(
        household
            .run("write_file", big)
            .unwrap_err()
            .contains("at most")
    );
    for number in 0..MAX_LISTED + 5 {
        std::fs::write(files.join(format!("{number}.txt")), "").unwrap();
    }
    let listed = household.run("list_files", json!({})).unwrap();
    assert!(listed.ends_with("[8 more]"), "{listed}");
}

#[test]
fn a_person_is_told_which_file() {
    let household = Household::new();
    for (tool, arguments, intent) in [
        ("list_files", json!({}), "list the files"),
        ("list_files", json!({"path": "a"}), "list the files in a"),
        ("read_file", json!({"path": "a.txt"}), "read a.txt"),
        (
            "write_file",
            json!({"path": "notes.txt", "content": "hü"}),
            "write notes.txt",
        ),
        (
            "write_file",
            json!({"path": "notes.txt", "content": "h"}),
            "write notes.txt",
        ),
        (
            "write_file",
            json!({"path": "notes.txt", "content": "hü", "append": true}),
            "add to notes.txt",
        ),
        (
            "write_file",
            json!({"path": "notes.txt", "content": "new", "replaces": "old"}),
            "change notes.txt",
        ),
    ] {
        let tools = all();
        let tool = tools
            .iter()
            .find(|known| known.spec().name == tool)
            .unwrap();
        let found = tool.intent(
            arguments.as_object().unwrap(),
            &household.approver(&Viewer::server()),
        );
        assert_eq!(found.unwrap().action, intent);
    }
}
