//! Leaves out, while compiling, what only readers of the source need: comments,
//! the white space between tokens, `const` and `let` where the statement before
//! begins with the same, and the parentheses around a lone parameter. Names, texts
//! and the order of things stay, so that what a browser's debugger shows is still
//! the source.
//!
//! It knows tokens, not grammar. So in scripts a statement ends with a
//! semicolon or a brace, a declaration with a semicolon, the body of a loop or a condition is never empty, and a
//! regular expression stands behind an operator or a bracket, never behind a
//! word.

/// What a source is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// JavaScript.
    Script,
    /// CSS.
    Style,
}

/// Template literals within template literals.
const DEPTH: usize = 8;

/// The words that begin a declaration, whose names follow each other.
const CONST: &[u8] = b"const ";
const LET: &[u8] = b"let ";

/// The length of `source` without what can be left out.
pub const fn length(source: &[u8], language: Language) -> usize {
    copy::<0>(source, language).length
}

/// `source` without what can be left out; `N` is its [`length`].
pub const fn lean<const N: usize>(source: &[u8], language: Language) -> [u8; N] {
    copy(source, language).bytes
}

/// What was kept, as far as there was room.
struct Kept<const N: usize> {
    bytes: [u8; N],
    length: usize,
    last: u8,
}

impl<const N: usize> Kept<N> {
    /// Copies up to this place. Returns it.
    const fn copy(&mut self, source: &[u8], from: usize, to: usize) -> usize {
        let mut place = from;
        while place < to {
            if self.length < N {
                self.bytes[self.length] = source[place];
            }
            self.length += 1;
            place += 1;
        }
        self.last = source[to - 1];
        to
    }
}

const fn copy<const N: usize>(source: &[u8], language: Language) -> Kept<N> {
    let mut kept = Kept {
        bytes: [0; N],
        length: 0,
        last: b';',
    };
    let is_script = matches!(language, Language::Script);
    // The open braces within each `${`, and how many of those are open.
    let mut braces = [0; DEPTH];
    let mut depth = 0;
    // Two bits for each open bracket, the innermost's lowest: whether a `const` is
    // under way, and whether a `let`.
    let mut declares: u64 = 0;
    // White space behind the last token; a source begins like a line.
    let mut gap = b'\n';
    let mut place = 0;
    while place < source.len() {
        let byte = source[place];
        // Most bytes: the compiler interprets this code, which is slow.
        if gap == 0 && byte >= b'a' && byte <= b'z' {
            if kept.length < N {
                kept.bytes[kept.length] = byte;
            }
            kept.length += 1;
            kept.last = byte;
            place += 1;
            continue;
        }
        if byte == b' ' || byte == b'\n' {
            if gap != b'\n' {
                gap = byte;
            }
            place += 1;
            continue;
        }
        if byte == b'/'
            && (begins_with(source, place, b"/*")
                || (is_script && begins_with(source, place, b"//")))
        {
            place = end_of_comment(source, place);
            if gap == 0 {
                gap = b' ';
            }
            continue;
        }
        if gap != 0 {
            if separates(kept.last, gap, byte, is_script) {
                if kept.length < N {
                    kept.bytes[kept.length] = gap;
                }
                kept.length += 1;
                kept.last = gap;
            }
            gap = 0;
        }
        if byte == b'}' && kept.last == b';' {
            kept.length -= 1;
        }
        if !is_script && begins_with(source, place, b"0.") && !is_part_of_number(kept.last) {
            place += 1;
            continue;
        }
        if is_script && matches!(kept.last, b';' | b'{' | b'}') {
            if begins_with(source, place, CONST) {
                declares |= 1;
            } else if begins_with(source, place, LET) {
                declares |= 2;
            }
        }
        if byte == b';' && declares & 3 != 0 {
            let word = if declares & 1 == 1 { CONST } else { LET };
            let next = next_token(source, place + 1);
            if begins_with(source, next, word) {
                kept.copy(b",", 0, 1);
                place = next + word.len();
                continue;
            }
            declares &= !3;
        }
        if matches!(byte, b'}' | b')' | b']') {
            declares >>= 2;
        }
        if is_script && byte == b'(' && !is_word(kept.last) {
            let end = end_of_lone_parameter(source, place);
            if end > 0 {
                kept.copy(source, place + 1, end);
                place = end + 1;
                continue;
            }
        }
        let end = match byte {
            b'"' | b'\'' => end_of_text(source, place, byte),
            b'/' if is_script && may_be_before_pattern(kept.last) => end_of_pattern(source, place),
            b'`' => end_of_template_part(source, place),
            b'}' if depth > 0 && braces[depth - 1] == 0 => {
                depth -= 1;
                end_of_template_part(source, place)
            }
            _ => place + 1,
        };
        if is_script && end > 1 && begins_with(source, end - 2, b"${") {
            braces[depth] = 0;
            depth += 1;
        } else if depth > 0 && byte == b'{' {
            braces[depth - 1] += 1;
        } else if depth > 0 && byte == b'}' && end == place + 1 && braces[depth - 1] > 0 {
            braces[depth - 1] -= 1;
        }
        if is_script
            && matches!(source[end - 1], b'{' | b'(' | b'[')
            && !matches!(byte, b'"' | b'\'' | b'/')
        {
            declares <<= 2;
        }
        place = kept.copy(source, place, end);
    }
    kept
}

