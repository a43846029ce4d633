//! What everybody needs of the page: names for what can be used, contrast, the
//! keyboard, and quiet where motion is not wanted.

use std::collections::BTreeMap;

use serde_json::json;

use super::chromium::{Chromium, Page};
use super::pages::go;
use super::{address, check, say, sign_in};
use support::home::Home;

const STYLE: &str = include_str!("../../src/hearth/web/page/style.css");

/// Every control that a screen reader would meet has a name.
pub fn check_names(page: &mut Page, place: &str) {
    let tree = page.call("Accessibility.getFullAXTree", json!({}));
    let mut controls = 0;
    for node in tree["nodes"].as_array().unwrap() {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let is_control = [
            "button",
            "link",
            "textbox",
            "searchbox",
            "checkbox",
            "radio",
            "combobox",
            "slider",
            "spinbutton",
            "progressbar",
            "dialog",
            "navigation",
        ];
        if node["ignored"] == true || !is_control.contains(&role) {
            continue;
        }
        controls += 1;
        let name = node["name"]["value"].as_str().unwrap_or_default();
        assert!(
            !name.trim().is_empty(),
            "{place}: a {role} has no name: {node}"
        );
    }
    assert!(controls >= 3, "{place}: only {controls} controls");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn whatever_can_be_used_has_a_name() {
    let home = Home::start(json!({ "permission_mode": "allow" }));
    let mut admin = home.admin();
    admin.ask(json!({ "type": "create_schedule", "prompt": "water", "at": "2030-12-24T18:00" }));
    admin.ask(json!({ "type": "chat", "message": "remember that the bins go out on Monday" }));
    let browser = Chromium::start();
    let mut page = browser.page();
    page.call("Accessibility.enable", json!({}));
    page.open(&address(&home));
    page.until("document.querySelector('.sign-in form')");
    page.evaluate("document.querySelector('.away').open = true");
    check_names(&mut page, "sign in");
    sign_in(&mut page, &home);
    check_names(&mut page, "welcome");
    say(&mut page, "hello");
    page.until("document.querySelector('[role=log] .assistant .text')");
    check_names(&mut page, "chat");
    for name in super::pages::PAGES {
        go(&mut page, name);
        check_names(&mut page, name);
        let title = page.evaluate("document.querySelectorAll('h1').length === 1 && document.title");
        assert!(
            title.as_str().unwrap().ends_with(" · Hearth"),
            "{name}: {title}"
        );
    }
    go(&mut page, "people");
    page.click("[aria-label^='Remove user']");
    check_names(&mut page, "dialog");
    page.press("Escape", 0);
    page.until("!document.querySelector('dialog')");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_keyboard_reaches_everything_in_order() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    let focused = "document.activeElement.name || document.activeElement.getAttribute('aria-label') || document.activeElement.textContent";
    page.open(&address(&home));
    page.until("document.activeElement?.name === 'username'");
    for expected in [
        "password",
        "stay",
        "Connect via relay",
        "Sign in",
        "Forgot your password?",
    ] {
        page.press("Tab", 0);
        assert_eq!(page.evaluate(focused), expected);
    }
    sign_in(&mut page, &home);
    page.until("document.activeElement.getAttribute('aria-label') === 'Message'");
    page.press("k", 2);
    assert_eq!(page.evaluate(focused), "Search conversations (Ctrl+K)");
    page.press("Escape", 0);
    assert_eq!(
        page.evaluate("document.activeElement === document.body"),
        true
    );

    // On a phone the menu covers the rest, and gives the focus back.
    page.size(390, 844);
    page.until("getComputedStyle(document.querySelector('.side')).visibility === 'hidden'");
    page.evaluate("document.querySelector('.open-side').focus()");
    page.press("Enter", 0);
    page.until("document.querySelector('.side.shown') && document.activeElement.getAttribute('aria-label') === 'Close the menu'");
    assert_eq!(page.evaluate("document.querySelector('.main').inert"), true);
    page.screenshot("menu-phone");
    page.press("Escape", 0);
    page.until("!document.querySelector('.side.shown')");
    assert_eq!(page.evaluate(focused), "Open the menu");
    assert_eq!(
        page.evaluate("document.querySelector('.main').inert"),
        false
    );
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn nothing_moves_where_motion_is_not_wanted() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    let moves = "[...document.querySelectorAll('*')].filter((one) => { const style = getComputedStyle(one); return style.animationName !== 'none' || style.transitionDuration.split(', ').some((time) => time !== '0s'); }).length";
    assert!(
        page.evaluate(moves).as_u64().unwrap() > 0,
        "usually something does"
    );
    let feature = json!({ "name": "prefers-reduced-motion", "value": "reduce" });
    page.call(
        "Emulation.setEmulatedMedia",
        json!({ "features": [feature] }),
    );
    page.until(&format!("{moves} === 0"));
    check(&page, &home);
}

/// The colours of one scheme: the variables of a `:root` block.
fn colours(block: &str) -> BTreeMap<&str, [u8; 3]> {
    let block = &block[..block.find('}').unwrap()];
    let mut found = BTreeMap::new();
    for line in block.lines() {
        let Some((name, value)) = line.trim().trim_end_matches(';').split_once(": #") else {
            continue;
        };
        let digits: String = match value.len() {
            3 => value.chars().flat_map(|digit| [digit, digit]).collect(),
            _ => value.to_owned(),
        };
        let part = |place| u8::from_str_radix(&digits[place..place + 2], 16).unwrap();
        found.insert(name.trim_start_matches('-'), [part(0), part(2), part(4)]);
    }
    found
}

/// WCAG 2.2, "relative luminance".
fn luminance(colour: [u8; 3]) -> f64 {
    let linear = |part: u8| match f64::from(part) / 255.0 {
        part if part <= 0.04045 => part / 12.92,
        part => ((part + 0.055) / 1.055).powf(2.4),
    };
    let [red, green, blue] = colour.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// WCAG 2.2, "contrast ratio".
fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Needs no browser.
#[test]
fn colours_keep_their_contrast() {
    let mut blocks = STYLE.split(":root {").skip(1);
    let light = colours(blocks.next().unwrap());
    let dark = colours(blocks.next().unwrap());
    // What is written on what (at least 4.5), and edges of controls (at least 3).
    let texts = [
        (
            "text",
            &["ground", "raised", "sunk", "accent-soft", "danger-soft"][..],
        ),
        ("quiet", &["ground", "raised", "sunk"]),
        ("accent", &["ground", "raised", "sunk", "accent-soft"]),
        ("danger", &["ground", "raised", "sunk", "danger-soft"]),
        ("good", &["ground", "raised", "sunk"]),
        ("code-number", &["sunk"]),
        ("code-name", &["sunk"]),
        ("on-accent", &["accent"]),
        ("ground", &["text"]),
    ];
    for (scheme, colours) in [("light", light), ("dark", dark)] {
        for (ink, papers) in texts {
            for paper in papers {
                let ratio = contrast(colours[ink], colours[paper]);
                println!("{scheme}: {ink} on {paper}: {ratio:.2}");
                assert!(ratio >= 4.5, "{scheme}: {ink} on {paper}: {ratio:.2}");
            }
        }
        // The edge of a field is so much of `quiet`, the rest of `line`.
        let edge = std::array::from_fn(|place| {
            let mixed = 0.65 * f64::from(colours["quiet"][place])
                + 0.35 * f64::from(colours["line"][place]);
            mixed.round() as u8
        });
        for paper in ["ground", "raised"] {
            let ratio = contrast(edge, colours[paper]);
            println!("{scheme}: a field's edge on {paper}: {ratio:.2}");
            assert!(
                ratio >= 3.0,
                "{scheme}: a field's edge on {paper}: {ratio:.2}"
            );
        }
    }
}
