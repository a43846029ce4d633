//! Names of servers' tools for the model: `mcp_SERVER_TOOL`, within what all
//! model APIs allow, and never the same for two tools.

use std::collections::HashSet;

use base::secret::fingerprint;

/// Longest name that all model APIs allow.
const NAME_BYTES: usize = 64;
/// Characters of the fingerprint that distinguishes names that would be equal.
const MARK: usize = 6;

/// The names of one server's tools, in order. `prefixes` are those of all
/// servers that are configured, running or not.
///
/// A name depends only on the configured servers and the server's own tools: while
/// a server is down, a permission for one of its tools must not apply to another
/// server's. So of `a_b` with a tool `c` and `a` with a tool `b_c`, the second is
/// always marked.
pub(super) fn tool_names(prefix: &str, tools: &[&str], prefixes: &[String]) -> Vec<String> {
    let mut taken = HashSet::new();
    let own = format!("mcp_{prefix}_");
    tools
        .iter()
        .map(|tool| {
            let plain = format!("{own}{}", permitted(tool));
            let is_foreign = prefixes.iter().any(|other| {
                let foreign = format!("mcp_{other}_");
                foreign.len() > own.len() && plain.starts_with(&foreign)
            });
            let fits = plain.len() <= NAME_BYTES && !is_foreign;
            if fits && taken.insert(plain.clone()) {
                return plain;
            }
            let marked = marked(prefix, tool, &plain);
            taken.insert(marked.clone());
            marked
        })
        .collect()
}

/// The name, shortened if necessary, with a mark that is unique to this server and
/// tool.
fn marked(prefix: &str, tool: &str, plain: &str) -> String {
    let mark: String = fingerprint(&format!("{prefix}\0{tool}"))
        .iter()
        .take(MARK / 2)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // All characters are ASCII.
    let kept = &plain[..plain.len().min(NAME_BYTES - MARK - 1)];
    format!("{kept}_{mark}")
}

fn permitted(tool: &str) -> String {
    tool.chars()
        .map(|letter| match letter {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '-' => letter,
            _ => '_',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prefix: &str, tools: &[&str], others: &[&str]) -> Vec<String> {
        let prefixes: Vec<String> = others.iter().map(|&other| other.to_owned()).collect();
        tool_names(prefix, tools, &prefixes)
    }

    #[test]
    fn plain_names_stay_plain() {
        assert_eq!(
            names("git", &["git_status", "show-it"], &["git", "time"]),
            ["mcp_git_git_status", "mcp_git_show-it"]
        );
        assert_eq!(
            names("a", &["get.sum", "wetter/größe"], &["a"]),
            ["mcp_a_get_sum", "mcp_a_wetter_gr__e"]
        );
    }

    #[test]
    fn no_two_tools_have_one_name() {
        let twins = names("a", &["x.y", "x_y", "x/y"], &["a"]);
        assert_eq!(twins[0], "mcp_a_x_y");
        assert!(twins[1].starts_with("mcp_a_x_y_") && twins[2].starts_with("mcp_a_x_y_"));
        assert_ne!(twins[1], twins[2]);

        let servers = ["a", "a_b"];
        assert_eq!(names("a_b", &["c"], &servers), ["mcp_a_b_c"]);
        let marked = &names("a", &["b_c", "d"], &servers);
        assert!(marked[0].starts_with("mcp_a_b_c_"), "{marked:?}");
        assert_eq!(marked[1], "mcp_a_d");
    }

    #[test]
    fn long_names_are_cut_and_marked() {
        let (one, two) = ("x".repeat(80) + "1", "x".repeat(80) + "2");
        let cut = names("server", &[&one, &two], &["server"]);
        for name in &cut {
            assert_eq!(name.len(), NAME_BYTES);
            assert!(name.starts_with("mcp_server_xxx"));
        }
        assert_ne!(cut[0], cut[1]);
        let long = "s".repeat(64);
        assert_eq!(names(&long, &["t"], &[&long])[0].len(), NAME_BYTES);
        assert_eq!(cut, names("server", &[&one, &two], &["server", "other"]));
    }
}
