//! What the replies and errors of a server have shown of its models. It holds for a day:
//! servers learn, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::server_capabilities::ServerCapabilities;
use base::ids::{AttachmentId, ConversationId};
use base::sync::lock;

/// Models that are remembered.
const MODELS: usize = 64;
/// How long it holds.
pub const LASTING: Duration = Duration::from_secs(24 * 60 * 60);
/// How long it holds that a server could not be asked, and what is about to change.
pub const BRIEF: Duration = Duration::from_secs(60);
/// Files of a model that are remembered.
const FILES: usize = 1_000;
/// Conversations of a model that are remembered because it could not sum them up.
const UNSUMMARISED: usize = 1_000;
/// After how many replies a summary is tried again that failed: twice as many each time.
const WAIT: (u32, u32) = (4, 64);
/// Smaller estimates say little: the fixed cost of a request outweighs them.
const MIN_ESTIMATE: usize = 256;
/// A count that is further off than this does not cover the whole request, but for
/// example only what the server had not cached.
const CREDIBLE: std::ops::RangeInclusive<f64> = 0.25..=4.0;
/// Limits of the correction.
const CORRECTION: (f64, f64) = (0.5, 2.0);

/// What is remembered of one server: by model, the one that something was learned of last at
/// the end.
#[derive(Default)]
pub struct Learned(Mutex<Vec<(String, Lessons)>>);

/// What is remembered of a model.
#[derive(Default)]
struct Lessons {
    capabilities: Option<(Instant, ServerCapabilities)>,
    /// Files of messages, and whether it has taken them or refused them.
    files: BTreeMap<AttachmentId, (Instant, bool)>,
    window: KnownWindow,
    /// The window that a refusal named.
    limit: Option<(Instant, usize)>,
    /// Corrects an estimate of tokens.
    factor: Option<f64>,
    /// Most tokens of a request after it refused a longer one, and what was taken for its
    /// window then.
    ceiling: Option<(Instant, (usize, usize))>,
    /// Conversations of which it gave no summary: for how many replies that is not tried
    /// again, and how many of them are left.
    unsummarised: BTreeMap<ConversationId, (Instant, (u32, u32))>,
}

/// What a server has said of a model's window.
#[derive(Clone, Copy, Default)]
pub struct KnownWindow {
    /// `None` if it did not say.
    pub tokens: Option<usize>,
    /// Whether it took the questions.
    pub was_asked: bool,
    /// When to ask again.
    pub until: Option<Instant>,
}

fn lasting<T: Copy>(lesson: Option<(Instant, T)>, now: Instant) -> Option<T> {
    let (at, lesson) = lesson?;
    (now.saturating_duration_since(at) < LASTING).then_some(lesson)
}

impl Learned {
    /// Looks at what is remembered. A person may name any model: that alone is no lesson.
    fn of<T: Default>(&self, model: &str, look: impl FnOnce(&Lessons) -> T) -> T {
        let models = lock(&self.0);
        let found = models.iter().find(|(name, _)| name == model);
        found.map(|(_, lessons)| look(lessons)).unwrap_or_default()
    }

    /// Changes what is remembered of a model, if anything is.
    fn change(&self, model: &str, change: impl FnOnce(&mut Lessons)) {
        let mut models = lock(&self.0);
        if let Some((_, lessons)) = models.iter_mut().find(|(name, _)| name == model) {
            change(lessons);
        }
    }

    /// Remembers something of a model; the model of which nothing was learned for longest makes
    /// room.
    fn learn_of<T>(&self, model: &str, learn: impl FnOnce(&mut Lessons) -> T) -> T {
        let mut models = lock(&self.0);
        let place = models.iter().position(|(name, _)| name == model);
        let mut lessons = place
            .map(|place| models.remove(place).1)
            .unwrap_or_default();
        let learned = learn(&mut lessons);
        if models.len() >= MODELS {
            models.remove(0);
        }
        models.push((model.to_owned(), lessons));
        learned
    }

    /// What a model accepts, if that was learned.
    pub fn capabilities(&self, model: &str, now: Instant) -> Option<ServerCapabilities> {
        self.of(model, |lessons| lasting(lessons.capabilities, now))
    }

    /// Remembers what a model accepts.
    pub fn learn(&self, model: &str, capabilities: ServerCapabilities, now: Instant) {
        self.learn_of(model, |lessons| {
            lessons.capabilities = Some((now, capabilities));
        });
    }

