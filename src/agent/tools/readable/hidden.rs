//! What a browser does not show: by attribute, by inline style, and by the rules
//! of the page's own style sheets for a single class.

use std::collections::HashSet;

use super::html::Tag;
use super::text::has;

/// Most classes whose rules are kept.
const MAX_CLASSES: usize = 2_000;
/// Classes that common style sheets hide elements with.
const CLASSES: &str = "hidden d-none is-hidden u-hidden display-none";
/// Classes of what is only read aloud.
const SPOKEN: &str = "\
    visually-hidden visuallyhidden visually-hidden-focusable sr-only screen-reader-text \
    screenreader-text element-invisible a-offscreen";

/// Whether an element is only read aloud.
pub(super) fn is_spoken(tag: &Tag<'_>) -> bool {
    let has_none = |name: &&str| tag.attribute(name).is_none();
    let classes = tag.attribute("class").unwrap_or_default();
    classes
        .split_ascii_whitespace()
        .any(|class| has(SPOKEN, class))
        && ["aria-hidden", "hidden", "style"].iter().all(has_none)
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
        while let Some((selectors, after)) = rest.split_once('{') {
            let selectors = selectors.rsplit("*/").next().unwrap_or_default().trim();
            if selectors.starts_with('@') {
                rest = after_block(after);
                continue;
            }
            let (declarations, after) = after.split_once('}').unwrap_or((after, ""));
            rest = after;
            let style = Style::read(declarations);
            let (is_hidden, is_displayed) = (style.is_hidden(), style.is_displayed());
            let is_of_name = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
            for selector in selectors.split(',').map(str::trim) {
                let class = selector.strip_prefix('.');
                match class.filter(|name| name.chars().all(is_of_name)) {
                    _ if self.hidden.len() + self.toggled.len() >= MAX_CLASSES => return,
                    Some(class) if is_hidden => {
                        self.hidden.insert(class);
                    }
                    Some(class) if is_displayed => {
                        self.hidden.remove(class);
                    }
                    None if is_displayed => {
                        let classes = selector.split('.').skip(1).take(4);
                        let is_end = |letter| !is_of_name(letter);
                        let classes = classes.filter_map(|class| class.split(is_end).next());
                        self.toggled.extend(classes);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Whether an element is not shown.
    pub(super) fn hide(&self, tag: &Tag<'_>) -> bool {
        let aria_hidden = tag.attribute("aria-hidden").unwrap_or_default();
        if tag.attribute("hidden").is_some() || aria_hidden.trim().eq_ignore_ascii_case("true") {
            return true;
        }
        let style = tag.attribute("style").map(Style::read);
        if style.is_some_and(|style| style.is_hidden() || style.is_transparent()) {
            return true;
        }
        let classes = tag.attribute("class").unwrap_or_default();
        // `hidden md:block` is shown on a wide window.
        let marks = [":", " d-", "-block"];
        let is_responsive = marks.iter().any(|mark| classes.contains(mark));
        classes.split_ascii_whitespace().any(|class| {
            (self.hidden.contains(class) && !self.toggled.contains(class))
                || (has(CLASSES, class) && !is_responsive)
        })
    }
}

/// What follows a block whose `{` was read.
fn after_block(sheet: &str) -> &str {
    let mut depth = 1;
    let end = sheet.find(|letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    end.map_or("", |end| &sheet[end + 1..])
}

/// Declarations in lower case, without white space.
struct Style(String);

impl Style {
    fn read(declarations: &str) -> Style {
        let letters = declarations
            .chars()
            .filter(|letter| !letter.is_whitespace());
        Style(letters.map(|letter| letter.to_ascii_lowercase()).collect())
    }

    fn values(&self, properties: &[&str]) -> impl Iterator<Item = &str> {
        let declarations = self.0.split(';').filter_map(|it| it.split_once(':'));
        declarations
            .filter(|(name, _)| properties.contains(name))
            .map(|(_, value)| value.split('!').next().unwrap_or_default())
    }

    fn has(&self, properties: &[&str], passes: impl Fn(&str) -> bool) -> bool {
        self.values(properties).any(passes)
    }

    fn is(&self, property: &str, beginnings: &[&str]) -> bool {
        let begins = |value: &str| beginnings.iter().any(|start| value.starts_with(start));
        self.has(&[property], begins)
    }

    fn is_displayed(&self) -> bool {
        self.has(&["display"], |value| !value.starts_with("none"))
    }

    /// Classes are transparent until a script fades them in, so it counts only inline.
    fn is_transparent(&self) -> bool {
        self.has(&["opacity"], |value| {
            length(value).is_some_and(|size| size <= 0.02)
        })
    }

    fn is_hidden(&self) -> bool {
        let is_far = |value: &str| length(value).is_some_and(|size| size <= -900.0);
        let is_tiny = |value: &str| {
            length(value).is_some_and(|size| size == 0.0 || (size <= 2.0 && value.ends_with("px")))
        };
        let is_flat =
            |value: &str| length(value).is_some_and(|size| size <= 1.0) && !value.ends_with('%');
        self.is("display", &["none"])
            || self.is("visibility", &["hidden", "collapse"])
            || self.is("clip", &["rect(0", "rect(1px"])
            || self.is("clip-path", &["inset(50%", "inset(100%", "circle(0"])
            || self.is("transform", &["scale(0)"])
            || self.has(&["font-size"], is_tiny)
            || self.has(&["text-indent"], is_far)
            || (self.is("position", &["absolute", "fixed"])
                && self.has(&["left", "right", "top", "bottom"], is_far))
            || (self.is("overflow", &["hidden", "clip"]) && self.has(&["width", "height"], is_flat))
            || self.values(&["color"]).last().is_some_and(|color| {
                self.has(&["background", "background-color"], |behind| {
                    behind == color
                })
            })
    }
}

/// The number at the beginning of a length; of letters as of those of the usual size.
fn length(value: &str) -> Option<f64> {
    let end = value.find(|letter: char| !letter.is_ascii_digit() && !"-.".contains(letter));
    let (number, unit) = value.split_at(end.unwrap_or(value.len()));
    let number: f64 = number.parse().ok()?;
    let is_letters = unit.starts_with("em") || unit.starts_with("rem");
    Some(if is_letters { number * 16.0 } else { number })
}
