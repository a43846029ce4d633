mod pages;

use super::markdown::MAX_LINKS;
use super::*;
use rustix::time::{ClockId, clock_gettime};

use base::testing::rows;

fn text(html: &str) -> String {
    page(html).text
}

#[test]
fn what_a_page_says_becomes_lines() {
    // `¶` is a line break.
    let table = r#"
        plain  text¶ here | plain text here
        <p>One<p>Two | One¶¶Two
        <h1>Top</h1>text<h3> Sub </h3>more | # Top¶¶text¶¶### Sub¶¶more
        a<br>b<br/>c<br><br><br>d | a¶b¶c¶¶d
        x<b>y</b> z<i> w</i> | xy z w
        <ul><li>a<li><p>b</p></li><li></li><li>c<ol start=3><li>d</li><li>e</li></ol></ul>f | - a¶- b¶- c¶  3. d¶  4. e¶¶f
        <dl><dt>T<dd>D</dl> | T¶  D
        <table><tr><th>a<th>b<tr><td>1</td> <td><b>2</b></td></tr></table> | a \ b¶1 \ 2
        <table><tr><td>a<br>b<td><ul><li>c<li>d</ul></table> | a b \ c d
        <h2>Coffee<br>house</h2> | ## Coffee house
        <table><tr><td rowspan=2>Mon<td>9<tr><td>10<tr><td>Tue<td>11</table> | Mon \ 9¶Mon \ 10¶Tue \ 11
        <table><tr><td>9<td rowspan=0>x y<td>1<tr><td>10<td>2<tr><td colspan=2>11</table> | 9 \ x y \ 1¶10 \ x y \ 2¶11
        <table><tr><td>9<td rowspan=3>all<tr><td>10<tr><td>11</table> | 9 \ all¶10 \ all¶11 \ all
        <table><tr><td rowspan=2><h2>Old</h2><p>page</p></td></tr></table> | ## Old¶¶page
        <blockquote><p>a<p>b</blockquote>c | > a¶¶> b¶¶c
        <pre><code>fn a() {¶    b &lt; c;¶}¶</code></pre>after <code>x</code><code></code>. | ```¶fn a() {¶    b < c;¶}¶```¶¶after `x`.
        <a href='/x'>one</a> <a href=y>two</a> | one two
        <img src=x alt='A cat'> <img src=y alt=''> | [image: A cat]
        a<!-- no --><!doctype x><?php no ?>b | ab
        <script>if (a < b) '</p>'</script>a<style>p{}</style> | a
        <table><tr><td>a<td><svg role=img aria-label=Yes><text>no</text></svg></table> | a \ [image: Yes]
        <svg><title>no</title><text>no</text></svg>yes | yes
        1 < 2 & 3 > 2 <3 | 1 < 2 & 3 > 2 <3
        <p title='a > b'>x</p><p data-a="<p>">y</p> | x¶¶y
        &amp;lt; &eacute;&#233;&#xE9; &euro;&#128; &nope; &amp &#0; &#x110000; | &lt; ééé €€ &nope; & � �
        <div hidden>no</div><span aria-hidden=true>no</span><p>yes | yes
        <select><option>no</select><button>no</button><p>yes | yes
    "#;
    for [html, expected] in rows(table) {
        let html = &html.replace('¶', "\n");
        let expected = expected.replace('¶', "\n").replace('\\', "|");
        assert_eq!(text(html), expected, "{html}");
    }
    assert_eq!(text(""), "");
    assert_eq!(text("a&nbsp;&nbsp;b\u{200B}\u{202E}c&shy;d"), "a bcd");
}

#[test]
fn the_main_part_is_taken_where_it_is_marked() {
    let long = "The boiler was repaired. ".repeat(20);
    let long = long.trim_end();
    let around = |main: &str| {
        format!(
            "<html><head><title>The &quot;Boiler&quot;\n News</title></head><body>\
             <header>Logo</header><nav><ul><li>Home</ul></nav>{main}\
             <aside>Advertisement</aside><footer>Imprint</footer></body>"
        )
    };
    for main in [
        format!("<div>Menu</div><main><nav>Contents</nav><p>{long}</main><div>Cookies</div>"),
        format!("<div>Menu</div><div role=\"main\"><div></div><p>{long}</div><div>Cookies</div>"),
        format!("<p>{long}</p>"),
        // Nothing but a stub is marked.
        format!("<main>x</main><p>{long}</p>").replace("<main>x</main>", "<main></main>"),
    ] {
        let page = page(&around(&main));
        assert_eq!(page.text, long, "{main}");
        assert_eq!(page.title, "The \"Boiler\" News");
    }
    // The headline of an article is not the site's banner.
    let article = format!("<article><header><h1>News</h1></header>{long}</article>");
    assert_eq!(text(&around(&article)), format!("# News\n\n{long}"));
}

