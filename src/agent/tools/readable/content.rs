//! Which elements of a page are its content: not what is hidden, not navigation and the
//! like, and not a banner or a list of links.

use super::hidden::{Rules, is_spoken};
use super::html::{Tag, Tree};
use super::text::has;

/// Elements that are no text, or whose text is not shown.
const NO_TEXT: &str = "\
    template svg math object canvas audio video select datalist map dialog script style title \
    textarea iframe noembed noframes xmp";
/// Elements that hold others.
const CONTAINERS: &str = "\
    div section ul ol aside form header footer dl nav figure details center fieldset article";
/// Roles of what stands beside the content.
const ROLES_BESIDE: &str = "navigation banner contentinfo search menu menubar toolbar";
/// Links that are a list.
const MANY_LINKS: usize = 3;
/// Longest figure that is drawn, and read aloud as text: a price, a rating.
const MAX_FIGURE: usize = 40;

/// Whether an element is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    /// It is not shown, or is no text.
    #[default]
    Never,
    /// It is marked as navigation and the like.
    Beside,
    /// It looks as if it was not the page's subject.
    Doubtful,
    Content,
}

/// What an element holds of content.
#[derive(Clone, Copy, Default)]
struct Holdings {
    /// Bytes of text, and those of them that are in links.
    text: usize,
    linked: usize,
    links: usize,
    has_headline: bool,
}

/// What each node of a page is worth.
pub(super) fn judge(tree: &Tree<'_>, has_data: bool) -> Vec<Worth> {
    let mut rules = Rules::default();
    for (place, node) in tree.nodes.iter().enumerate() {
        if node.name() == "style" {
            tree.children(place)
                .for_each(|text| rules.read(tree.nodes[text].text));
        }
    }
    let mut worth = vec![Worth::Content; tree.nodes.len()];
    let mut held = vec![Holdings::default(); tree.nodes.len()];
    // From the end: what an element holds is known before the element.
    for (place, node) in tree.nodes.iter().enumerate().rev() {
        match &node.tag {
            None => held[place].text += node.text.trim().len(),
            Some(tag) => {
                take_holdings(tag, &mut held[place]);
                worth[place] = match by_its_nature(tree, place, tag, &rules, has_data) {
                    Worth::Content => by_what_it_holds(tree, place, tag, held[place]),
                    worth => worth,
                };
            }
        }
        if place > 0 && worth[place] == Worth::Content {
            let (before, after) = held.split_at_mut(place);
            before[node.parent].add(&after[0]);
        }
    }
    worth
}

/// What an element says of itself by its tag.
fn by_its_nature(
    tree: &Tree<'_>,
    place: usize,
    tag: &Tag<'_>,
    rules: &Rules<'_>,
    has_data: bool,
) -> Worth {
    let role = tag.attribute("role").unwrap_or_default();
    let is_of = |class: &str| tag.attribute("class").is_some_and(|it| it.contains(class));
    let name = &*tag.name;
    // Pages hide these until their scripts have run.
    if name == "html" || name == "body" {
        return Worth::Content;
    }
    if is_spoken(tag) {
        // Beside figures that are drawn, it says what they are.
        let text = tree.text(place);
        let is_figure = text.len() <= MAX_FIGURE && text.contains(|it: char| it.is_ascii_digit());
        return [Worth::Never, Worth::Content][usize::from(is_figure)];
    }
    if rules.hide(tag) {
        return Worth::Never;
    }
    match name {
        // A tick or a cross in a table, by its label.
        "svg" if role == "img" => Worth::Content,
        _ if has(NO_TEXT, name) => Worth::Never,
        // For browsers without scripts.
        "noscript" if has_data => Worth::Never,
        "noscript" => Worth::Beside,
        // Of wikis: notes' numbers, and links to edit a section.
        "sup" if is_of("reference") => Worth::Never,
        "span" if is_of("editsection") => Worth::Never,
        "main" | "article" => Worth::Content,
        // The text of a button is content where it is a heading or a question.
        "button" | "span" | "a" if name == "button" || role == "button" => {
            let headings = ["h1", "h2", "h3", "h4", "h5", "h6", "summary"];
            match tree.is_inside(place, &headings) || tree.text(place).ends_with(['?', '？']) {
                true => Worth::Content,
                false => Worth::Never,
            }
        }
        "nav" => Worth::Beside,
        "footer" if !tree.is_inside(place, &["blockquote"]) => Worth::Beside,
        "aside" => Worth::Beside,
        _ if ["dialog", "alertdialog", "tooltip"].contains(&role) => Worth::Never,
        _ if has(ROLES_BESIDE, role) => Worth::Beside,
        _ => Worth::Content,
    }
}

/// What an element of content looks like, with what it holds.
fn by_what_it_holds(tree: &Tree<'_>, place: usize, tag: &Tag<'_>, held: Holdings) -> Worth {
    let name = &*tag.name;
    // What holds the headline is more than a banner.
    if held.has_headline || has("html body main table", name) {
        return Worth::Content;
    }
    let is_container = name.contains('-') || has(CONTAINERS, name);
    let is_banner = name == "header" && !tree.is_inside(place, &["main", "article", "section"]);
    let is_links = is_container && held.links >= MANY_LINKS && held.linked * 10 >= held.text * 7;
    match is_banner || is_links {
        true => Worth::Doubtful,
        false => Worth::Content,
    }
}

fn take_holdings(tag: &Tag<'_>, held: &mut Holdings) {
    match &*tag.name {
        "img" => held.text += tag.label("alt").len(),
        "a" if held.text > 0 && is_elsewhere(&tag.label("href")) => {
            held.linked = held.text;
            held.links += 1;
        }
        "h1" => held.has_headline = true,
        _ => {}
    }
}

impl Holdings {
    fn add(&mut self, inside: &Holdings) {
        self.text += inside.text;
        self.linked += inside.linked;
        self.links += inside.links;
        self.has_headline |= inside.has_headline;
    }
}

/// Whether an address leads to another place on the web, or in the page.
pub(super) fn is_elsewhere(address: &str) -> bool {
    let is_scheme = |scheme: &&str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let scheme = address
        .split_once(':')
        .map(|(scheme, _)| scheme)
        .filter(is_scheme);
    let is_web = |scheme: &str| has("http https", &scheme.to_ascii_lowercase());
    !address.is_empty() && scheme.is_none_or(is_web)
}
