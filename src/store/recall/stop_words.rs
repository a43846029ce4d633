//! Words that say nothing of what a message is about.
//!
//! They are folded as [`super::terms`] folds a text.

/// Words of grammar, of asking and of time, by language. None that is also the name of
/// somebody in another one, as "mia" or "ben": nobody of that name would be found.
const STOP_WORDS: [&str; 8] = [
    // English
    "about after afternoon again ago all already also am an and another any anybody \
     anyone anyone's anything are around as ask at away back bad be because been before \
     being best better big but by called came can come comes could day days did different \
     do does doing don done down draft each eight else enough evening ever every find \
     first five for forget forgot forgotten found four from get gets getting give given go goes going gone gonna \
     good got had has have having he hello help her here hers hi him his hour hours how \
     idea ideas if in into is it its just keep keeps kind know last later left let like \
     line ll long look looking made make makes many may maybe me message might mine \
     minute minutes month months more morning most much must my name named need needs \
     never new next night nine no normal not nothing now of off ok okay old on once one \
     only or other our ours out over please pls poem possible put puts quite re really \
     right same say says second seconds see sentence seven she should six small so some \
     somebody someone something soon sort start starts still such sure take takes tell \
     ten than thank thanks that the their them then there these they thing things think \
     this those though three through till time times to today together tomorrow tonight \
     too two under until up us use ve very want wants was way we week weekend weeks well \
     were what when where which while who whom whose why will with without won word words \
     work works would write year years yes yesterday yet you your yours",
    // German
    "ab abend abends aber acht alle allem allen aller alles als also am an andere anderen \
     ans auch auf aus bald bei beim bekommen bekommt bis bist bitte bleibt brauche \
     brauchen braucht da dabei dafur damit dann daran darauf darf das dass davon dazu \
     dein deine dem den denn der des dich die dies diese diesem diesen dieser dieses dir \
     doch dort drei du durch durfen eben eigentlich ein eine einem einen einer eines \
     einmal er erste ersten erster erstes es etwas euch euer eure finde finden frage \
     fragen funf fur ganz geben gedicht gehen geht gerade gern gibt gut gute guten hab \
     habe haben hallo hast hat hatte hause heissen heisst her heut heute hier hilfe hin \
     ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins ist ja jahr jahre \
     jahren jede jeden jeder jemand jetzt kann kannst kein keine keinen kommen kommt \
     konnen konnte konnten kurz kurze kurzen kurzer kurzes lang lange lauft lautet letzte \
     letzten letztes machen macht mal man mehr mein meine meinem meinen meiner mich \
     minute minuten mir mit monat monate monats morgen morgens muss mussen nach \
     nachmittag nachricht nachste nachsten nacht nachts name namens nein nenn nenne neu \
     neue neuen neues neun nicht nichts noch nochmal nur ob oder ohne richtig ruhig sag \
     sagen sagt satz schon schone schones schreib schreibe schreiben schreibt sechs sehr \
     sein seine seinem seinen seiner seit sich sie sieben sind so soll sollen sollte \
     sollten sonst sowie stunde stunden tag tage tagen text tun uber uhr um und uns unser \
     unsere unserem unseren unserer unter vergessen viel viele vielleicht vier vom von vor \
     vormittag wann war ware waren warum was weiss welche welchem welchen welcher welches \
     wem wen wenn wer werde werden wie wieder wieso will willst wir wird wo woche wochen \
     wochenende woher wohin wollen wort worte wurde wurden zehn zeigen zeigt zeit zu zum \
     zur zwei zwischen",
    // French
    "heure heures ouvre ai aider ainsi alors an annee annees ans appelle appelles apres as au aucun aujourd \
     aura aussi autre autres aux avant avec avez avoir avons bas besoin bien bonjour ca \
     car ce cela celle celui ces cet cette ceux chaque chez chose choses cinq combien \
     comme comment dans de deja demain depuis dernier derniere des deux devant devoir \
     dire dis dix dois doit donc donne du ecrire ecris elle elles en encore ensemble \
     entre es est et etait ete etre eu eux faire fais fait faut fois gens grand grande \
     haut heure heures hier hui huit ici idee idees il ils jamais je jour jours juste la \
     laquelle le lequel les leur leurs lorsque lui ma maintenant mais matin me meme merci \
     mes message met mets mettre midi minute minutes moi moins mois moment mon monde mot \
     mots ne neuf ni nom non nos notre nous nouveau nouvelle nuit on ont ou par parce pas \
     passe pendant pensais pense petit petite peu peut peux phrase plus poeme pour \
     pourquoi pourrais pourrait pouvoir premier premiere prend prochain prochaine propose \
     puis qu quand quatre que quel quelle quelles quelque quelques quels qui quoi raconte \
     rien sa sais sans savoir se seconde secondes semaine semaines sept sera ses si six \
     soir soiree soit son sont sous suis sur ta te temps tes texte toi ton toujours tous \
     tout toute toutes traduis tres trois trop trouve trouver tu un une va vais vas venir \
     vers veut veux viennent vient voici voila vont vos votre voudrais vous vrai",
    // Spanish
    "toca tocan aca ahi ahora al algo alguien algun alguna algunas alguno algunos alli ano anos \
     antes aqui asi aun aunque ayer ayuda ayudame bien bueno busca busco cada casi cinco \
     como con corrige cosa cosas cual cuales cuando cuanta cuantas cuanto cuantos cuatro \
     cuentame da dame de debe debo decir del desde despues di dias dice diez dime donde \
     dos durante el ellas ellos en encontrar entre era es esa esas escribe escribir \
     ese eso esos esta estaba estado estamos estan estar este esto estos estoy favor \
     frase fue gracias grande ha hace hacer hacia hago han has hasta hay he hemos hola \
     hora horas hoy idea ideas ir la las le les llama llamas llamo lo los luego manana \
     mananas mas me mejor menos mensaje mes meses mi minuto minutos mis misma mismo mucha \
     muchas mucho muchos muy nada nadie necesita necesitamos necesito ni no noche noches \
     nombre nos nosotros nuestra nuestras nuestro nuestros nueva nueve nuevo numero nunca \
     ocho otra otras otro otros palabra para pasa paso pensar pequena pequeno pero poco \
     podemos poder podria poema por porfa porque primera primero proxima proximo puede \
     pueden puedo pues que queremos quien quienes quiero sabe se sea segun segundo \
     segundos seis semana semanas ser si sido siempre siete sin sobre solo somos son soy \
     su sus tambien tan tanto tarde tardes te tenemos tener tengas tengo texto ti tiempo \
     tiene tienen toca toda todas todo todos traduce tres tu tus ultima ultimo un una \
     unas uno unos usar va vamos van veces venir ver vez viene voy ya yo",
    // Norwegian, Danish and Swedish
    "ad aften aldrig alene all alle allt alltid alltsa alt altid altsa an anda andet \
     andra andre annan annat annen annet ar at att atta atte av bade bara bare battre \
     bedre begge behover beskjed ble blei blev bli blir blitt bliver bort borte brug bruk \
     brukar bruke bruker brukes da dag dagar dagen dagene dager dato de deg dei dem den \
     denna denne der deras dere deres det detta dette dig dikt din dina dine disse dit \
     ditt drar du efter eftersom eg egentlig eget ein eit ej eller ellers en enn er era \
     et ett etter fa far fem fik fikk finde finn finner finnes finns fire folge for \
     forrige forst forste fra fram fran fyra ga gang ganger ganske gar ge ger gi gir \
     gjerne gjor gjorde gjore gjort god gode godt gor gora gore ha hadde hade haft hald \
     ham han hans har hav havde hedder hei hej hela hele heller helst helt hem hende \
     henne hennes her heta heter hit hjaelp hjalp hjelp hjem hjemme hur hva hvad hvem \
     hver hvert hvilke hvilken hvilket hvis hvor hvordan hvorfor hvornar idag idet igang \
     igen igjen ikke ikkje ikvall imorgen ind inga ingen ingenting inn innan inne inte ja \
     jag jeg jo kan kanske kanskje kom komme kommer kommet kort kunde kunne kva kvall \
     kvar kveld kvelden kvem lage lang lange lav laver legge lenge lidt liksom lille lite \
     liten litt lyst ma mal man manad manader maned maneder manga mange maske maste med \
     meg meget mej melding mell mellan mellom men mer mere mest mig min mina mine minuter \
     minutt minutter mitt morgen morgon mot mycket mye na nagon nagot nagra namn nar nara \
     nasta natt navn navnet ned nede nei nej ner neste ni nio no noe noen nogen noget \
     nogle ny nya nye nytt och ocksa og ogsa om op opp ord os oss ott over pa pga pleier \
     plejer prover resten sa sadan sager samma samme sammen samt sann seks sekund \
     sekunder setning sett sette sex si siden sier sig sikkert sin sina sine sist sista \
     siste sitt sju ska skal skall skriv skriva skrive skulle slik sma som sta star \
     starte starter stor store stort syv ta tack tak takk tar tekst tenke tenkt ti tid \
     tiden til till tillsammans time timen timer timmar ting tio tips to tre trenge \
     trenger trodde tva uka uke uken uker under upp ut utan ute uten vad vaere vaert val \
     var vara vare varfor varit vart ve vecka veckor ved veldig vem ven vent vet vi vid \
     vil vilja vilken vilket vill ville vor vore vores",
    // Italian
    "abbiamo adesso ai al alla alle allo altra altre altri altro anche ancora anni anno \
     avere beh bene che chi chiama ci ciao cinque come con cosa cose cosi cui da dai \
     dal dalla dalle dammi de degli dei del dell della delle dello deve devo di dieci \
     dimmi dobbiamo dopo dove due ed era essere fa fai fare fatto fino fra frase giorni \
     giorno gli grande ha hai hanno ho idea il in io la le lei li lo loro lui ma \
     mattina me meglio mese mesi messaggio mi mie miei minuti minuto mio molto ne nei \
     nel nella nelle nessuno niente no noi nome non nostra nostre nostri nostro notte \
     nove nuova nuovo oggi ogni ora ore otto parola perche pero piccolo piu poco \
     poesia poi pomeriggio posso potrei prima primo prossima prossimo puo puoi qua qual \
     qualche qualcosa qualcuno quale quali quando quanta quante quanti quanto quattro \
     quella quelle quelli quello questa queste questi questo qui scrivere scrivi se sei \
     sempre senza sera serve sette settimana settimane si sia siamo solo sono sta stata \
     stato su sua sue sul sulla suo suoi te tempo testo ti tra tre trovare trovo tu tua \
     tue tuo tuoi tutta tutte tutti tutto ultima ultimo un una uno va vado vi viene \
     voglio voi volta volte vorrei vostro",
    // Dutch
    "aan acht al alle allemaal alles als altijd andere avond bericht bij bijna daar \
     dag dagen dat de deze die ding dingen dit doe doen doet door drie dus een eens \
     eerste elke en er even gaan gaat gedicht geef geen geven goed groot haar had hadden \
     hallo heb hebben hebt heeft heet hem hen het heten hier hij hoe hoeveel hun idee \
     iemand iets ik in is ja jaar jaren je jij jou jouw jullie kan keer klein kom komen \
     komt kun kunnen kunt laatste maak maand maanden maar maken me mee meer men met \
     middag mij mijn minuten minuut misschien moet moeten morgen na naam naar nacht nee \
     negen niet niets nieuw nieuwe niks nodig nog nooit nu ochtend of om omdat ons onze \
     ook op over schrijf schrijven te tekst ten ter tien tijd toch toen tot tussen twee \
     uit uur uw van vandaag veel vier vijf vind vinden volgende voor waar waarom wanneer \
     want waren was wat we week weer weet weken wel welk welke wie wij wil willen woord \
     worden wordt zal ze zeg zegt zei zelf zes zeven zich zij zijn zin zo zoek zonder zou",
    // Portuguese
    "agora ainda algo alguem algum alguma algumas alguns amanha ano anos ante antes \
     ao aos aquela aquele aqui as ate bem boa bom cada chama cinco coisa coisas com como \
     contra da das de dela dele deles depois desde dez dia dias diz do dois dos ela elas \
     ele eles em encontrar entre era escreva escreve escrever essa esse esta estao estar \
     este estou eu faco falta faz fazer foi for frase gente grande ha hoje hora horas \
     ideia isso isto ja la lhe lo mais manha mas me melhor mensagem mes meses mesmo meu \
     meus minha minhas minuto minutos muita muito na nao nas nem nenhum ninguem no noite \
     nome nos nossa nossas nosso nossos nova nove novo num numa nunca obrigado oito ola \
     onde ontem os ou palavra para pela pelo pequeno pode podemos poder poema por porque \
     posso pouco precisa preciso primeira primeiro proxima proximo quais qual quando \
     quanto quantos quatro que quem quer quero sao se seis sem semana semanas sempre ser \
     sete seu seus so sobre sou sua suas tambem tao tarde te tem temos tempo tenho ter \
     teu texto tres tu tua tudo ultima ultimo um uma umas uns vai vamos vem vez vezes \
     voce voces vou",
];

