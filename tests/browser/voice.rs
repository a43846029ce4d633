//! Talking to the assistant in the page, and hearing it: Chromium's own microphone for
//! tests, and a scripted server of speech.

use support::voice::VoiceServer;

use super::*;

const TALK: &str = "document.querySelector('.voice button')";

/// Presses or lets go of the mouse over the button.
fn mouse(page: &mut Page, kind: &str) {
    let place = page.evaluate(&format!(
        "(() => {{ const {{ x, y, width, height }} = {TALK}.getBoundingClientRect(); return [x + width / 2, y + height / 2]; }})()"
    ));
    page.call(
        "Input.dispatchMouseEvent",
        json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 }),
    );
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn what_is_said_is_sent_and_the_reply_is_read_aloud() {
    let server = VoiceServer::hearing("What is for dinner?");
    let model = Model::saying("**Fish**, at six.\n\n```\nnot this\n```");
    let home = Home::start(model.config_with(json!({ "voice": {
        "transcription": { "url": server.url() }, "speech": { "url": server.url() },
    } })));
    let browser = Chromium::start_with(&[
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
    ]);
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.evaluate(
        "window.played = 0; const { start } = AudioBufferSourceNode.prototype;
         AudioBufferSourceNode.prototype.start = function (...rest) { window.played += 1; start.apply(this, rest); }",
    );
    page.until(&format!("{TALK} && !{TALK}.disabled"));
    page.screenshot("voice");
    page.click(".voice button + button");
    page.until(
        "document.querySelector('.voice button + button').getAttribute('aria-pressed') === 'true'",
    );
    mouse(&mut page, "mousePressed");
    page.until(&format!("{TALK}.matches('.recording')"));
    // Longer than a slip of the finger.
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 1500))");
    page.until("document.querySelector('.voice [role=timer]:not([hidden])')?.textContent.startsWith('0:0')");
    page.screenshot("voice-recording");
    mouse(&mut page, "mouseReleased");
    page.until(&format!(
        "{LAST_REPLY}?.textContent.startsWith('Fish, at six.')"
    ));
    page.until("[...document.querySelectorAll('.person .text')].at(-1).textContent === 'What is for dinner?'");
    page.until("window.played === 1");

    let asked = server.asked();
    let recording = &asked[0].body;
    let webm = [0x1a, 0x45, 0xdf, 0xa3];
    assert!(recording.windows(4).any(|four| four == webm), "it is WebM");
    assert!(recording.len() > 2_000, "{} bytes", recording.len());
    let spoken: Value = serde_json::from_slice(&asked[1].body).unwrap();
    assert_eq!(spoken["input"], "Fish, at six.");
    assert_eq!(asked.len(), 2);
    // The model writes for the ear.
    let request = model.requests().remove(0).to_string();
    assert!(request.contains("spoken aloud"), "{request}");

    // One reply, read once more.
    page.click("[role=log] [aria-label='Read aloud']");
    page.until("window.played === 2");
    assert_eq!(server.asked().len(), 3);

    page.size(390, 844);
    page.scheme("dark");
    page.screenshot("voice-phone");
    // By keyboard too; let go at once, it says how.
    page.evaluate(&format!("{TALK}.focus()"));
    page.press(" ", 0);
    page.until("document.querySelector('.toast')?.textContent.includes('Hold the button')");
    assert_eq!(server.asked().len(), 3);
    // With a camera, there is still room to write.
    page.call(
        "Emulation.setTouchEmulationEnabled",
        json!({ "enabled": true }),
    );
    page.reload();
    page.until("document.querySelector('.voice button')?.checkVisibility() && document.querySelector('[aria-label=\"Take a picture\"]').checkVisibility()");
    page.screenshot("voice-touch");
    let width = page.evaluate("document.querySelector('.composer textarea').clientWidth");
    assert!(width.as_u64().unwrap() >= 130, "{width} pixels");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn without_servers_of_speech_there_are_no_buttons_and_without_https_it_says_so() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.until("!document.querySelector('.composer textarea').disabled");
    assert!(page.evaluate("document.querySelector('.voice')").is_null());
    let asked = |page: &Page| page.requests.iter().any(|url| url.ends_with("/voice.js"));
    assert!(!asked(&page));

    let server = VoiceServer::hearing("nothing");
    let home = Home::start(json!({ "voice": { "transcription": { "url": server.url() } } }));
    let port = home.address().port();
    page.open(&format!("http://hearth.lan:{port}/"));
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    page.until(&format!("{TALK} && !{TALK}.disabled"));
    assert!(asked(&page));
    mouse(&mut page, "mousePressed");
    page.until("document.querySelector('.toast')?.textContent.includes('only over https')");
    mouse(&mut page, "mouseReleased");
    assert!(server.asked().is_empty());
}

