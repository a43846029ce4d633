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
        <blockquote><p>a<p>b</blockquote>c | > a¶¶> b¶¶c
        <pre><code>fn a() {¶    b &lt; c;¶}¶</code></pre>after <code>x</code><code></code>. | ```¶fn a() {¶    b < c;¶}¶```¶¶after `x`.
        <a href='/x'>one</a> <a href=y>two</a> | one two
        <img src=x alt='A cat'> <img src=y alt=''> | [image: A cat]
        a<!-- no --><!doctype x><?php no ?>b | ab
        <script>if (a < b) '</p>'</script>a<style>p{}</style> | a
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
    ] {
        page(&unit.repeat(300_000 / unit.len()));
    }
    // The square of what it should be would take hours.
    assert!(spent() - before < 60, "{} s", spent() - before);
}
