//! GET /metrics, read as strictly as Prometheus's format is written down.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use support::eventually;
use support::home::Home;
use support::http::{Answer, get, post};
use support::model::Model;
use support::socket::exchange;

/// The samples of a text, by name and labels. Checks that every family has one
/// HELP and one TYPE before its samples, that names and labels are well formed,
/// that no sample comes twice, and that histograms add up.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut families: Vec<(String, String)> = Vec::new();
    let mut seen = HashSet::new();
    let mut helped = None;
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap();
            assert!(seen.insert(name.to_owned()), "{name} comes twice");
            assert!(is_name(name) && !words.is_empty(), "{line}");
            helped = Some(name.to_owned());
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(helped.take().as_deref(), Some(name), "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            families.push((name.to_owned(), kind.to_owned()));
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = check_series(series);
            let (family, kind) = families.last().expect("a family comes first");
            let suffix = name.strip_prefix(family.as_str()).expect(line);
            let fits = match kind.as_str() {
                "histogram" => ["_bucket", "_sum", "_count"].contains(&suffix),
                kind => suffix.is_empty() && (kind != "counter" || name.ends_with("_total")),
            };
            assert!(fits, "{line}");
            let value: f64 = value.parse().unwrap();
            assert!(samples.insert(series.to_owned(), value).is_none(), "{line}");
        }
    }
    for (family, _) in families.iter().filter(|(_, kind)| kind == "histogram") {
        check_histogram(text, family, &samples);
    }
    samples
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|letter| letter.is_ascii_lowercase() || letter == '_')
}

/// Checks the labels of a series; returns its name.
fn check_series(series: &str) -> &str {
    let Some((name, labels)) = series.split_once('{') else {
        assert!(is_name(series), "{series}");
        return series;
    };
    assert!(is_name(name), "{series}");
    for label in labels.strip_suffix('}').unwrap().split(',') {
        let (label, value) = label.split_once('=').unwrap();
        let value = value.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
        assert!(
            is_name(label) && !value.contains(['"', '\\', '\n']),
            "{series}"
        );
    }
    name
}

fn check_histogram(text: &str, family: &str, samples: &BTreeMap<String, f64>) {
    let prefix = format!("{family}_bucket{{le=\"");
    let buckets: Vec<(f64, f64)> = text
        .lines()
        .filter_map(|line| line.strip_prefix(prefix.as_str()))
        .map(|rest| {
            let (bound, count) = rest.split_once("\"} ").unwrap();
            let bound = bound.replace("+Inf", "inf");
            (bound.parse().unwrap(), count.parse().unwrap())
        })
        .collect();
    let is_rising = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
    assert!(buckets.windows(2).all(is_rising), "{family}: {buckets:?}");
    let last = buckets.last().unwrap();
    assert_eq!(last.0, f64::INFINITY);
    assert_eq!(last.1, samples[&format!("{family}_count")]);
    assert!(samples.contains_key(&format!("{family}_sum")));
}

fn scrape(home: &Home) -> Answer {
    get(home.address(), "/metrics")
}

#[test]
fn what_happens_is_measured() {
    let model = Model::saying("fine");
    let home = Home::start(model.config_with(json!({ "metrics": { "enabled": true } })));
    let before = parse(&scrape(&home).body);
    assert_eq!(before["hearth_turns_ended_total{state=\"done\"}"], 0.0);

    let mut client = home.admin();
    client.chat("hello");
    client.chat("hello again");
    // A turn still counts as running while its reply is sent, and a connection
    // until the server notices its end.
    let (answer, after) = eventually("the turns and connections have ended", || {
        let answer = scrape(&home);
        let after = parse(&answer.body);
        let is_quiet = after["hearth_turns{state=\"running\"}"] == 0.0
            && after["hearth_connections{transport=\"http\"}"] == 1.0;
        is_quiet.then_some((answer, after))
    });
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
    for (series, expected) in [
        ("hearth_turns_ended_total{state=\"done\"}", 2.0),
        ("hearth_turns{state=\"running\"}", 0.0),
        ("hearth_turn_duration_seconds_count", 2.0),
        ("hearth_model_request_duration_seconds_count", 2.0),
        ("hearth_model_tokens_total{kind=\"input\"}", 20.0),
        ("hearth_model_tokens_total{kind=\"output\"}", 10.0),
        ("hearth_connections{transport=\"websocket\"}", 1.0),
        ("hearth_connections{transport=\"http\"}", 1.0),
        ("hearth_queue_depth{queue=\"turns\"}", 0.0),
        ("hearth_database_writable", 1.0),
    ] {
        assert_eq!(after[series], expected, "{series}");
    }
    assert!(after["hearth_database_bytes"] > 0.0);
    assert!(after["hearth_writer_batch_jobs_count"] > 0.0);
}

#[test]
fn it_is_off_unless_wanted_and_not_for_everybody() {
    let home = Home::offline();
    assert_eq!(scrape(&home).status, 404);

    let token = "a token for the scraper";
    let home = Home::start(json!({ "metrics": { "enabled": true, "token": token } }));
    assert_eq!(scrape(&home).status, 401);
    for (token, status) in [(token, "200"), ("another", "401")] {
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: hearth\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\n\r\n"
        );
        let answer = exchange(home.address(), request.as_bytes());
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{answer}");
    }
    assert_eq!(
        post(home.address(), "/metrics", &[], &Value::Null).status,
        405
    );
}
