//! The line of each key in the file, and the keys that appear twice. The JSON parser
//! reports neither, and both help to find a mistake.

use std::collections::BTreeMap;

use super::key_path::KeyPath;

/// The lines of a text that is known to be JSON.
pub(super) struct Lines {
    lines: BTreeMap<KeyPath, usize>,
    /// Keys that appear in their object more than once; the line of such a key is that
    /// of the last one.
    pub repeated: Vec<KeyPath>,
}

impl Lines {
    /// Walks a text that the JSON parser has accepted. (It limits nesting to 128
    /// levels, which bounds the recursion here.)
    pub fn of(text: &str) -> Lines {
        let mut scanner = Scanner {
            text,
            at: 0,
            line: 1,
            found: Lines {
                lines: BTreeMap::new(),
                repeated: Vec::new(),
            },
        };
        scanner.value(&KeyPath::top());
        scanner.found
    }

    /// The line of a key, or that of the nearest object around it.
    pub fn line(&self, path: &KeyPath) -> usize {
        match self.lines.get(path) {
            Some(&line) => line,
            None => path.parent().map_or(1, |parent| self.line(&parent)),
        }
    }
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    found: Lines,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is not white space.
    fn next_token(&mut self) -> Option<u8> {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                _ => return Some(byte),
            }
            self.at += 1;
        }
        None
    }

    fn value(&mut self, path: &KeyPath) {
        match self.next_token() {
            Some(b'{') => self.object(path),
            Some(b'[') => self.array(path),
            Some(b'"') => {
                self.string();
            }
            _ => {
                let ends = |byte: u8| matches!(byte, b',' | b'}' | b']') || byte <= b' ';
                while self.peek().is_some_and(|byte| !ends(byte)) {
                    self.at += 1;
                }
            }
        }
    }

    /// Steps over a string and returns its text, quotes and all.
    fn string(&mut self) -> &str {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
        self.at = self.at.min(self.text.len());
        self.text.get(start..self.at).unwrap_or("")
    }

    fn object(&mut self, path: &KeyPath) {
        self.at += 1;
        loop {
            match self.next_token() {
                Some(b'"') => {}
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                _ => break,
            }
            let key: String = serde_json::from_str(self.string()).unwrap_or_default();
            let path = path.key(&key);
            if self.found.lines.insert(path.clone(), self.line).is_some() {
                self.found.repeated.push(path.clone());
            }
            if self.next_token() == Some(b':') {
                self.at += 1;
            }
            self.value(&path);
        }
        self.at += 1;
    }

    fn array(&mut self, path: &KeyPath) {
        self.at += 1;
        for index in 0.. {
            if self.next_token() == Some(b',') {
                self.at += 1;
                self.next_token();
            }
            if matches!(self.peek(), None | Some(b']')) {
                break;
            }
            let path = path.index(index);
            self.found.lines.insert(path.clone(), self.line);
            self.value(&path);
        }
        self.at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_line() {
        let text = r#"{
  "a": [1,
    {"b\n": "x, ]}\""}, [], {}
  ],
"c":
{
"d" : -1.5e3 }
,"c":true}
"#;
        let lines = Lines::of(text);
        let a = KeyPath::top().key("a");
        let c = KeyPath::top().key("c");
        for (path, line) in [
            (KeyPath::top(), 1),
            (a.clone(), 2),
            (a.index(0), 2),
            (a.index(1), 3),
            (a.index(1).key("b\n"), 3),
            (a.index(3), 3),
            (c.key("d"), 7),
            (c.key("absent"), 8),
        ] {
            assert_eq!(lines.line(&path), line, "{path}");
        }
        assert_eq!(lines.repeated, [c]);
    }
}