#[test]
fn a_broken_page_still_says_something() {
    let long = "word ".repeat(100);
    let long = long.trim_end();
    assert_eq!(
        text(&format!("<nav>menu<p>{long}")),
        format!("menu\n\n{long}")
    );
    assert_eq!(text("<p>one<!-- never closed <p>two"), "one");
    assert_eq!(text("one<script>never closed"), "one");
    assert_eq!(
        text("one<p class=\"never closed>two</p><p>three"),
        "one\n\ntwo\n\nthree"
    );
    assert_eq!(text("one <b"), "one <b");
    let app = "<head><meta name=description content='All about   boilers &amp; pipes'></head>\
               <div id=app></div><noscript>Please enable JavaScript.</noscript>";
    assert_eq!(
        text(app),
        "All about boilers & pipes\n\nPlease enable JavaScript."
    );
}

#[test]
fn hidden_text_never_comes_out() {
    let sheet = "<style>/* a */ .gone, h2 .x{display:none}.far{position:absolute;left:-9999px}\
                 .flat{width:1px;height:1px;overflow:hidden}@media print{.seen{display:none}}\
                 .tab{display:none} .tab.open{display:block}.fades{opacity:0}</style>";
    for hidden in [
        "<div hidden>SECRET</div>",
        "<div hidden>SECRET<div>SECRET</div>SECRET</div>",
        "<div ARIA-HIDDEN='TRUE'>SECRET</div>",
        "<p style='display:none'>SECRET",
        "<ul><li>a<li style='Display : None !important'>SECRET<li>b</ul>",
        "<table><tr><td>a<td hidden>SECRET<tr><td>b</table>",
        "<span style='visibility: hidden'>SECRET</span>",
        "<b style='font-size:0'>SECRET</b>",
        "<b style='font-size: 1px'>SECRET</b>",
        "<i style='opacity:0.0'>SECRET</i>",
        "<div style='position:absolute; left:-10000px'>SECRET</div>",
        "<div style='position:fixed;top:-100em'>SECRET</div>",
        "<div style='text-indent:-9999px'>SECRET</div>",
        "<div style='clip:rect(0,0,0,0);position:absolute'>SECRET</div>",
        "<div style='height:0;overflow:hidden'>SECRET</div>",
        "<div style='color:#fff;background:#FFF'>SECRET</div>",
        "<div class='a gone'>SECRET</div>",
        "<div class=far>SECRET</div>",
        "<div class=flat>SECRET</div>",
        "<span class='sr-only'>SECRET</span>",
        "<div class=d-none>SECRET</div>",
        "<svg hidden role=img aria-label=SECRET></svg>",
        "<main hidden>SECRET</main>",
        "<template>SECRET</template>",
        "<noscript>SECRET</noscript>",
        "<!-- SECRET -->",
        "<article><div style='display:none'>SECRET<p>SECRET</div></article>",
        // Tags that end nothing, as in a browser.
        "<div hidden><table><tr><td></div>SECRET</table></div>",
        "<p hidden><button><div></div></button>SECRET</p>",
        "<span hidden><div></span>SECRET</div></span>",
        "<div hidden><a><div><a></a></div>SECRET</div>",
        "<section hidden><ul><li><section><li></section>SECRET</ul></section>",
        // Never closed: a browser shows nothing of it, either.
        "<div hidden>SECRET",
    ] {
        let long = "The boiler was repaired. ".repeat(20);
        let found = text(&format!("{sheet}<p>{long}</p>{hidden}"));
        assert!(found.starts_with("The boiler"), "{hidden}: {found}");
        assert!(!found.contains("SECRET"), "{hidden}: {found}");
    }
    for shown in [
        "<p class=seen>shown</p>",
        "<div class=tab>shown</div>",
        "<p class=fades>shown</p>",
        "<p class='hidden md:block'>shown</p>",
        "<p style='top:-10px;opacity:1;width:1px;left:0'>shown</p>",
        "<body style='opacity:0'>shown",
        // Words for a figure that is drawn.
        "<span class=sr-only>4.90 shown</span><span aria-hidden=true>4<sup>90</sup></span>",
    ] {
        let found = text(&format!("{sheet}{shown}"));
        assert!(found.contains("shown"), "{shown}: {found}");
    }
}