    /// The files that a model has taken, or those that it has refused.
    pub fn files(&self, model: &str, taken: bool, now: Instant) -> BTreeSet<AttachmentId> {
        self.of(model, |lessons| {
            let is_such = |kept| lasting(Some(kept), now) == Some(taken);
            let files = lessons.files.iter().filter(|(_, kept)| is_such(**kept));
            files.map(|(id, _)| *id).collect()
        })
    }

    /// Remembers that a model has taken files, or refused them.
    pub fn learn_files(
        &self,
        model: &str,
        ids: impl IntoIterator<Item = AttachmentId>,
        taken: bool,
        now: Instant,
    ) {
        self.learn_of(model, |lessons| {
            let files = &mut lessons.files;
            if files.len() >= FILES {
                // What was refused costs another request.
                files.retain(|_, (_, was_taken)| !*was_taken);
            }
            if files.len() >= FILES {
                files.clear();
            }
            files.extend(ids.into_iter().map(|id| (id, (now, taken))));
        });
    }

    /// Forgets that a model has refused files.
    pub fn forget_files(&self, model: &str, ids: &[AttachmentId]) {
        self.change(model, |lessons| {
            lessons.files.retain(|id, _| !ids.contains(id))
        });
    }

    /// What the server has said of a model's window.
    pub fn window(&self, model: &str) -> KnownWindow {
        self.of(model, |lessons| lessons.window)
    }

    /// Remembers what the server says of a model's window now: `tokens`, which holds until the
    /// server is started anew if it `is_lasting`.
    pub fn learn_window(
        &self,
        model: &str,
        (tokens, is_lasting): (Option<usize>, bool),
        was_asked: bool,
        now: Instant,
    ) -> Option<usize> {
        self.learn_of(model, |lessons| {
            let before = lessons.window;
            if tokens.is_some() && before.until.is_some() && tokens != before.tokens {
                // It was started anew, with another window.
                lessons.limit = None;
            }
            let holds = match is_lasting && was_asked {
                true => LASTING,
                false => BRIEF,
            };
            lessons.window = KnownWindow {
                tokens: tokens.or(before.tokens),
                was_asked,
                until: Some(now + holds),
            };
            lessons.window.tokens
        })
    }

    /// Has the next turn ask for the window again: a request failed, perhaps because the
    /// server was started anew with another one.
    pub fn doubt_window(&self, model: &str, now: Instant) {
        self.change(model, |lessons| {
            let known = &mut lessons.window;
            known.until = known.until.map(|until| match known.tokens {
                Some(_) => now,
                None => until.min(now + BRIEF),
            });
        });
    }

    /// The window that the server named when it refused a request.
    pub fn limit(&self, model: &str, now: Instant) -> Option<usize> {
        self.of(model, |lessons| lasting(lessons.limit, now))
    }

    /// Remembers such a window.
    pub fn learn_limit(&self, model: &str, tokens: usize, now: Instant) {
        self.learn_of(model, |lessons| lessons.limit = Some((now, tokens)));
    }

    /// What corrects an estimate of tokens: 0.5 to 2.
    pub fn factor(&self, model: &str) -> f64 {
        self.of(model, |lessons| lessons.factor).unwrap_or(1.0)
    }

    /// Notes that a request of `estimated` tokens (uncorrected) took `counted`.
    pub fn learn_count(&self, model: &str, estimated: usize, counted: u64) {
        let measured = counted as f64 / estimated.max(1) as f64;
        if estimated >= MIN_ESTIMATE && CREDIBLE.contains(&measured) {
            let factor = measured.clamp(CORRECTION.0, CORRECTION.1);
            self.learn_of(model, |lessons| lessons.factor = Some(factor));
        }
    }

    /// Most tokens of a request (corrected) to a model whose window has so many, after it
    /// refused a longer one. Forgotten when the window is another one.
    pub fn ceiling(&self, model: &str, window: usize, now: Instant) -> Option<usize> {
        let ceiling = self.of(model, |lessons| lasting(lessons.ceiling, now));
        let (tokens, was) = ceiling?;
        (was == window).then_some(tokens)
    }

    /// Notes that a request was too long, so that the next ones take at most `tokens`
    /// (corrected), as long as the model's window has `window`.
    pub fn learn_ceiling(&self, model: &str, tokens: usize, window: usize, now: Instant) {
        self.learn_of(model, |lessons| {
            lessons.ceiling = Some((now, (tokens, window)));
        });
    }

