//! The words by which pages name what is not their subject: in classes and ids, in
//! headings and in links, in several languages.

use super::text::has;

/// Words in a class or id, anywhere.
const ANYWHERE: &str = "\
    ad ads adslot advert adverts advertisement advertising ariane backtotop chatbot \
    crosssell feedback lightbox megamenu modal mostread mostviewed navbar \
    navbox nav navi offcanvas onward outbrain pager pagination popup recirc \
    recirculation related relatert share sharebar sharing sidebar signature signup skip \
    skiplink social socials sosiale survey taboola toast toolbar topbar trending upsell \
    werbung";
/// Words that count only at the beginning of a class or id, or after a word for the whole page.
const FIRST: &str = "\
    footer follow login promo promotion tags teasers topics fusszeile sidefot sidfot menubar \
    anzeige cart basket minicart warenkorb panier handlekurv";
/// Beginnings of words.
const STEMS: &str = "\
    breadcrumb brodsmule brotkrum empfehlung \
    newsletter nyhetsbrev publicit publicidad recommend recomendad relacionad relatedpost \
    relatedarticle reklam sharebutton similaire skipto socialmedia socialshare sociallink \
    sponsor subscri verwandt addtoany addthis";
/// Several words of one name, run together.
const RUN_TOGETHER: &str = "\
    announcementbar lireaussi readalso backtotop emailsignup mailinglist morefrom mostpopular \
    mostread mostviewed readnext scrolltotop youmayalso youmightalso";
/// Words for the whole page.
const PAGE: &str = "site page global main app inline website block mini side ajax";
/// Words of a class that names what surrounds the content.
const AROUND: &str = "has with without no not layout content grid is";
/// Words of an aside that belongs to the text beside it.
const NOTES: &str = "\
    admonition alert box callout caution danger definition encadre example fact facts faktaboks \
    hinweis important info infobox note pullquote starlight summary tip warning";

/// Headings over links to other pages. A phrase is the beginning of a text, up to the end of a
/// word; with `*`, of a part of a word; with `=`, the whole text.
const ELSEWHERE: &str = "\
    subscribe to our; sign up for our; sign up to our; join our newsletter; read also; \
    abonnez-vous; suscríbete; abonnieren sie; related; more from; more events; more stories; \
    more like this; more on this; more in; read next; up next; you may also; you might; \
    you'll love; recommended; people also; customers also; customers who; others also; \
    other events you; frequently bought; recently viewed; most read; most viewed; most popular; \
    trending; popular posts; latest news; latest posts; recent posts; sponsored; around the web; \
    from our partners; don't miss; lesen sie auch; das könnte; auch interessant; mehr zum thema; \
    mehr aus; mehr von; meistgelesen*; verwandte*; ähnliche*; kunden kauften; weitere artikel; \
    weitere themen; zuletzt angesehen; unsere empfehlung; à lire aussi; à lire également; \
    sur le même sujet; articles liés; articles similaires; vous aimerez; vous pourriez; \
    les plus lus; te puede interesar; también te; lo más leído; artículos relacionados; \
    productos relacionados; noticias relacionadas; leggi anche; potrebbe interessarti; \
    potrebbero interessarti; articoli correlati; i più letti; lees ook; gerelateerd*; meer over; \
    les også; relater*; mest lest; mest læst; læs også; läs också; läs mer om; mest läst; \
    lue myös; leia também; veja também; mais lidas; czytaj także; przeczytaj; читайте также; \
    похожие; 関連; おすすめ; 人気記事; アクセスランキング; あわせて読みたい; 相关阅读; 相关文章; 相关推荐; 猜你喜欢; 推荐阅读; 热门; 相關; 관련 기사; \
    관련기사; 추천; =newsletter; =related; =read more; =more; =see more; =mehr; =tags; =topics; =share";
/// What links say that do something with the page.
const ACTIONS: &str = "\
    skip to; jump to content; jump to navigation; zum inhalt; zum hauptinhalt; aller au contenu; \
    saltar al; ir al contenido; vai al contenuto; naar de inhoud; hopp til; gå til hoved*; \
    hoppa till; share on; share via; share this; tweet this; pin it; auf facebook teilen; \
    teilen auf; artikel teilen; partager sur; compartir en; condividi su; deel op; del på; \
    dela på; シェア; ツイート; 分享到; follow us; folgen sie uns; suivez-nous; síguenos; følg oss; \
    back to top; nach oben; edit this page; report this; print this; sign in; log in; subscribe; \
    =share; =tweet; =print; =email; =e-mail; \
    =facebook; =whatsapp; =linkedin; =pinterest; =teilen; =drucken; =partager; =imprimer; \
    =compartir; =imprimir; =condividi; =stampa; =delen; =del; =dela";

/// What a name says of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    /// It belongs to the text beside it.
    Note,
    /// Not the content: a banner, links to elsewhere.
    Noise,
}

/// What the names of an element, as in a `class`, say of it.
pub(super) fn meaning(names: &str) -> Option<Meaning> {
    // Not the names of utilities: `md:hidden`, `group/sidebar`.
    let names = names.split_ascii_whitespace().take(40);
    let meanings = names
        .filter(|name| !name.contains([':', '/', '[']))
        .map(|name| {
            let words = words(name);
            if words.iter().any(|word| has(AROUND, word)) {
                return None;
            }
            let together = words.concat();
            let is_noise = |(place, word): (usize, &String)| {
                let is_first = place == 0 || has(PAGE, &words[place - 1]);
                has(ANYWHERE, word)
                    || (is_first && has(FIRST, word))
                    || STEMS.split(' ').any(|stem| word.starts_with(stem))
            };
            if RUN_TOGETHER.split(' ').any(|name| together.contains(name))
                || words.iter().enumerate().any(is_noise)
            {
                return Some(Meaning::Noise);
            }
            words
                .iter()
                .any(|word| has(NOTES, word))
                .then_some(Meaning::Note)
        });
    meanings.max().flatten()
}

/// The words of a name, in lower case: `navBar_x`, `nav-bar`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars().take(100) {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a heading stands over links to other pages.
pub(super) fn leads_elsewhere(heading: &str) -> bool {
    let heading = heading.trim_end_matches([':', '…', '.', '!', '?']);
    let ends = ["you may like", "you may also like", "you might like"];
    heading.len() <= 80
        && (is_one_of(ELSEWHERE, heading)
            || ends.iter().any(|end| heading.to_lowercase().ends_with(end)))
}

/// Whether a link's text says that it does something with the page.
pub(super) fn is_action(label: &str) -> bool {
    label.len() <= 50 && is_one_of(ACTIONS, label)
}

fn is_one_of(phrases: &str, text: &str) -> bool {
    let text = text.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    let text = text.to_lowercase().replace('’', "'");
    phrases.split("; ").any(|phrase| {
        if let Some(whole) = phrase.strip_prefix('=') {
            return whole == text;
        }
        let beginning = phrase.trim_end_matches('*');
        // Not every script parts its words.
        let is_part = beginning.len() < phrase.len() || !phrase.ends_with(|it: char| it.is_ascii());
        text.strip_prefix(beginning)
            .is_some_and(|rest| is_part || !rest.starts_with(char::is_alphanumeric))
    })
}