#[test]
fn noise_is_left_out_unless_it_is_all_there_is() {
    let long = "The boiler was repaired. ".repeat(20);
    let long = long.trim_end();
    let links =
        "<ul><li><a href=/1>One more</a><li><a href=/2>Two more</a><li><a href=/3>Three</a></ul>";
    for noise in [
        "<div role=navigation>NOISE</div>",
        "<nav>NOISE</nav>",
        "<footer>NOISE</footer>",
        "<header>NOISE</header>",
        "<div role=dialog>NOISE</div>",
        "<aside>NOISE</aside>",
        &links.replace("One", "NOISE"),
    ] {
        let found = text(&format!("<div><p>{long}</p>{noise}</div><p>End."));
        assert!(
            found.starts_with(long) && found.ends_with("End."),
            "{noise}: {found}"
        );
        assert!(!found.contains("NOISE"), "{noise}: {found}");
    }
    for content in [
        "<form><input type=email><textarea></textarea><p>CONTENT</p></form>",
        "<ul><li><a href=/1>Old Bridge</a> (1802, CONTENT)<li><a href=/2>New</a> (1931)<li><a href=/3>Rail</a> (1888)</ul>",
        "<ul><li><a href=tel:1>CONTENT</a><li><a href=mailto:a@b>a@b</a><li><a href=tel:2>2</a></ul>",
        "<h3><button aria-expanded=false>CONTENT</button></h3>",
        "<button>May I CONTENT?</button>",
        "<blockquote><footer>CONTENT</footer></blockquote>",
    ] {
        let found = text(&format!("<div><p>{long}</p></div>{content}<p>End."));
        assert!(found.contains("CONTENT"), "{content}: {found}");
    }
    // An index is nothing but links.
    assert!(text(&links.repeat(10)).contains("Two more"));
}

#[test]
fn data_are_told_in_lines() {
    let long = "The boiler was repaired. ".repeat(20);
    let with = |kind: &str, json: &str| {
        text(&format!(
            "<script type='{kind}'>{json}</script><p>{long}</p>"
        ))
    };
    let table = r#"
        {"@type":"Library","openingHours":["Mo-Fr 09:00-18:00"],"telephone":"1","url":"https://x/"} | Library¶- opening hours: Mo-Fr 09:00-18:00¶- telephone: 1
        {"@type":"Product","name":"Kettle","offers":{"@type":"Offer","price":64.9,"priceCurrency":"EUR","availability":"https://schema.org/InStock"}} | Product: Kettle¶- offers: price: 64.9 EUR, availability: InStock
        {"@graph":[{"@type":"WebSite","name":"no"},{"@type":["Recipe","Thing"],"prepTime":"PT1H30M","description":"The boiler was repaired. The boiler was repaired."}]} | Recipe¶- prep time: PT1H30M
        {"@type":"FAQPage","mainEntity":[{"@type":"Question","name":"Why?","acceptedAnswer":{"@type":"Answer","text":"<p>So &amp; so.</p>"}}]} | Question: Why?¶- accepted answer: So & so.
        {"@type":"Event","startDate":"2026-06-12T18:50:00-04:00","location":{"@type":"Place","name":"Pump House","address":{"streetAddress":"4 Row"}}} | Event¶- start date: 2026-06-12T18:50:00-04:00¶- location: Pump House, 4 Row
    "#;
    for [json, expected] in rows(table) {
        let expected = expected.replace('¶', "\n");
        let found = with("application/ld+json", json);
        let start = format!("[data of the page]\n{expected}\n[end of data]\n\nThe boiler");
        assert!(found.starts_with(&start), "{json}: {found}");
    }
    for json in [
        "{\"@type\":\"Organization\",\"name\":\"x\"}",
        "{",
        "[]",
        "7",
        "",
    ] {
        assert_eq!(with("application/ld+json", json), long.trim_end());
    }
    // A script's own data count only where there is nothing else.
    let json = "{\"props\":{\"pool\":{\"id\":\"a8\",\"name\":\"Lido\",\"entryPrice\":5.8}}}";
    assert_eq!(with("application/json", json), long.trim_end());
    let empty = "<div id=root></div><noscript>Enable scripts.</noscript>";
    for script in [
        format!("<script type='application/json'>{json}</script>"),
        format!("<script>window.__STATE__ = {json};</script>"),
    ] {
        let found = text(&format!("{empty}{script}"));
        assert_eq!(found, "- props: pool: Lido, entry price: 5.8");
    }
    // However much there is.
    let list = vec!["\"all of this is about bread and more bread\""; 9_000].join(",");
    let much = format!(
        "{{\"@type\":\"Recipe\",\"step\":[{list}],\"a\":{}1{}}}",
        "[".repeat(120),
        "]".repeat(120)
    );
    assert!(with("application/ld+json", &much).len() < 7_000);
}