    /// Whether a model may be asked for a summary after this reply of a conversation. After it
    /// gave none, some replies pass first.
    pub fn may_summarise(&self, model: &str, id: ConversationId, now: Instant) -> bool {
        let mut may = true;
        self.change(model, |lessons| {
            let Some((at, (_, left))) = lessons.unsummarised.get_mut(&id) else {
                return;
            };
            *left = left.saturating_sub(1);
            may = *left == 0 || lasting(Some((*at, ())), now).is_none();
        });
        may
    }

    /// Remembers whether a model gave a summary of a conversation.
    pub fn learn_summary(&self, model: &str, id: ConversationId, is_given: bool, now: Instant) {
        if is_given {
            return self.change(model, |lessons| {
                lessons.unsummarised.remove(&id);
            });
        }
        self.learn_of(model, |lessons| {
            let waits = &mut lessons.unsummarised;
            let before = waits.remove(&id);
            if waits.len() >= UNSUMMARISED {
                waits.clear();
            }
            let wait = lasting(before, now).map_or(WAIT.0, |(last, _)| WAIT.1.min(2 * last));
            waits.insert(id, (now, (wait, wait)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_the_provider_correct_the_estimate() {
        let learned = Learned::default();
        for (estimated, counted, expected) in [
            (1_000, 1_300, 1.3),
            (1_000, 3_000, 2.0),
            (1_000, 300, 0.5),
            // Not credible, or too little to say anything: nothing changes.
            (1_000, 10, 0.5),
            (1_000, 9_000, 0.5),
            (100, 150, 0.5),
            (0, 150, 0.5),
            (1_000, 900, 0.9),
        ] {
            learned.learn_count("m", estimated, counted);
            assert_eq!(learned.factor("m"), expected, "{estimated} {counted}");
        }
        let now = Instant::now();
        learned.learn_ceiling("m", 2_000, 8_192, now);
        assert_eq!(learned.factor("m"), 0.9);
        for (window, at, expected) in [
            (8_192, now, Some(2_000)),
            (8_192, now + LASTING / 2, Some(2_000)),
            (8_192, now + LASTING, None),
            (32_768, now, None),
        ] {
            assert_eq!(learned.ceiling("m", window, at), expected, "{window}");
        }
        assert_eq!(learned.factor("other"), 1.0);
        assert_eq!(learned.ceiling("other", 8_192, now), None);
    }

    #[test]
    fn a_summary_that_fails_again_waits_twice_as_long() {
        let (learned, now) = (Learned::default(), Instant::now());
        let [id, other] = [7, 8].map(ConversationId::from);
        let replies_until = |now| {
            let asked = (1..).find(|_| learned.may_summarise("m", id, now));
            asked.unwrap()
        };
        assert_eq!(replies_until(now), 1);
        for wait in [4, 8, 16, 32, 64, 64] {
            learned.learn_summary("m", id, false, now);
            assert!(learned.may_summarise("m", other, now) && learned.may_summarise("n", id, now));
            assert_eq!(replies_until(now), wait);
        }
        learned.learn_summary("m", id, false, now);
        assert_eq!(replies_until(now + LASTING), 1);
        learned.learn_summary("m", id, true, now);
        assert_eq!(replies_until(now), 1);
        for number in 0..3_000 {
            learned.learn_summary("m", number.into(), false, now);
        }
        let kept = learned.of("m", |lessons| lessons.unsummarised.len());
        assert!(kept <= UNSUMMARISED, "{kept}");
    }

    #[test]
    fn names_that_anybody_makes_up_push_out_nothing_that_was_learned() {
        let (learned, now) = (Learned::default(), Instant::now());
        learned.learn_limit("ours", 8_192, now);
        for number in 0..1_000 {
            let name = number.to_string();
            assert_eq!(learned.limit(&name, now), None);
            assert_eq!(learned.factor(&name), 1.0);
            learned.forget_files(&name, &[]);
            learned.doubt_window(&name, now);
        }
        assert_eq!(learned.limit("ours", now), Some(8_192));
        for number in 0..1_000 {
            learned.learn_ceiling(&number.to_string(), 1, 2, now);
            learned.learn_limit("ours", 4_096, now);
        }
        assert_eq!(lock(&learned.0).len(), MODELS);
        assert_eq!(learned.limit("ours", now), Some(4_096), "the oldest went");
        assert_eq!(learned.ceiling("999", 2, now), Some(1));
    }
}
