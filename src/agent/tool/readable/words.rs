//! The words in classes and ids by which pages name what is not their content.

/// Words in a class or id, anywhere.
const ANYWHERE: &str = "\
    ad ads adslot advert adverts advertisement advertising ariane backtotop ccpa chatbot \
    cmp cmpbox crosssell didomi feedback gdpr lightbox megamenu modal mostread mostviewed \
    navbar navbox nav navi offcanvas onetrust onward optin outbrain pager pagination popup \
    recirc recirculation related relatert rgpd share sharebar sharing sidebar signature signup skip \
    skiplink social socials sosiale survey taboola toast toolbar topbar trending upsell \
    usercentrics werbung";
/// Words that count only at the beginning of a class or id, or after a word for the whole page.
const FIRST: &str = "\
    footer follow login promo promotion tags teasers topics fusszeile sidefot sidfot \
    menubar anzeige cart basket minicart warenkorb panier handlekurv";
/// Beginnings of words.
const STEMS: &str = "\
    breadcrumb brodsmule brotkrum consent cookie einwilligung empfehlung informasjonskaps \
    newsletter nyhetsbrev publicit publicidad recommend recomendad relacionad relatedpost \
    relatedarticle reklam sharebutton similaire skipto socialmedia socialshare sociallink \
    sponsor subscri verwandt addtoany addthis";
/// Several words of one name, run together.
const RUN_TOGETHER: &str = "\
    announcementbar lireaussi readalso backtotop emailsignup mailinglist morefrom mostpopular mostread \
    mostviewed readnext scrolltotop youmayalso youmightalso";
/// Words for the whole page.
const PAGE: &str = "\
    site page global main app inline website block mini side ajax";
/// Words of a class that names what surrounds the content.
const AROUND: &str = "\
    has with without no not layout content grid is";
/// Words for what readers add.
const COMMENTS: &str = "\
    comment comments commentaires comentarios kommentar kommentare kommentarer disqus";
/// Words of a page whose readers write its content.
const FORUM: &str = "\
    forum forums thread topic viewtopic showthread question discussion";
/// Words of an aside that belongs to the text beside it.
const NOTES: &str = "\
    admonition alert box callout caution danger definition encadre example fact facts \
    faktaboks hinweis important info infobox note pullquote starlight summary tip warning";

/// What a name says of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Not the content: a banner, links to elsewhere.
    Noise,
    /// What readers wrote.
    Comments,
    /// It belongs to the text beside it.
    Note,
}

/// What the names of an element, as in a `class`, say of it.
pub(super) fn meaning(names: &str) -> Option<Meaning> {
    let mut found = None;
    for name in names.split_ascii_whitespace().take(40) {
        // Names of utilities: `md:hidden`, `group/sidebar`.
        if name.contains([':', '/', '[']) {
            continue;
        }
        let words = words(name);
        if words.iter().any(|word| has(AROUND, word)) {
            continue;
        }
        let together = words.concat();
        if RUN_TOGETHER.split(' ').any(|name| together.contains(name)) {
            return Some(Meaning::Noise);
        }
        for (place, word) in words.iter().enumerate() {
            let word = word.as_str();
            let is_first = place == 0 || has(PAGE, &words[place - 1]);
            if has(COMMENTS, word) {
                found = Some(Meaning::Comments);
            } else if has(ANYWHERE, word)
                || (is_first && has(FIRST, word))
                || STEMS.split(' ').any(|stem| word.starts_with(stem))
            {
                return Some(Meaning::Noise);
            } else if has(NOTES, word) {
                found = found.or(Some(Meaning::Note));
            }
        }
    }
    found
}

/// Whether the names of a page's body are those of a forum.
pub(super) fn is_forum(names: &str) -> bool {
    let mut words = names.split_ascii_whitespace().take(40).flat_map(words);
    words.any(|word| has(FORUM, &word))
}

fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// The words of a name, in lower case: `navBar_x`, `nav-bar`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars().take(100) {
        let is_upper = letter.is_uppercase();
        if !letter.is_alphanumeric() || (is_upper && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
