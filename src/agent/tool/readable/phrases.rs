//! What headings, links and buttons say that are not about the page's subject, in
//! several languages. A phrase is the beginning of a text, up to the end of a word;
//! with `*`, of a part of a word.

/// Headings over links to other pages.
const ELSEWHERE: &str = "\
    subscribe to our; sign up for our; sign up to our; join our newsletter; read also; \
    abonnez-vous; suscríbete; abonnieren sie; related; more from; more events; more stories; more like this; more on this; more in; \
    read next; up next; you may also; you might; you'll love; recommended; people also; \
    customers also; customers who; others also; other events you; frequently bought; \
    recently viewed; most read; most viewed; most popular; trending; popular posts; \
    latest news; latest posts; recent posts; sponsored; around the web; from our partners; \
    don't miss; lesen sie auch; das könnte; auch interessant; mehr zum thema; mehr aus; \
    mehr von; meistgelesen*; verwandte*; ähnliche*; kunden kauften; weitere artikel; \
    weitere themen; zuletzt angesehen; unsere empfehlung; à lire aussi; à lire également; \
    sur le même sujet; articles liés; articles similaires; vous aimerez; vous pourriez; \
    les plus lus; te puede interesar; también te; lo más leído; artículos relacionados; \
    productos relacionados; noticias relacionadas; leggi anche; potrebbe interessarti; \
    potrebbero interessarti; articoli correlati; i più letti; lees ook; gerelateerd*; \
    meer over; les også; relater*; mest lest; mest læst; læs også; läs också; läs mer om; \
    mest läst; lue myös; leia também; veja também; mais lidas; czytaj także; przeczytaj; \
    читайте также; похожие; 関連; おすすめ; 人気記事; アクセスランキング; あわせて読みたい; 相关阅读; 相关文章; 相关推荐; 猜你喜欢; \
    推荐阅读; 热门; 相關; 관련 기사; 관련기사; 추천";
/// Headings that say it alone.
const ELSEWHERE_ALONE: &str = "\
    newsletter; related; read more; more; see more; mehr; tags; topics; share";
/// What links say that do something with the page.
const ACTIONS: &str = "\
    skip to; jump to content; jump to navigation; zum inhalt; zum hauptinhalt; \
    aller au contenu; saltar al; ir al contenido; vai al contenuto; naar de inhoud; \
    hopp til; gå til hoved*; hoppa till; share on; share via; share this; tweet this; \
    pin it; auf facebook teilen; teilen auf; artikel teilen; partager sur; compartir en; \
    condividi su; deel op; del på; dela på; シェア; ツイート; 分享到; follow us; folgen sie uns; \
    suivez-nous; síguenos; følg oss; back to top; nach oben; edit this page; report this; \
    print this; sign in; log in; subscribe; cookie settings; cookie policy; privacy policy";
/// Links that say it alone.
const ACTIONS_ALONE: &str = "\
    share; tweet; print; email; e-mail; facebook; whatsapp; linkedin; pinterest; teilen; drucken; \
    partager; imprimer; compartir; imprimir; condividi; stampa; delen; del; dela";
/// Words of texts that ask for consent.
const TRACKING: &str = "\
    cookie; informasjonskaps; informationskaps; evästee; クッキー; your privacy; datenschutz; \
    vie privée; privacidad; personvern; файлы; 隐私";
/// What the buttons beside them say.
const CONSENT: &str = "\
    accept; i accept; agree; i agree; allow; reject; decline; got it; ok; akzept*; \
    alle akzept*; alles akzept*; zustimm*; einverstanden; ablehnen; nur notwendig; \
    tout accepter; j'accepte; accepter; refuser; tout refuser; aceptar; rechazar; aceitar; \
    accetta; rifiuta; accepteren; alles accepteren; akkoord; godta; aksepter; \
    bare nødvend*; acceptera; godkänn; tillåt*; hyväksy*; akceptuj; zgadzam; souhlas*; \
    elfogad*; принять; 同意; 接受; すべて受け入れる; すべて許可; 承諾; 동의";

/// Whether a heading stands over links to other pages.
pub(super) fn leads_elsewhere(heading: &str) -> bool {
    let heading = plain(heading);
    let heading = heading.trim_end_matches([':', '…', '.', '!', '?']);
    heading.len() <= 80
        && (begins_with(heading, ELSEWHERE)
            || ELSEWHERE_ALONE.split("; ").any(|alone| alone == heading)
            || ["you may like", "you may also like", "you might like"]
                .iter()
                .any(|end| heading.ends_with(end)))
}

/// Whether a link's text says that it does something with the page.
pub(super) fn is_action(label: &str) -> bool {
    let label = plain(label);
    label.len() <= 50
        && (begins_with(&label, ACTIONS) || ACTIONS_ALONE.split("; ").any(|alone| alone == label))
}

/// Whether a text asks for consent to being watched.
pub(super) fn is_about_tracking(text: &str) -> bool {
    let text = text.to_lowercase();
    TRACKING.split("; ").any(|word| text.contains(word))
}

/// Whether a button consents or declines.
pub(super) fn is_consent(label: &str) -> bool {
    label.len() <= 60 && begins_with(&plain(label), CONSENT)
}

/// In lower case, with plain apostrophes and without marks at the beginning.
fn plain(text: &str) -> String {
    let text = text.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    text.trim_end().to_lowercase().replace('’', "'")
}

fn begins_with(text: &str, phrases: &str) -> bool {
    phrases.split("; ").any(|phrase| {
        let (phrase, is_part) = match phrase.strip_suffix('*') {
            Some(phrase) => (phrase, true),
            None => (phrase, false),
        };
        // Not every script parts its words.
        let is_part = is_part || !phrase.ends_with(|last: char| last.is_ascii());
        text.strip_prefix(phrase)
            .is_some_and(|rest| is_part || !rest.starts_with(char::is_alphanumeric))
    })
}