/// A browser's voices and what they speak, which ends when the test says so.
const VOICES: &str = r#"
    window.spoken = [];
    window.voices = [];
    window.SpeechSynthesisUtterance = class extends EventTarget {
        constructor(text) { super(); this.text = text; }
    };
    const speech = Object.assign(new EventTarget(), {
        now: null,
        getVoices: () => voices,
        speak(utterance) { this.now = utterance; spoken.push([utterance.text, utterance.voice.name, utterance.lang]); },
        end(kind, more) { const ended = this.now; this.now = null; ended?.dispatchEvent(Object.assign(new Event(kind), more)); },
        cancel() { this.end("error", { error: "canceled" }); },
    });
    Object.defineProperty(window, "speechSynthesis", { value: speech });
"#;

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn without_a_server_of_speech_a_reply_is_read_by_a_voice_of_the_device() {
    let first = format!("Fisch {}", "und Reis ".repeat(40));
    let reply = format!("**Fisch** {}. Und Brot.", "und Reis ".repeat(40));
    let model = Model::acting(vec![Act::Say(reply)]);
    let home = Home::start(model.config());
    let browser = Chromium::start_with(&["--accept-lang=de-AT,de"]);
    let mut page = browser.page();
    page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({ "source": VOICES }),
    );
    sign_in(&mut page, &home);
    say(&mut page, "Was gibt es?");
    let button = "[role=log] .deeds [aria-label=Vorlesen]";
    page.click(button);
    // The voices come late, and those of another machine would be sent the text.
    page.until("document.querySelector('[role=log] [aria-label=\"Nicht weiter vorlesen\"]')");
    page.evaluate(
        "window.voices = [
            { name: 'Sam', lang: 'en-US', localService: true, default: true },
            { name: 'Far', lang: 'de-AT', localService: false },
            { name: 'Anna', lang: 'de-DE', localService: true },
            { name: 'Resi', lang: 'de_AT', localService: true },
        ]; speechSynthesis.dispatchEvent(new Event('voiceschanged'))",
    );
    page.until("spoken.length === 1");
    page.evaluate("speechSynthesis.end('end')");
    page.until("spoken.length === 2");
    let spoken = page.evaluate("spoken");
    let whole = format!(
        "{} {}",
        spoken[0][0].as_str().unwrap(),
        spoken[1][0].as_str().unwrap()
    );
    assert!(whole.starts_with(first.trim()), "{whole}");
    assert!(whole.ends_with("Und Brot."), "{whole}");
    assert_eq!(spoken[0][1], json!("Resi"));
    assert_eq!(spoken[0][2], json!("de_AT"));
    page.evaluate("speechSynthesis.end('end')");
    page.until(&format!("document.querySelector('{button}')"));

    // A second press stops it, and so does going elsewhere.
    page.click(button);
    page.until("spoken.length === 3");
    page.click("[role=log] [aria-label='Nicht weiter vorlesen']");
    page.until(&format!(
        "document.querySelector('{button}') && !speechSynthesis.now"
    ));
    page.click(button);
    page.until("spoken.length === 4");
    page.evaluate("location.hash = '#/lists'");
    page.until("!speechSynthesis.now");
    page.evaluate("history.back()");
    page.evaluate("window.voices = []");
    page.click(button);
    page.until(
        "document.querySelector('.toast')?.textContent.includes('keine Stimme für Deutsch')",
    );
    page.until(&format!("document.querySelector('{button}')"));
    check(&page, &home);
}
