//! Replies as people see them: tables, tasks, footnotes, code and formulas.

use std::time::{Duration, Instant};

use serde_json::json;

use super::chromium::Chromium;
use super::pages::look;
use super::{LAST_REPLY, check, say, sign_in};
use support::home::Home;
use support::model::{Act, Model};

const REPLY: &str = include_str!("rendering.md");
/// Longer than any text takes that takes linear time, on a busy machine.
const LINEAR: Duration = Duration::from_secs(25);

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn replies_show_tables_tasks_footnotes_code_and_formulas() {
    let model = Model::saying(REPLY);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.size(390, 844);
    say(&mut page, "Tell me of the week");
    page.until(&format!("{LAST_REPLY}?.querySelector('.footnotes')"));
    page.evaluate(&format!("window.reply = {LAST_REPLY}"));

    // No word of a table is broken: what does not fit is scrolled to.
    let day =
        "[...reply.querySelectorAll('td')].find((one) => one.textContent === 'thunderstorms')";
    page.evaluate(&format!(
        "window.lines = (one) => {{ const range = document.createRange(); range.selectNodeContents(one); return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size; }}; window.day = {day}"
    ));
    assert_eq!(page.evaluate("lines(day)"), 1);
    let scrolls = "(() => { const table = reply.querySelector('.table'); return table.scrollWidth > table.clientWidth && document.documentElement.scrollWidth <= innerWidth; })()";
    assert_eq!(page.evaluate(scrolls), true);
    assert_eq!(
        page.evaluate("[...reply.querySelectorAll('tbody tr:first-child td')].slice(0, 4).map((one) => getComputedStyle(one).textAlign)"),
        json!(["start", "center", "center", "right"])
    );
    assert_eq!(
        page.evaluate("[...reply.querySelectorAll('td code')].map((one) => one.textContent)"),
        json!(["dry | warm"])
    );

    assert_eq!(
        page.evaluate("[...reply.querySelectorAll('.task > .box')].map((one) => one.getAttribute('aria-label'))"),
        json!(["Done:", "To do:", "To do:"])
    );
    let sums = "[...reply.querySelectorAll('p')].some((one) => one.textContent.startsWith('Costs $5 now and $10 later. Both at once, and a line\\nthat'))";
    assert_eq!(page.evaluate(sums), true);
    assert_eq!(
        page.evaluate("reply.querySelector('strong > em').textContent"),
        "Both"
    );

    // From the text to the note and back, by keyboard.
    page.evaluate("reply.querySelector('.mark').focus()");
    page.press("Enter", 0);
    page.until("document.activeElement.matches('.footnotes li') && document.activeElement.textContent.startsWith('28 inches')");
    page.evaluate("document.activeElement.querySelector('.back').click()");
    assert_eq!(
        page.evaluate("document.activeElement === reply.querySelector('.mark')"),
        true
    );

    page.until("reply.querySelectorAll('pre .keyword').length >= 4");
    let code = page.evaluate("[...reply.querySelectorAll('pre')].map((one) => [one.textContent.slice(0, 24), one.querySelectorAll('.comment').length, one.querySelectorAll('.string').length, one.querySelectorAll('.number').length])");
    assert_eq!(
        code,
        json!([
            ["def area(radius: float) ", 1, 1, 2],
            ["fn main() { let name = \"", 0, 2, 1],
            ["plain <b>text</b>", 0, 0, 0],
        ])
    );

    page.until("reply.querySelectorAll('math').length === 4");
    assert_eq!(
        page.evaluate("['mfrac', 'msqrt', 'mroot', 'msup', 'msubsup', 'munderover', 'mtable'].map((one) => reply.querySelectorAll(one).length > 0)"),
        json!([true, true, true, true, true, true, true])
    );
    assert_eq!(
        page.evaluate("[...reply.querySelectorAll('.math > code')].map((one) => one.textContent)"),
        json!(["\\xymatrix{A \\ar[r] & B}"]),
        "what is not known stays as it was written"
    );
    assert_eq!(
        page.evaluate("[...reply.querySelectorAll('h2, h3')].map((one) => one.localName)"),
        json!(["h2", "h3", "h3"])
    );
    page.evaluate("document.querySelector('.scroller').scrollTop = 0");
    look(&mut page, "rendering");
    page.evaluate("document.querySelector('.scroller').scrollTop = 1e6");
    look(&mut page, "rendering-end");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_megabyte_of_anything_takes_linear_time() {
    let model = Model::acting(vec![Act::Say("short\n".repeat(70_000))]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "Many lines");
    page.until(&format!("{LAST_REPLY}?.textContent.length >= 419999"));
    let module = "performance.getEntriesByType('resource').map((one) => one.name).find((one) => one.endsWith('/markdown.js'))";
    page.evaluate(&format!(
        "import({module}).then((module) => window.markdown = module.markdown)"
    ));
    for (name, text) in [
        ("lines", "'a\\n'.repeat(500000)"),
        (
            "backticks",
            "Array.from({ length: 1400 }, (_, place) => '`'.repeat(place + 1)).join(' ')",
        ),
        ("brackets", "'['.repeat(1000000)"),
        ("links", "('['.repeat(990) + '](x) ').repeat(1000)"),
        ("stars", "'*a '.repeat(333333)"),
        ("emphasis", "'*_'.repeat(500000)"),
        ("lists", "'- a\\n'.repeat(250000)"),
        ("dollars", "'$a b'.repeat(250000)"),
        ("formulas", "'$$\\n'.repeat(333333)"),
        (
            "tables",
            "'|a|b|\\n|---|---|\\n' + '|a|b|\\n'.repeat(160000)",
        ),
        ("footnotes", "'[^1]: a\\n[^1] b\\n'.repeat(60000)"),
        ("addresses", "'http://['.repeat(125000)"),
    ] {
        let begun = Instant::now();
        page.evaluate(&format!("void markdown({text})"));
        println!("{name}: {} ms", begun.elapsed().as_millis());
        assert!(begun.elapsed() < LINEAR, "{name}: {:?}", begun.elapsed());
    }
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn what_has_too_many_parts_is_plain_text_from_there_on() {
    let model = Model::saying("$x$ | y");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "A formula");
    page.until(&format!("{LAST_REPLY}?.querySelector('math')"));
    let module = "performance.getEntriesByType('resource').map((one) => one.name).find((one) => one.endsWith('/markdown.js'))";
    page.evaluate(&format!(
        "import({module}).then((module) => void Object.assign(window, module))"
    ));
    page.evaluate(&format!("window.reply = {LAST_REPLY}"));
    for (name, text) in [
        ("headings", "'# a\\n'.repeat(250000)"),
        ("rules", "'***\\n'.repeat(250000)"),
        ("paragraphs", "'a\\n\\n'.repeat(333333)"),
        ("code", "'`a '.repeat(333333)"),
        ("items", "'- a\\n'.repeat(250000)"),
        ("rows", "'|a|b|\\n|---|---|\\n' + '|a|b|\\n'.repeat(160000)"),
        ("quotes", "'> a\\n>\\n'.repeat(140000)"),
        (
            "matrices",
            "('$$' + '\\\\begin{matrix}a^'.repeat(40) + 'a' + '\\\\end{matrix}'.repeat(40) + '$$\\n\\n').repeat(800)",
        ),
    ] {
        page.evaluate(&format!("window.text = {text}; 0"));
        let begun = Instant::now();
        let elements = page.evaluate("reply.replaceChildren(...markdown(text)); reply.getBoundingClientRect(); reply.querySelectorAll('*').length");
        println!("{name}: {elements} elements, {:?}", begun.elapsed());
        assert!(elements.as_u64().unwrap() < 25_000, "{name}: {elements}");
        assert_eq!(
            page.evaluate("[...reply.querySelectorAll('.note')].map((one) => one.textContent)"),
            json!(["The rest is shown as plain text: the message has too many parts."]),
            "{name}"
        );
        // Nothing is lost, and what arrives in pieces looks the same.
        assert_eq!(
            page.evaluate("reply.textContent.replace(/\\s/g, '').length > text.replace(/[\\s#*>`$|-]/g, '').length * 0.9"),
            true,
            "{name}"
        );
        page.evaluate("write(reply, text.slice(0, 500000)); write(reply, text); window.pieces = reply.textContent; window.once = document.createElement('div'); write(once, text); 0");
        assert_eq!(page.evaluate("pieces === once.textContent"), true, "{name}");
    }

    // A long word stays in its cell, and a row has no more cells than the head.
    page.evaluate("reply.replaceChildren(...markdown('|a|b|\\n|:-:|---|\\n|' + 'long'.repeat(40) + '|b|extra|')); 0");
    assert_eq!(
        page.evaluate(
            "[...reply.querySelectorAll('td')].map((one) => one.scrollWidth <= one.clientWidth)"
        ),
        json!([true, true])
    );
    page.evaluate("reply.replaceChildren()");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn what_is_written_stays_while_more_is_written() {
    let first = "one **bold**\n\n```js\nlet a = 1;\n```\n\n- x\n\n- y\n\nlast";
    let model = Model::acting(vec![Act::Pause(format!(
        "{first} and more words than before, so that there are two halves of this, of which the first ends behind the list"
    ))]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "write");
    page.until("document.querySelector('.live pre .keyword')");
    page.evaluate("window.block = document.querySelector('.live pre'); window.live = document.querySelector('.live .text')");
    page.evaluate("getSelection().selectAllChildren(block)");
    model.release();
    page.until(&format!(
        "{LAST_REPLY}?.textContent.endsWith('behind the list')"
    ));
    assert_eq!(
        page.evaluate("live.contains(block)"),
        true,
        "the block was not made again"
    );
    check(&page, &home);
}
