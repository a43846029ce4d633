//! What a browser does not show: by attribute, by inline style, and by the rules
//! of the page's own style sheets for a single class.

use std::collections::HashSet;

use super::tokens::Tag;

/// Most classes whose rules are kept.
const MAX_CLASSES: usize = 2_000;
/// Classes that common style sheets hide elements with.
const CLASSES: [&str; 5] = ["hidden", "d-none", "is-hidden", "u-hidden", "display-none"];
/// Classes of what is only read aloud.
const SPOKEN: [&str; 8] = [
    "visually-hidden",
    "visuallyhidden",
    "visually-hidden-focusable",
    "sr-only",
    "screen-reader-text",
    "screenreader-text",
    "element-invisible",
    "a-offscreen",
];

/// Whether an element is only read aloud.
pub(super) fn is_spoken(tag: Tag<'_>) -> bool {
    let classes = tag.attribute("class").unwrap_or_default();
    classes
        .split_ascii_whitespace()
        .any(|class| SPOKEN.contains(&class))
        && tag.attribute("aria-hidden").is_none()
        && tag.attribute("hidden").is_none()
        && tag.attribute("style").is_none()
}

/// Whether a text is little more than a number: a price, a rating.
pub(super) fn is_figure(text: &str) -> bool {
    text.len() <= 40 && text.contains(|letter: char| letter.is_ascii_digit())
}

/// The classes that the page's own rules hide.
#[derive(Default)]
pub(super) struct Rules<'a> {
    hidden: HashSet<&'a str>,
    /// Shown under some condition: opened by a press, the chosen tab.
    toggled: HashSet<&'a str>,
}

impl<'a> Rules<'a> {
    /// Reads the content of a `style` element. Rules for media, and those that
    /// depend on more than one class, hide nothing.
    pub(super) fn read(&mut self, sheet: &'a str) {
        let mut rest = sheet;
        while let Some(open) = rest.find('{') {
            let selectors = rest[..open].rsplit("*/").next().unwrap_or_default().trim();
            rest = &rest[open + 1..];
            if selectors.starts_with('@') {
                rest = after_block(rest);
                continue;
            }
            let end = rest.find('}').unwrap_or(rest.len());
            let declarations = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            self.take(selectors, declarations);
        }
    }

    fn take(&mut self, selectors: &'a str, declarations: &'a str) {
        let style = Style::read(declarations);
        for selector in selectors.split(',').map(str::trim) {
            if self.hidden.len() + self.toggled.len() >= MAX_CLASSES {
                return;
            }
            let is_simple = |name: &str| !name.contains(|letter| !is_of_name(letter));
            match selector.strip_prefix('.') {
                Some(name) if is_simple(name) => {
                    if style.is_hidden() {
                        self.hidden.insert(name);
                    } else if style.is_displayed {
                        self.hidden.remove(name);
                    }
                }
                _ if style.is_displayed => {
                    let names = selector.split('.').skip(1).map(|part| {
                        let end = part.find(|letter| !is_of_name(letter));
                        &part[..end.unwrap_or(part.len())]
                    });
                    self.toggled.extend(names.take(4));
                }
                _ => {}
            }
        }
    }

    /// Whether an element is not shown.
    pub(super) fn hide(&self, tag: Tag<'_>) -> bool {
        // Pages hide these until their scripts have run.
        if tag.is("html") || tag.is("body") {
            return false;
        }
        if tag.attribute("hidden").is_some()
            || tag
                .attribute("aria-hidden")
                .is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
        {
            return true;
        }
        let style = tag.attribute("style").map(Style::read);
        if style.is_some_and(|style| style.is_hidden() || style.is_transparent) {
            return true;
        }
        let classes = tag.attribute("class").unwrap_or_default();
        // `hidden md:block` is shown on a wide window.
        let is_responsive =
            || classes.contains(':') || classes.contains(" d-") || classes.contains("-block");
        classes.split_ascii_whitespace().any(|class| {
            (self.hidden.contains(class) && !self.toggled.contains(class))
                || (CLASSES.contains(&class) && !is_responsive())
        })
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '_' || !letter.is_ascii()
}

/// What follows a block whose `{` was read.
fn after_block(sheet: &str) -> &str {
    let mut depth = 1;
    for (place, byte) in sheet.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &sheet[place + 1..];
        }
    }
    ""
}

/// What declarations say about being seen.
#[derive(Default)]
struct Style<'a> {
    is_displayed: bool,
    is_gone: bool,
    /// Classes are transparent until a script fades them in, so it counts only inline.
    is_transparent: bool,
    is_placed: bool,
    is_beyond: bool,
    is_flat: bool,
    is_clipped: bool,
    color: &'a str,
    background: &'a str,
}

impl<'a> Style<'a> {
    fn read(declarations: &'a str) -> Style<'a> {
        let mut style = Style::default();
        for declaration in declarations.split(';') {
            let Some((name, value)) = declaration.split_once(':') else {
                continue;
            };
            let value = value.split('!').next().unwrap_or_default().trim();
            style.take(name.trim(), value);
        }
        style
    }

    fn take(&mut self, name: &str, value: &'a str) {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        let says = |wanted: &str| value.eq_ignore_ascii_case(wanted);
        let begins = |start: &str| {
            value
                .get(..start.len())
                .is_some_and(|value| value.eq_ignore_ascii_case(start))
        };
        let size = length(value);
        if is("display") {
            self.is_gone |= says("none");
            self.is_displayed = !says("none");
        } else if is("visibility") {
            self.is_gone |= says("hidden") || says("collapse");
        } else if is("opacity") {
            self.is_transparent = size.is_some_and(|size| size <= 0.02);
        } else if is("font-size") {
            let is_tiny = |size: f64| size == 0.0 || (size <= 2.0 && value.ends_with("px"));
            self.is_gone |= size.is_some_and(is_tiny);
        } else if is("position") {
            self.is_placed = says("absolute") || says("fixed");
        } else if is("left") || is("right") || is("top") || is("bottom") {
            self.is_beyond |= size.is_some_and(|size| size <= -900.0);
        } else if is("text-indent") {
            self.is_gone |= size.is_some_and(|size| size <= -900.0);
        } else if is("width") || is("height") {
            self.is_flat |= size.is_some_and(|size| size <= 1.0) && !value.ends_with('%');
        } else if is("overflow") {
            self.is_clipped |= says("hidden") || says("clip");
        } else if is("clip") {
            self.is_gone |= begins("rect(0") || begins("rect(1px");
        } else if is("clip-path") {
            self.is_gone |= begins("inset(50%") || begins("inset(100%") || begins("circle(0");
        } else if is("transform") {
            self.is_gone |= says("scale(0)");
        } else if is("color") {
            self.color = value;
        } else if is("background") || is("background-color") {
            self.background = value;
        }
    }

    fn is_hidden(&self) -> bool {
        self.is_gone
            || (self.is_placed && self.is_beyond)
            || (self.is_flat && self.is_clipped)
            || (!self.color.is_empty() && self.color.eq_ignore_ascii_case(self.background))
    }
}

/// The number at the beginning of a length.
fn length(value: &str) -> Option<f64> {
    let end = value
        .find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '-' | '.'))
        .unwrap_or(value.len());
    let number: f64 = value[..end].parse().ok()?;
    // In letters of the usual size.
    Some(
        match value[end..].starts_with("em") || value[end..].starts_with("rem") {
            true => number * 16.0,
            false => number,
        },
    )
}