#[test]
fn links_are_kept_beside_the_text() {
    let page = page(
        "<base href='https://a.example/'><h2><a href='/news?a=1&amp;b=2'>News  today</a></h2>\
         <a href='#top'>up</a><a href='javascript:x()'>script</a><a href='mailto:a@b'>mail</a>\
         <a href='HTTPS://b.example/'><img alt='Logo'></a><a href='/empty'></a><a name=x>none</a>\
         <ul><li><a href='c:d/e'>odd</a><li><a href='x?a:b'>query</a></ul>",
    );
    assert_eq!(page.base.as_deref(), Some("https://a.example/"));
    let links: Vec<(&str, &str)> = page
        .links
        .iter()
        .map(|(label, address)| (label.as_str(), address.as_str()))
        .collect();
    assert_eq!(
        links,
        [
            ("News today", "/news?a=1&b=2"),
            ("[image: Logo]", "HTTPS://b.example/"),
            ("query", "x?a:b"),
        ]
    );
    let many = page_of_links(500);
    assert_eq!(super::page(&many).links.len(), MAX_LINKS);
}

fn page_of_links(count: usize) -> String {
    "<a href=x>y</a> ".repeat(count)
}

#[test]
fn bytes_become_text_by_their_encoding() {
    let meta = b"<meta charset=\"ISO-8859-1\">\xE9\x80";
    for (bytes, content_type, expected) in [
        (&b"caf\xC3\xA9"[..], "text/html; charset=utf-8", "café"),
        (
            b"caf\xE9 \x93x\x94",
            "text/html; charset=iso-8859-1",
            "café “x”",
        ),
        (b"caf\xE9 \x80", "text/html", "café €"),
        (b"caf\xC3\xA9", "text/html; charset=ISO-8859-1", "café"),
        (b"\xA4", "text/plain;charset=\"ISO-8859-15\"", "€"),
        (b"\xEF\xBB\xBFx", "", "x"),
        (b"\xFF\xFEx\0\xAC\x20", "", "x€"),
        (b"\xFE\xFF\0x", "", "x"),
        (meta, "text/html", "<meta charset=\"ISO-8859-1\">é€"),
        (
            b"\x82\xA0",
            "text/html; charset=shift_jis",
            "\u{FFFD}\u{FFFD}",
        ),
        (
            b"long enough to be sure \xC3",
            "",
            "long enough to be sure \u{FFFD}",
        ),
    ] {
        assert_eq!(decode(bytes, content_type), expected, "{content_type}");
    }
}

#[test]
fn hostile_pages_take_time_in_proportion() {
    // Of this thread alone: what else the machine does takes none of it.
    let spent = || clock_gettime(ClockId::ThreadCPUTime).tv_sec;
    let before = spent();
    for unit in [
        "<",
        "<a",
        "<a ",
        "<a \"",
        "<a b=\"",
        "<a b=\"><",
        "</",
        "</a",
        "<!--",
        "<script>",
        "<title>",
        "&",
        "&#",
        "<ul><li>",
        "<blockquote>",
        "<pre>\n",
        "<div hidden>",
        "<nav>",
        "<table><td>",
        "<a href=x>",
        "</code><code>",
        "<main>",
        "<svg>",
        "<p =",
        "\u{1F3E0}<b\u{E9}",
        "<div><a href=x>y</a></div>",
        "</div><ul>",
        "<p hidden>",
        "<li hidden><ul>",
        "<style>.a{",
        "<style>.a{display:none}</style>",
        "<p class='a-b c-d' style='a:b;c:d'>",
        "<script type=application/ld+json>{",
        "<header>",
        "<a href=x><div>",
        "<td rowspan=9 colspan=9>x",
        "<table><tr><td rowspan=0>long cell",
        "<tr>",
        "<p style='color:a;color:b'>",
        "[",
    ] {
        page(&unit.repeat(150_000 / unit.len()));
    }
    for unit in [
        "\"a long text that is not in the page's text\":1,",
        "[",
        "{\"a\":",
    ] {
        let much = unit.repeat(150_000 / unit.len());
        page(&format!(
            "<script type=application/ld+json>{{\"@type\":\"x\",{much}\"b\":2}}</script>{much}"
        ));
    }
    // The square of what it should be would take hours.
    assert!(spent() - before < 60, "{} s", spent() - before);
}