/// Weekdays, months and units of money: shared by memories that have nothing else in
/// common.
const WEAK_WORDS: &str = "abril agosto aout april aprile august augusti augustus avril december decembre \
    desember dezember dezembro dicembre diciembre dienstag dienstags dimanche dinsdag \
    domenica domingo domingos donderdag donnerstag donnerstags enero euro euros febbraio \
    febrero februar februari february fevereiro fevrier fredag fredager freitag freitags \
    friday fridays gennaio giovedi giugno janeiro januar januari january janvier jeudi \
    jueves juillet juin julho juli julio july june junho juni junio kroner lordag \
    lordager luglio lundi lunedi lunes maandag maart maggio maio mandag mandager march \
    marco mardi mars martedi martes marz marzo mayo mercoledi mercredi miercoles \
    mittwoch mittwochs monday mondays montag montags november novembre novembro \
    noviembre october octobre octubre oktober onsdag onsdager ottobre outubro percent \
    procent prosent prozent quarta quinta sabado sabados sabato samedi samstag samstags \
    saturday saturdays segunda september septembre septiembre setembro settembre sexta \
    sondag sondager sonntag sonntags sunday sundays terca thursday thursdays tirsdag \
    tirsdager tisdag torsdag torsdager tuesday tuesdays vendredi venerdi viernes vrijdag \
    wednesday wednesdays woensdag zaterdag zondag";