/// Where the name ends that stands alone in the parentheses that begin here, if
/// it is the parameter of an arrow function: such a one needs no parentheses.
const fn end_of_lone_parameter(source: &[u8], begin: usize) -> usize {
    let mut end = begin + 1;
    while end < source.len() && is_word(source[end]) {
        end += 1;
    }
    if end > begin + 1 && begins_with(source, end, b") => ") {
        end
    } else {
        0
    }
}

/// Where the next token begins, behind white space and comments.
const fn next_token(source: &[u8], from: usize) -> usize {
    let mut place = from;
    while place < source.len() {
        if begins_with(source, place, b"//") || begins_with(source, place, b"/*") {
            place = end_of_comment(source, place);
        } else if matches!(source[place], b' ' | b'\n') {
            place += 1;
        } else {
            break;
        }
    }
    place
}

/// Whether white space between two tokens means something.
const fn separates(before: u8, gap: u8, after: u8, is_script: bool) -> bool {
    if !is_script {
        return !matches!(before, b'{' | b'}' | b';' | b',' | b':' | b'>')
            && !matches!(after, b'{' | b'}' | b';' | b',' | b'>' | b'!');
    }
    if gap == b'\n' {
        // Where a statement may end without a semicolon.
        return !matches!(
            before,
            b'{' | b'}' | b'(' | b'[' | b';' | b',' | b'=' | b'&' | b'|' | b'?' | b':'
        ) && !matches!(
            after,
            b'}' | b')' | b']' | b';' | b',' | b'.' | b'?' | b':' | b'&' | b'|'
        );
    }
    is_word(before) && is_word(after) || before == after && matches!(after, b'+' | b'-')
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'_' | b'$' | b'#')
}

const fn is_part_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'.'
}

/// Whether a slash behind this begins a regular expression, and divides nothing.
const fn may_be_before_pattern(before: u8) -> bool {
    !is_word(before) && !matches!(before, b')' | b']' | b'}' | b'"' | b'\'' | b'`')
}

/// Where a comment that begins here has ended; a line's end is not part of it.
const fn end_of_comment(source: &[u8], begin: usize) -> usize {
    let is_line = source[begin + 1] == b'/';
    let mut place = begin + 2;
    while place < source.len() {
        if is_line && source[place] == b'\n' {
            return place;
        }
        if !is_line && begins_with(source, place, b"*/") {
            return place + 2;
        }
        place += 1;
    }
    place
}

const fn end_of_text(source: &[u8], begin: usize, quote: u8) -> usize {
    let mut place = begin + 1;
    while place < source.len() && source[place] != quote {
        place += if source[place] == b'\\' { 2 } else { 1 };
    }
    place + 1
}

/// A slash within a class of characters does not end the expression.
const fn end_of_pattern(source: &[u8], begin: usize) -> usize {
    let mut place = begin + 1;
    let mut is_in_class = false;
    while place < source.len() && (is_in_class || source[place] != b'/') {
        match source[place] {
            b'\\' => place += 1,
            b'[' => is_in_class = true,
            b']' => is_in_class = false,
            _ => {}
        }
        place += 1;
    }
    place + 1
}

/// Where the text of a template literal is interrupted by `${`, or ends.
const fn end_of_template_part(source: &[u8], begin: usize) -> usize {
    let mut place = begin + 1;
    while place < source.len() {
        if source[place] == b'`' {
            return place + 1;
        }
        if begins_with(source, place, b"${") {
            return place + 2;
        }
        place += if source[place] == b'\\' { 2 } else { 1 };
    }
    place
}

const fn begins_with(source: &[u8], place: usize, word: &[u8]) -> bool {
    let mut offset = 0;
    while offset < word.len() {
        if place + offset >= source.len() || source[place + offset] != word[offset] {
            return false;
        }
        offset += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaned(source: &str, language: Language) -> String {
        const ROOM: usize = 1024;
        let kept = copy::<ROOM>(source.as_bytes(), language);
        assert_eq!(kept.length, length(source.as_bytes(), language));
        String::from_utf8(kept.bytes[..kept.length].to_vec()).unwrap()
    }

    #[test]
    fn scripts_keep_texts_and_what_separates() {
        for (source, expected) in [
            (
                "// head\n\n/** One. */\nfunction f() {\n  return 1 / 2; // two\n}\n",
                "function f(){return 1/2}",
            ),
            (
                "const a = \"b , c\", d = 'e \\' f';",
                "const a=\"b , c\",d='e \\' f';",
            ),
            (
                "import { h } from \"./dom.js\";",
                "import{h}from\"./dom.js\";",
            ),
            ("x = a + +b - -c;", "x=a+ +b- -c;"),
            ("let a = 1\nlet b\n(c)", "let a=1\nlet b\n(c)"),
            ("a\n  .b()\n  ?.c", "a.b()?.c"),
            ("static #x = 1;\nasync #y() {}", "static #x=1;async #y(){}"),
            (
                "s.replace(/[/ \"'] \\/ x/g, \" \") / 2 / b",
                "s.replace(/[/ \"'] \\/ x/g,\" \")/2/b",
            ),
            (
                "`a  b ${ c ? `d  ${ { e: 1 } }  f` : \"\" }  // g`",
                "`a  b ${c?`d  ${{e:1}}  f`:\"\"}  // g`",
            ),
            ("if (a) {\n  b();\n}\nc();", "if(a){b()}c();"),
            ("const u = \"http://x\"; // y", "const u=\"http://x\";"),
            (
                "const a = 1; // one\nconst [b] = [() => {\n  c();\n  const d = 2;\n  const e = `${f(d)}`;\n}];\nconst g = 3;\nh();\nconst i = 4;",
                "const a=1,[b]=[()=>{c();const d=2,e=`${f(d)}`}],g=3;h();const i=4;",
            ),
            (
                "a.map((b) => b.c((d, e) => (f) + 1));\nasync (g) => h;\n(() => {})();",
                "a.map(b=>b.c((d,e)=>(f)+1));async(g)=>h;(()=>{})();",
            ),
            (
                "let a;\nlet b = 1;\nconst c = 2;\nlet d;",
                "let a,b=1;const c=2;let d;",
            ),
            (
                "export const a = 1;\nconst b = 2;\nfor (const c of d) e(c);\nconst f = 3;",
                "export const a=1;const b=2;for(const c of d)e(c);const f=3;",
            ),
        ] {
            assert_eq!(leaned(source, Language::Script), expected);
        }
    }

    #[test]
    fn styles_keep_texts_and_what_separates() {
        for (source, expected) in [
            (
                "/* a */\n.b > c, d :hover {\n  e: f g;\n}\n",
                ".b>c,d :hover{e:f g}",
            ),
            (
                "@media (a: b) and (c > d) { x::after { content: \"y  ; z\"; } }",
                "@media (a:b) and (c>d){x::after{content:\"y  ; z\"}}",
            ),
            (
                "a { b: calc(0.1px + 10.2px) 0 0.5em !important; }",
                "a{b:calc(.1px + 10.2px) 0 .5em!important}",
            ),
        ] {
            assert_eq!(leaned(source, Language::Style), expected);
        }
    }
}