/// The lists, to look words up in.
pub(super) struct StopWords(Vec<(&'static str, Lists)>);

/// On which lists a word is: a bit for each language, and one for the weak words.
type Lists = u16;

const WEAK: Lists = 1 << STOP_WORDS.len();

impl Default for StopWords {
    fn default() -> StopWords {
        let lists = STOP_WORDS.into_iter().chain([WEAK_WORDS]).enumerate();
        let words =
            lists.flat_map(|(place, list)| list.split(' ').map(move |word| (word, 1 << place)));
        let mut words: Vec<(&str, Lists)> = words.collect();
        words.sort_unstable_by_key(|(word, _)| *word);
        words.dedup_by(|again, first| {
            let is_same = again.0 == first.0;
            first.1 |= if is_same { again.1 } else { 0 };
            is_same
        });
        StopWords(words)
    }
}

impl StopWords {
    /// Which of these words are stop words of the language that most of them are of, as
    /// "bin" is a word of grammar in German alone; and which are weak.
    pub fn marks(&self, words: &[&str]) -> Vec<(bool, bool)> {
        let lists: Vec<Lists> = words.iter().map(|word| self.lists(word)).collect();
        let count = |language: usize| {
            let with = lists.iter().filter(|lists| **lists >> language & 1 == 1);
            with.count()
        };
        let counts: [usize; STOP_WORDS.len()] = std::array::from_fn(count);
        let most = counts.iter().max().copied().unwrap_or(0);
        let likely = (0..counts.len()).filter(|language| 2 * counts[*language] >= most);
        let stopped = likely.fold(0, |all, language| all | 1 << language);
        let marks = lists.iter();
        let marks = marks.map(|lists| (lists & stopped != 0, lists & WEAK != 0));
        marks.collect()
    }

    fn lists(&self, word: &str) -> Lists {
        let found = self.0.binary_search_by_key(&word, |(word, _)| *word);
        found.map_or(0, |place| self.0[place].1)
    }
}

/// Thai words of grammar and of asking. They end a word, where no space does.
pub(super) const THAI_STOP_WORDS: &[&str] = &[
    "เมื่อไหร่",
    "พรุ่งนี้",
    "เท่าไหร่",
    "เย็นนี้",
    "ที่ไหน",
    "วันนี้",
    "วันไหน",
    "ยังไง",
    "หน่อย",
    "ครับ",
    "ความ",
    "ช่วย",
    "ต้อง",
    "ทำไม",
    "นั้น",
    "บ้าง",
    "หรือ",
    "อยู่",
    "อะไร",
    "เป็น",
    "แล้ว",
    "กับ",
    "การ",
    "กี่",
    "ของ",
    "ควร",
    "คือ",
    "คุณ",
    "ค่ะ",
    "จาก",
    "ฉัน",
    "ตอน",
    "ถ้า",
    "ที่",
    "ทุก",
    "นี้",
    "มัน",
    "ยัง",
    "วัน",
    "ว่า",
    "อีก",
    "เขา",
    "เรา",
    "เลย",
    "แค่",
    "แต่",
    "และ",
    "ใคร",
    "ให้",
    "ได้",
    "ไม่",
    "ไหน",
    "ไหม",
    "ก็",
    "คน",
    "คะ",
    "จะ",
    "ดี",
    "ทำ",
    "นะ",
    "บน",
    "ผม",
    "มา",
    "มี",
    "ใน",
    "ไป",
];

/// Chinese characters of grammar, of asking, of numbers and of time.
pub(super) const HAN_STOP_CHARACTERS: &str = "的了是在我有和就不人都一上也很到说要去你会着没看好自己这那们吗呢吧啊呀么什怎哪几多少来把给让被从向还再又为能可以个下里想写句话请帮它他她咱家二三四五六七八九十百千万两年月日号天时点钟分";
